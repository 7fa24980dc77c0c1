"""The plain layout: id, question, choices and target; context, cluster and language where there are any."""

from contract.items import Item, canonical_digest
from producer.datasets.rows import Row


def item_from_row(dataset: str, row: Row) -> Item:
    """One item; without `cluster`, items with one context share a cluster and others stand alone."""
    source_id = row.text("id")
    context = row.optional_text("context")
    return Item(
        dataset=dataset,
        source_id=source_id,
        question=row.text("question"),
        choices=row.texts("choices"),
        target=row.optional_index("target"),
        context=context,
        cluster=row.optional_text("cluster") or (canonical_digest(context)[:16] if context else source_id),
        language=row.optional_text("language"),
    )
