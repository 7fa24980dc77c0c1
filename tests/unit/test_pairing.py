"""Pairing: both orders of a question meet, in slots, and nothing is lost on the way."""

import polars as pl
import pytest
from polars.exceptions import ComputeError

from analysis.pairing import RESULT_SCHEMA, View, jobs_in_view, pair

Value = str | int | None
NO_ANSWER: dict[str, Value] = {"first_choice": None, "final_choice": None}


def job(**changed: Value) -> dict[str, Value]:
    """A finished job that chose choice 0 at the first asking."""
    answered: dict[str, Value] = {
        "first_outcome": "answered",
        "first_choice": 0,
        "final_outcome": "answered",
        "final_choice": 0,
    }
    named: dict[str, Value] = {"dataset": "d", "model": "m", "item": 1, "cluster": "c", "repeat": 0, "order": "12"}
    return {**named, "choices": 2, "target": 0, **answered, **changed}


def paired(*jobs: dict[str, Value], view: View = View.FINAL) -> list[dict[str, Value]]:
    return pair(jobs_in_view(pl.DataFrame(jobs, schema=RESULT_SCHEMA), view)).frame.to_dicts()


def test_the_same_choice_in_both_orders_stands_in_two_slots() -> None:
    (row,) = paired(job(), job(order="21"))
    assert (row["slot_12"], row["slot_21"], row["code"]) == (0, 1, "AB")


@pytest.mark.parametrize(("choice_12", "choice_21", "code"), [(0, 0, "AB"), (0, 1, "AA"), (1, 0, "BB"), (1, 1, "BA")])
def test_the_code_is_made_of_slot_letters(choice_12: int, choice_21: int, code: str) -> None:
    (row,) = paired(job(final_choice=choice_12), job(order="21", final_choice=choice_21))
    assert row["code"] == code


def test_each_view_reads_its_own_answer() -> None:
    changed = job(first_outcome="invalid", first_choice=None, final_choice=1)
    assert paired(changed, job(order="21"), view=View.FIRST)[0]["code"] == "NB"
    assert paired(changed, job(order="21"), view=View.FINAL)[0]["code"] == "BB"


@pytest.mark.parametrize("outcome", ["invalid", "refused"])
def test_an_invalid_or_refused_side_makes_an_invalid_pair(outcome: str) -> None:
    (row,) = paired(job(final_outcome=outcome, **NO_ANSWER), job(order="21"))
    assert (row["code"], row["left_out"], row["outcome_12"]) == ("NB", None, outcome)


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("failed", "answered", "failed"),
        (None, "answered", "missing"),
        (None, "invalid", "missing"),
        (None, "failed", "failed"),
    ],
)
def test_a_failed_or_missing_side_leaves_the_pair_out(one: str | None, other: str, why: str) -> None:
    sides = job(final_outcome=one, **NO_ANSWER), job(order="21", final_outcome=other)
    for jobs in (sides, sides[::-1]):
        assert [(row["code"], row["left_out"]) for row in paired(*jobs)] == [(None, why)]


def test_a_job_that_failed_before_any_completion_is_failed_in_the_first_view_too() -> None:
    failed = job(first_outcome=None, final_outcome="failed", **NO_ANSWER)
    assert paired(failed, job(order="21"), view=View.FIRST)[0]["left_out"] == "failed"


def test_repeats_and_models_pair_among_themselves() -> None:
    jobs = [job(model=m, repeat=r, order=o) for m in ("m", "n") for r in (0, 1) for o in ("12", "21")]
    assert [(row["model"], row["repeat"]) for row in paired(*jobs)] == [("m", 0), ("m", 1), ("n", 0), ("n", 1)]


def test_jobs_are_twice_the_pairs_and_the_unpaired() -> None:
    jobs = [job(), job(order="21"), job(item=2), job(item=3, order="21"), job(item=4, choices=3, order="123")]
    frame = pl.DataFrame(jobs, schema=RESULT_SCHEMA)
    pairs = pair(jobs_in_view(frame, View.FIRST))
    assert (pairs.frame.height, pairs.unpaired) == (1, 3)
    assert frame.height == 2 * pairs.frame.height + pairs.unpaired


def test_a_job_that_stands_twice_is_refused() -> None:
    with pytest.raises(ComputeError):
        paired(job(), job(), job(order="21"))


def test_the_reference_is_the_target_or_else_choice_0() -> None:
    jobs = [job(target=1), job(target=1, order="21"), job(target=None), job(target=None, order="21")]
    seen = jobs_in_view(pl.DataFrame(jobs, schema=RESULT_SCHEMA), View.FIRST)
    assert seen["reference_slot"].to_list() == [1, 0, 0, 1]
