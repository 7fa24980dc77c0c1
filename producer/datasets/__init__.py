"""Datasets: a file in, items out. Every row is checked before anything is written."""

from pathlib import Path

from contract.errors import InputError
from contract.items import Item
from contract.study import Dataset
from producer.datasets.items import item_from_row
from producer.datasets.rows import Row, read_rows
from producer.datasets.uncertainty import uncertainty_item


def load_dataset(dataset: Dataset, path: Path) -> list[Item]:
    """The items of `path` in file order; InputError with file, row and field where a row cannot be used."""
    seen: dict[str, int] = {}
    items = []
    for row in read_rows(path):
        item = _item(dataset, row)
        _check(item, row)
        if item.source_id in seen:
            raise row.refuse("id", f"{item.source_id!r} is also the id of row {seen[item.source_id]}; ids must differ")
        seen[item.source_id] = row.number
        items.append(item)
    if not items:
        raise InputError(path, "there is no item in the file")
    return items


def _item(dataset: Dataset, row: Row) -> Item:
    if dataset.setting is not None:
        return uncertainty_item(dataset.name, dataset.setting, row)
    return item_from_row(dataset.name, row)


def _check(item: Item, row: Row) -> None:
    """What holds for every item, wherever it came from."""
    if len(item.choices) != 2:
        raise row.refuse("choices", f"a closed question asked in both orders has two choices, not {len(item.choices)}")
    if len({choice.strip() for choice in item.choices}) < len(item.choices):
        raise row.refuse("choices", "the choices are equal; a swap would change nothing")
    if item.target is not None and not 0 <= item.target < len(item.choices):
        last = len(item.choices) - 1
        raise row.refuse("target", f"{item.target} is out of range; choices are counted from 0 to {last}, null is none")
