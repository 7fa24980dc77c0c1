"""The plain layout: id, question, choices and target; context, cluster and language where there are any."""

from dataclasses import replace

from contract.items import Item, canonical_digest
from contract.study import Columns
from producer.datasets.rows import Row, near_miss

_REQUIRED = ("id", "question", "choices", "target")


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
        statements=_statements(row),
    )


def _statements(row: Row) -> tuple[str | None, ...] | None:
    """A statement for each choice, or null for one that has none; None where the row gives no statements at all."""
    given = row.values.get("statements")
    if given is None:
        return None
    choices = row.values["choices"]
    if not isinstance(given, list | tuple) or len(given) != len(choices):
        raise row.refuse("statements", f"must be a list with a statement, or null, for each of {len(choices)} choices")
    if all(said is None for said in given):
        raise row.refuse("statements", "holds no statement; leave the field out")
    texts = iter(row.with_texts("statements", [said for said in given if said is not None]))
    return tuple(None if said is None else next(texts) for said in given)


def with_our_names(row: Row, columns: Columns) -> Row:
    """The row by our names. A column that the study file names must be there, so that none is misspelt unseen."""
    values = dict(row.values)
    names: dict[str, str] = {}
    for field in Columns.model_fields:
        written = getattr(columns, field)
        if written is None and field not in _REQUIRED:
            continue
        sources = (written,) if isinstance(written, str) else written or (field,)
        for source in sources:
            if source not in row.values:
                raise row.refuse(source, _missing(row, field, source, named=written is not None))
        names[field] = " and ".join(sources)
        if len(sources) == 1:
            values[field] = row.values[sources[0]]
        else:
            values[field] = [row.values[source] for source in sources]
            names |= {f"{field}[{number}]": source for number, source in enumerate(sources)}
    return replace(row, values=values, names=names)


def _missing(row: Row, field: str, source: str, *, named: bool) -> str:
    problem = "is missing"
    if field == "target":
        problem += f"; write {'empty cells' if row.cells else 'null'} where no choice is right"
    problem += near_miss(source, row.values)
    if named:
        return f"{problem}; columns.{field} of the study file names it; {row.has}"
    other = "[NAME, NAME]" if field == "choices" and row.cells else "NAME"
    return f"{problem}; {row.has}; if it has another name: columns: {{{field}: {other}}}"
