"""Which fields of a dataset belong to which loader, and what goes with what, beside what the types say."""

from collections.abc import Iterator

from contract.study import Dataset

_LOADERS = {
    "human": "opinion_qa",
    "human_options": "opinion_qa",
    "without_human": "opinion_qa",
    "country": "global_opinion_qa",
}


def field_faults(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """What does not go together: the field and what is wrong with it."""
    for field, loader in _LOADERS.items():
        if getattr(dataset, field) and dataset.loader != loader:
            yield field, f"only loader {loader} takes this field; take it out"
    if dataset.loader == "global_opinion_qa" and dataset.country is None:
        yield "loader", "loader global_opinion_qa needs a country whose people answered, as the file spells it"
    for field in ("human_options", "without_human"):
        if getattr(dataset, field) and dataset.human is None:
            yield field, "says something of human shares, and there are none: add human: FILE, or take this field out"
