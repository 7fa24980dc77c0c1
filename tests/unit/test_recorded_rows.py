"""Recorded answers as files lay them out: columns, codes and constants, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from contract.answers import InvalidReason
from contract.conditions import queue_for
from contract.errors import InputError
from contract.formats import Variant
from contract.forms import Annotation, ClosedFormat, LikertFormat
from contract.models import parse_model, pools_of
from contract.recorded import RecordedModel
from contract.settings import Settings
from producer.datasets.rows import Row
from producer.forecast import volumes
from producer.plan import plan_conditions
from producer.recorded_answers import given_answer
from producer.recorded_rows import RecordedRow, recorded_row
from producer.study_file import read_study
from tests.builders import make_item, write_study
from worker.providers import open_provider
from worker.providers.base import MisconfiguredError

ITEM = make_item(choices=("The man", "The woman", "Cannot be told"))
CLOSED = ClosedFormat(format="closed")
LIKERT = LikertFormat(format="likert", prompt="rating", points=(5,))
SHOWN_213 = Variant(order=(1, 0, 2))


def recorded(**changes: Any) -> RecordedModel:  # noqa: ANN401
    """A recorded model as a study file says it."""
    return RecordedModel.model_validate({"provider": "recorded", "name": "paper", "model": "gpt"} | changes)


def read(values: dict[str, Any], **changes: Any) -> RecordedRow:  # noqa: ANN401
    """The third row of a file, in our words."""
    found = recorded_row(Row(path=Path("answers.csv"), number=3, values=values), recorded(**changes))
    assert found is not None
    return found


def refusal(values: dict[str, Any], **changes: Any) -> str:  # noqa: ANN401
    """Why a row is refused."""
    with pytest.raises(InputError) as refused:
        read(values, **changes)
    return str(refused.value)


def test_a_file_with_our_own_names_needs_no_columns() -> None:
    row = read({"item": "q1", "format": "closed", "variant": "21", "part": "0", "repeat": "2", "answer": "B"})

    told = (row.source_id, row.format, row.variant, row.part, row.repeat, row.answer)
    assert told == ("q1", "closed", "21", 0, 2, "B")


def test_columns_and_codes_of_a_file_become_ours() -> None:
    row = read(
        {"qid": 7, "kind": "scale", "cond": "4_neg", "said": "3 points", "code": "agree"},
        columns={"item": "qid", "format": "kind", "variant": "cond", "completion": "said", "answer": "code"},
        formats={"scale": "likert"},
        variants={"4_neg": "4-negative"},
        answers={"agree": 3},
    )

    assert (row.source_id, row.format, row.variant) == ("7", "likert", "4-negative")
    assert (row.completion, row.answer) == ("3 points", 3)


def test_a_constant_speaks_for_a_column_that_is_not_there() -> None:
    row = read({"item": "q1", "answer": 1}, constants={"format": "closed", "variant": "12"})

    assert (row.format, row.variant, row.part, row.repeat) == ("closed", "12", 0, None)


def test_numbers_may_be_written_as_spreadsheets_do() -> None:
    row = read({"item": 12.0, "part": "2.0", "repeat": 1.0, "answer": 3.0})

    assert (row.source_id, row.part, row.repeat, row.answer) == ("12", 2, 1, 3)


def test_rows_of_other_models_are_passed_over() -> None:
    values = {"item": "q1", "model": "llama", "answer": 1}

    assert recorded_row(Row(path=Path("answers.csv"), number=1, values=values), recorded()) is None
    assert read(values | {"model": "gpt"}).source_id == "q1"


def test_a_code_may_stand_for_no_answer() -> None:
    row = read({"item": "q1", "answer": "n/a"}, answers={"n/a": None})

    assert (row.answer, row.says_answer, row.says_completion) == (None, True, False)


@pytest.mark.parametrize("empty", [None, "", " "])
def test_an_empty_answer_says_something_only_where_no_completion_does(empty: str | None) -> None:
    assert read({"item": "q1", "answer": empty, "completion": "B"}).says_answer is False
    assert read({"item": "q1", "answer": empty, "completion": ""}).says_answer is True
    assert read({"item": "q1", "answer": empty}).says_answer is True


@pytest.mark.parametrize(
    ("values", "field", "problem"),
    [
        ({"item": "q1"}, "qid", "is missing"),
        ({"qid": None}, "qid", "is empty"),
        ({"qid": "q1", "part": "two"}, "part", "must be a whole number from 0 on"),
        ({"qid": "q1", "repeat": 0}, "repeat", "must be a whole number from 1 on"),
        ({"qid": "q1", "completion": 3}, "completion", "must be text"),
        ({"qid": "q1", "answer": 1.5}, "answer", "must be text or a whole number"),
        ({"qid": "q1", "variant": ["1"]}, "variant", "must be text"),
    ],
)
def test_what_a_row_cannot_mean_is_refused_with_row_and_field(values: dict[str, Any], field: str, problem: str) -> None:
    assert f"answers.csv, row 3: {field}: {problem}" in refusal(values, columns={"item": "qid"})


@pytest.mark.parametrize(
    ("told", "choice"),
    [(1, 0), ("3", 2), ("A", 1), ("B", 0), ("The woman", 1), (None, None), ("invalid", None), ("Invalid", None)],
)
def test_a_closed_answer_is_a_number_a_letter_as_shown_or_a_text(told: int | str | None, choice: int | None) -> None:
    answer = given_answer(told, CLOSED, ITEM, SHOWN_213)

    assert answer.choice == choice
    assert answer.valid == (choice is not None)


@pytest.mark.parametrize("told", [0, 4, "D", "The men", "a"])
def test_an_answer_that_is_no_choice_is_refused(told: int | str) -> None:
    with pytest.raises(ValueError, match="is no choice of the item"):
        given_answer(told, CLOSED, ITEM, SHOWN_213)


def test_an_answer_that_may_mean_two_choices_is_never_guessed() -> None:
    item = make_item(choices=("2", "1", "3"))

    with pytest.raises(ValueError, match="may mean several choices"):
        given_answer("1", CLOSED, item, SHOWN_213)
    assert given_answer(1, CLOSED, item, SHOWN_213).choice == 0


def test_an_annotation_was_shown_no_letters() -> None:
    annotation = Annotation(prompt="annotate-open-answer")

    assert given_answer("The man", annotation, ITEM, Variant(reasoning=True)).choice == 0
    with pytest.raises(ValueError, match="is no choice of the item"):
        given_answer("A", annotation, ITEM, Variant(reasoning=True))


def test_a_rating_off_the_scale_is_invalid_and_no_fault_of_the_file() -> None:
    scale = Variant(points=5, polarity="negative")

    assert given_answer("4", LIKERT, ITEM, scale).rating == 4
    assert given_answer(6, LIKERT, ITEM, scale).reason is InvalidReason.OFF_SCALE
    with pytest.raises(ValueError, match="is no rating"):
        given_answer("often", LIKERT, ITEM, scale)


PAPER = {"name": "paper", "provider": "recorded", "model": "gpt"}


def test_a_recorded_model_is_stored_and_read_back_whole() -> None:
    model = recorded(columns={"item": "qid"}, answers={"A": 1, "-": None}, variants={"neg": "4-negative"})

    assert parse_model(model.model_dump(mode="json")) == model
    assert (queue_for(model), pools_of(model)) == ("recorded.paper", ())


def test_how_a_file_is_laid_out_makes_no_new_conditions(tmp_path: Path) -> None:
    plain = read_study(write_study(tmp_path / "a", models=[PAPER]))
    mapped = read_study(write_study(tmp_path / "b", models=[PAPER | {"columns": {"item": "qid"}}]))

    assert list(plan_conditions(plain)) == list(plan_conditions(mapped))


def test_recorded_answers_cannot_be_constrained(tmp_path: Path) -> None:
    study = write_study(tmp_path, models=[PAPER], formats=[{"format": "closed", "constrain": True}])

    with pytest.raises(InputError, match=r"formats\[0\] constrains the answers, and recorded ones are there"):
        read_study(study)


def test_no_worker_asks_a_recorded_model() -> None:
    settings = Settings(database_url=SecretStr("postgresql://h/d"), broker_url=SecretStr("redis://h/0"))

    with pytest.raises(MisconfiguredError, match="`bothways import` brings its answers"):
        open_provider(recorded(), settings)


def test_a_plan_counts_the_jobs_of_a_recorded_model_and_no_tokens(tmp_path: Path) -> None:
    found = list(volumes(read_study(write_study(tmp_path, models=[PAPER]))))

    assert [(each.jobs, each.prompt_tokens, each.answer_tokens) for each in found] == [(4, 0, 0), (4, 0, 0)]
