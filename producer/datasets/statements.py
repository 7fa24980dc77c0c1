"""Statements to be rated, from a file beside the data: each says one choice of one question whole.

A row names the question (key, example_id or id), the choice by its text or number (choice, entity or option) and the
`statement`. Tables of the answer-format paper's kind have the whole rating question instead (likert_scale_question or
likert_question): it stands as it is but for the ends of its scale, because the paper worded some questions anew for it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from contract.errors import InputError
from contract.formats.likert import ASKS
from contract.items import Item
from producer.datasets.layouts import read_table
from producer.datasets.rows import Row

_IDS = ("key", "example_id", "id")  # tables with keys number their rows as well
_CHOICES = ("choice", "entity", "option")
_QUESTIONS = ("likert_scale_question", "likert_question")
_IN_QUESTION = re.compile(rf"(?P<asked>.+{re.escape(ASKS)} .+?)\.? Please rate your agreement", re.DOTALL)


def with_statements(items: Sequence[Item], path: Path) -> list[Item]:
    """The items with the statements of the file `path`, which may have some for other items too.

    InputError for a row that names no choice of its question, for two statements of one choice, and for a choice that
    lacks one though it is neither UNKNOWN nor the refusal.
    """
    known = {item.source_id: item for item in items}
    found: dict[str, dict[int, str]] = {}
    for row in read_table(path):
        item = known.get(row.named(_column(row, _IDS)))
        if item is None:
            continue
        choice = _choice(row, item)
        if choice in found.setdefault(item.source_id, {}):
            raise row.refuse(_column(row, _CHOICES), f"choice {choice + 1} of {item.source_id} has a statement already")
        found[item.source_id][choice] = _statement(row)
    return [_with(item, found.get(item.source_id, {}), path) for item in items]


def _with(item: Item, statements: dict[int, str], path: Path) -> Item:
    for choice, text in enumerate(item.choices):
        if choice not in statements and choice + 1 in item.opinions:
            raise InputError(path, f"question {item.source_id} has no statement for its choice {text!r:.60}; add one")
    return replace(item, statements=tuple(statements.get(choice) for choice in range(len(item.choices))))


def _column(row: Row, names: tuple[str, ...]) -> str:
    return next((name for name in names if name in row.values), names[0])


def _choice(row: Row, item: Item) -> int:
    """The choice that a row speaks of."""
    column = _column(row, _CHOICES)
    written = row.named(column)
    for index, text in enumerate(item.choices):
        if text.strip() == written:
            return index
    if written.isdecimal() and 1 <= int(written) <= len(item.choices):
        return int(written) - 1
    there = "; ".join(item.choices)
    raise row.refuse(column, f"{written!r:.60} is no choice of question {item.source_id}; there are: {there:.300}")


def _statement(row: Row) -> str:
    column = _column(row, _QUESTIONS)
    if "statement" in row.values or column not in row.values:
        return row.text("statement").strip()
    inside = _IN_QUESTION.search(row.text(column))
    if inside is None:
        raise row.refuse(column, 'has no "following statement: ... Please rate your agreement" to take a question from')
    return inside["asked"].strip()
