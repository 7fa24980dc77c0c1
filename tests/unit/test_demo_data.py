"""The demo data: thirty-two questions that only their own context answers."""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

ROWS: list[dict[str, str]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "studies/data/demo.jsonl").read_text(encoding="utf-8").splitlines()
]
FIELDS = [
    "id",
    "language",
    "paragraph",
    "context",
    "question",
    "right",
    "plausible",
    "out_of_context_1",
    "out_of_context_2",
]
WRONG = ("plausible", "out_of_context_1", "out_of_context_2")
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])


def test_there_are_at_least_24_items_half_of_them_in_each_language() -> None:
    assert len(ROWS) >= 24
    languages = Counter(row["language"] for row in ROWS)
    assert languages["it"] == languages["en"] == len(ROWS) / 2


def test_ids_and_questions_are_unique() -> None:
    assert len({row["id"] for row in ROWS}) == len({row["question"] for row in ROWS}) == len(ROWS)


def test_two_neighbouring_items_share_a_paragraph_and_its_context() -> None:
    paragraphs = [(name, list(rows)) for name, rows in groupby(ROWS, key=lambda row: row["paragraph"])]
    assert len({name for name, _ in paragraphs}) == len(paragraphs)
    assert all(len(rows) == 2 for _, rows in paragraphs)
    assert all(len({row["context"] for row in rows}) == 1 for _, rows in paragraphs)
    assert len({rows[0]["context"] for _, rows in paragraphs}) == len(paragraphs)


@every_row
def test_an_item_has_every_field_filled_and_no_other(row: dict[str, str]) -> None:
    assert list(row) == FIELDS
    assert all(value and value == value.strip() for value in row.values())
    assert row["id"].startswith(row["language"])
    assert row["paragraph"].startswith(row["language"])


@every_row
def test_a_context_is_a_short_scene(row: dict[str, str]) -> None:
    assert 30 <= len(row["context"].split()) <= 60
    assert 2 <= row["context"].count(".") <= 3


@every_row
def test_only_the_right_answer_stands_in_the_context(row: dict[str, str]) -> None:
    assert row["right"] in row["context"]
    assert not [name for name in WRONG if row[name].casefold() in row["context"].casefold()]


@every_row
def test_no_answer_is_given_away_by_the_question(row: dict[str, str]) -> None:
    assert not [name for name in ("right", *WRONG) if row[name].casefold() in row["question"].casefold()]


@every_row
def test_the_four_answers_differ(row: dict[str, str]) -> None:
    assert len({row[name].casefold() for name in ("right", *WRONG)}) == 4


@every_row
def test_the_plausible_answer_is_about_as_long_as_the_right_one(row: dict[str, str]) -> None:
    assert abs(len(row["right"]) - len(row["plausible"])) <= 6
    assert abs(len(row["right"].split()) - len(row["plausible"].split())) <= 1
