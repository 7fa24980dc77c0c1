"""Datasets: a file in, items out. Every item is checked before anything is written."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from contract.errors import InputError
from contract.items import Item
from contract.study import Columns, Dataset
from producer.datasets.bbq import bbq_items
from producer.datasets.convokit import UTTERANCES, convokit_items
from producer.datasets.corrections import corrected
from producer.datasets.global_opinion_qa import global_opinion_qa_items
from producer.datasets.items import item_from_row, with_our_names
from producer.datasets.layouts import read_rows
from producer.datasets.opinion_qa import opinion_qa_items
from producer.datasets.rows import Row
from producer.datasets.squad_it import squad_items, squad_right_answers
from producer.datasets.squad_it_2 import squad_it_2_item
from producer.datasets.subset import Subset
from producer.datasets.uncertainty import uncertainty_item
from producer.datasets.webgpt import webgpt_items
from producer.datasets.winning_arguments import winning_arguments_items

MOST_CHOICES = 26
_LONGEST_ID = 500  # characters; the database's index holds no more


class Source(Protocol):
    """What an item was made from: a row, or a place in a document."""

    @property
    def place(self) -> str:
        """Where it stands, as messages name it."""

    def refuse(self, field: str, problem: str) -> InputError:
        """The error that says what is wrong with one of its fields."""


@dataclass(frozen=True, kw_only=True)
class _Beside:
    """What stands beside the data file, where there is any."""

    wrong_answers: Path | None
    human: Path | None
    subset: Subset | None


def load_dataset(
    dataset: Dataset,
    path: Path,
    wrong_answers: Path | None = None,
    subset: Path | None = None,
    human: Path | None = None,
    *,
    to_be_answered: bool = True,
) -> list[Item]:
    """The items of `path` in file order; InputError with file, place and field where one cannot be used.

    `wrong_answers`, `subset` and `human` are the files beside it. Items that cannot be answered yet but get wrong
    answers have their right ones as choices. DatasetFieldError says that the file does not bear `dataset` out.
    """
    seen: dict[str, str] = {}
    items = []
    wanted = None if subset is None else Subset.read(subset)
    beside = _Beside(wrong_answers=wrong_answers, human=human, subset=wanted)
    for item, source in _sourced(dataset, path, beside, to_be_answered=to_be_answered):
        if to_be_answered:
            _check(item, source)
        else:
            _check_right_answers(item, source)
        if item.source_id in seen:
            raise source.refuse("id", f"{item.source_id!r} is also the id of {seen[item.source_id]}; ids must differ")
        seen[item.source_id] = source.place
        items.append(item if item.language else replace(item, language=dataset.language))
    if not items:
        raise InputError(path, "there is no item in the file")
    return corrected(items if wanted is None else wanted.of(items, path), dataset.corrections)


def _sourced(dataset: Dataset, path: Path, beside: _Beside, *, to_be_answered: bool) -> Iterator[tuple[Item, Source]]:
    match dataset.loader:
        case "squad_it" if not to_be_answered:
            yield from squad_right_answers(dataset, path)
        case "squad_it":
            yield from squad_items(dataset, path, beside.wrong_answers)
        case "webgpt":
            yield from webgpt_items(dataset.name, path)
        case "winning_arguments" if path.name == UTTERANCES:
            yield from convokit_items(dataset.name, path)
        case "winning_arguments":
            yield from winning_arguments_items(dataset.name, path)
        case "items" | "squad_it_2" | "uncertainty":
            for row in read_rows(path):
                yield _of_row(dataset, row)
        case _:
            yield from _with_traits(dataset, path, beside)


def _with_traits(dataset: Dataset, path: Path, beside: _Beside) -> Iterator[tuple[Item, Row]]:
    match dataset.loader:
        case "bbq":
            yield from bbq_items(dataset.name, path)
        case "opinion_qa":
            wanted = None if beside.subset is None else beside.subset.wanted
            yield from opinion_qa_items(dataset, path, beside.human, wanted)
        case "global_opinion_qa":
            yield from global_opinion_qa_items(dataset.name, path, dataset.country or "")


def _of_row(dataset: Dataset, row: Row) -> tuple[Item, Row]:
    if dataset.setting is None:
        named = with_our_names(row, dataset.columns or Columns())
        return item_from_row(dataset.name, named), named
    make = squad_it_2_item if dataset.loader == "squad_it_2" else uncertainty_item
    return make(dataset.name, dataset.setting, row), row


def _check(item: Item, source: Source) -> None:
    """What holds for every item that is to be answered, wherever it came from."""
    _check_id(item, source)
    if not 2 <= len(item.choices) <= MOST_CHOICES:
        count = len(item.choices)
        raise source.refuse("choices", f"a question has 2 to {MOST_CHOICES} choices, not {count}")
    if len({choice.strip() for choice in item.choices}) < len(item.choices):
        raise source.refuse("choices", "the choices are equal; a swap would change nothing")
    if item.target is not None and not 0 <= item.target < len(item.choices):
        last = len(item.choices) - 1
        raise source.refuse("target", f"{item.target} is out of range; choices are counted from 0 to {last}")


def _check_right_answers(item: Item, source: Source) -> None:
    """What holds for every item that is to get wrong answers: all its choices are right."""
    _check_id(item, source)
    if not item.choices:
        raise source.refuse("choices", "there is no right answer, so nothing can be a wrong one")
    if item.target not in (0, None):
        problem = f"{item.target} says that another choice is wrong; for a recipe all choices are right answers"
        raise source.refuse("target", f"{problem}: give those alone, and 0")


def _check_id(item: Item, source: Source) -> None:
    if len(item.source_id) > _LONGEST_ID:
        raise source.refuse("id", f"has {len(item.source_id):,} characters; an id has at most {_LONGEST_ID}")
