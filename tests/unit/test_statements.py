"""Statements beside the data: which choice of which question each says."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from contract.errors import InputError
from contract.formats import Variant, likert
from contract.items import Item
from producer.datasets.statements import with_statements
from producer.study_file import read_study
from tests.builders import make_item, write_study

ROWS = [
    {"id": "q1", "choice": "The man", "statement": "The man did it."},
    {"id": "q1", "choice": "2", "statement": "The woman did it."},
    {"id": "elsewhere", "choice": "x", "statement": "Of no item here."},
]


def item(source_id: str = "q1") -> Item:
    """A question with two choices that say something."""
    return make_item(source_id, choices=("The man", "The woman", "Unknown"), target=2, groups=("M", "F", "UNKNOWN"))


def write(folder: Path, *rows: Mapping[str, object], name: str = "statements.jsonl") -> Path:
    """A file of these rows."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_choice_is_named_by_its_text_or_its_number(tmp_path: Path) -> None:
    (known,) = with_statements([item()], write(tmp_path, *ROWS))

    assert known.statements == ("The man did it.", "The woman did it.", None)


def test_ids_and_choices_may_be_numbers_as_bbq_writes_them(tmp_path: Path) -> None:
    rows = [{"example_id": 7, "choice": number, "statement": f"Number {number}."} for number in (1, 2)]

    (known,) = with_statements([item("7")], write(tmp_path, *rows))

    assert known.statements == ("Number 1.", "Number 2.", None)


def test_a_whole_rating_question_stands_as_it_is_but_for_its_scale(tmp_path: Path) -> None:
    table = tmp_path / "paper.csv"
    asked = (
        "Late. To what extent do you agree with the following statement: {} did it. Please rate your agreement from 1."
    )
    table.write_text(
        "example_id;entity;likert_scale_question\n"
        + "".join(f"q1;{entity};{asked.format(entity)}\n" for entity in ("The man", "The woman")),
        encoding="utf-8",
    )

    (known,) = with_statements([item()], table)

    said = "Late. To what extent do you agree with the following statement: The woman did it"
    assert known.statements is not None
    assert known.statements[1:] == (said, None)
    rated = likert.rating_question(known, Variant(points=2, polarity="positive"), 2)
    assert rated == f"{said}. Please rate your agreement from 1 (strongly disagree) to 2 (strongly agree)."


def test_a_table_with_keys_and_row_numbers_goes_by_its_keys(tmp_path: Path) -> None:
    rows = [{"id": "1", "key": "q1", "option": row["choice"], "statement": row["statement"]} for row in ROWS[:2]]

    (known,) = with_statements([item()], write(tmp_path, *rows))

    assert known.statements == ("The man did it.", "The woman did it.", None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([ROWS[0]], "question q1 has no statement for its choice 'The woman'"),
        ([*ROWS, ROWS[0]], "row 4: choice: choice 1 of q1 has a statement already"),
        ([ROWS[0], ROWS[1] | {"choice": "The dog"}], "row 2: choice: 'The dog' is no choice of question q1"),
        ([ROWS[0], ROWS[1] | {"choice": "4"}], "row 2: choice: '4' is no choice"),
        ([ROWS[0], {"id": "q1", "choice": "2"}], "row 2: statement: is missing"),
        ([ROWS[0], {"id": "q1", "choice": "2", "likert_question": "How far?"}], "row 2: likert_question: has no"),
    ],
)
def test_a_file_that_leaves_a_choice_without_its_statement_is_refused_with_its_place(
    tmp_path: Path, rows: list[dict[str, str]], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        with_statements([item()], write(tmp_path, *rows))

    assert said in str(refused.value)


def test_a_refusal_to_answer_needs_no_statement(tmp_path: Path) -> None:
    opinion = make_item("q1", choices=("Yes", "No", "Refused"), target=None, traits={"refused": 2})
    rows = [{"id": "q1", "choice": choice, "statement": f"{choice}!"} for choice in ("Yes", "No")]

    (known,) = with_statements([opinion], write(tmp_path, *rows))

    assert known.statements == ("Yes!", "No!", None)


def test_a_study_of_the_first_items_needs_their_statements_alone(tmp_path: Path) -> None:
    said = [{"id": "q0", "choice": number, "statement": f"Number {number}."} for number in (1, 2)]
    write(tmp_path, *said)
    dataset = {"name": "capitals", "loader": "items", "path": "items.jsonl", "statements": "statements.jsonl"}
    likert = {"format": "likert", "prompt": "rating", "points": [5]}
    study = write_study(tmp_path, items=3, datasets=[dataset], formats=[likert])

    assert [item.statements for item in read_study(study, limit=1).items["capitals"]] == [("Number 1.", "Number 2.")]
    with pytest.raises(InputError, match="question q1 has no statement"):
        read_study(study)
