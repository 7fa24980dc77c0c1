"""One file, three uncertainty settings after "Positional Bias in Binary Question Answering", section 3.1.

low: context, right against plausible answer. medium: the same two without the context. high: two out-of-context
answers without the context; none is right, the first stands first in canonical order.
"""

from typing import Literal

from contract.items import Item
from producer.datasets.rows import Row


def uncertainty_item(dataset: str, setting: Literal["low", "medium", "high"], row: Row) -> Item:
    """The item that `row` makes in `setting`."""
    context = row.text("context")
    right = (row.text("right"), row.text("plausible"))
    unrelated = (row.text("out_of_context_1"), row.text("out_of_context_2"))
    return Item(
        dataset=dataset,
        source_id=row.text("id"),
        question=row.text("question"),
        choices=unrelated if setting == "high" else right,
        target=None if setting == "high" else 0,
        context=context if setting == "low" else None,
        cluster=row.text("paragraph"),
        language=row.optional_text("language"),
    )
