"""A paper's table beside what was measured."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison import FAIRNESS, compare
from analysis.metrics import count_pairs, marginal_fairness, preference_fairness
from analysis.published import PrintedHalf, PrintedRow, papers, printed
from analysis.tables import Report
from tests.unit.test_tables import jobs, report

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
TEN = PrintedRow(
    dataset="d",
    model="Printed",
    n=10,
    correct_first=PrintedHalf(accuracy=0.9, invalid=1),
    wrong_first=PrintedHalf(accuracy=0.5, invalid=0),
)


def measured(*codes: str, model: str) -> Report:
    """The report of pairs of slot letters, each of an item of its own."""
    return report(*(jobs(code, item=number, dataset="d", model=model) for number, code in enumerate(codes)))


def test_the_table_of_the_positional_bias_paper_is_whole() -> None:
    rows = printed("positional-bias")

    assert papers() == ("positional-bias",)
    assert len(rows) == len({(row.dataset, row.model) for row in rows}) == 5 * 5
    assert {row.n for row in rows} == {7609, 14_346, 807}
    assert rows[10] == PrintedRow(
        dataset="squad-it-2-high",
        model="Llama-3.1-8B",
        n=7609,
        correct_first=PrintedHalf(accuracy=0.648, invalid=1897),
        wrong_first=PrintedHalf(accuracy=0.108, invalid=1849),
    )


def test_an_unknown_paper_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no paper 'positional'; known: positional-bias"):
        printed("positional")


@pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with the expected figures")
def test_the_pf_that_the_paper_s_table_implies_is_the_expected_one() -> None:
    text = (Path(FOLDER or "") / "oracles/position_bias.json").read_text(encoding="utf-8")
    expected = json.loads(text)["seed_table1_marginals"]

    implied = [
        marginal_fairness(
            n=row.n,
            correct_first=(row.correct_first.accuracy, row.correct_first.invalid),
            wrong_first=(row.wrong_first.accuracy, row.wrong_first.invalid),
        )
        for row in printed("positional-bias")
    ]

    assert implied == pytest.approx([each["marginal_pf_over_all"] for each in expected], abs=5e-5)


@given(st.lists(st.sampled_from(["AA", "AB", "BA", "BB"]), min_size=1))
def test_without_invalid_answers_the_margins_give_the_pf_of_the_pairs(codes: list[str]) -> None:
    n = len(codes)
    counts = count_pairs({code: codes.count(code) for code in set(codes)})
    right_first = sum(code[0] == "A" for code in codes) / n
    right_second = sum(code[1] == "B" for code in codes) / n

    implied = marginal_fairness(n=n, correct_first=(right_first, 0), wrong_first=(right_second, 0))

    assert implied == pytest.approx(preference_fairness(counts), abs=1e-12)


def test_each_figure_of_a_cell_stands_beside_the_measured_one() -> None:
    found_in = measured(*["AB"] * 6, "AA", "AA", "BB", "NB", model="Printed")

    found = {each.figure: each for each in compare(found_in, [TEN], {})}

    assert list(found) == [
        "accuracy, correct first",
        "invalid, correct first",
        "accuracy, wrong first",
        "invalid, wrong first",
        FAIRNESS,
    ]
    assert [(each.printed, each.measured) for each in found.values()] == [
        (0.9, pytest.approx(0.8)),
        (0.1, pytest.approx(0.1)),
        (0.5, pytest.approx(0.8)),
        (0.0, 0.0),
        (pytest.approx(-0.45), pytest.approx(-0.1)),
    ]
    assert found["accuracy, correct first"].difference == pytest.approx(-0.1)
    assert {each.n for each in found.values()} == {10}


def test_a_printed_figure_is_inside_the_interval_or_not_or_there_is_none() -> None:
    found_in = measured(*["AB"] * 10, model="Printed")

    found = {each.figure: each.inside for each in compare(found_in, [TEN], {})}

    assert found["accuracy, correct first"] is True
    assert found["accuracy, wrong first"] is False
    assert found["invalid, correct first"] is True


def test_without_an_interval_nothing_is_inside_or_outside() -> None:
    assert {each.inside for each in compare(measured("AB", model="Printed"), [TEN], {})} == {None}


def test_what_was_not_measured_is_absent_and_never_zero() -> None:
    for each in compare(measured("AB", model="another"), [TEN], {}):
        assert (each.measured, each.measured_as, each.difference, each.inside, each.n) == (None, None, None, None, 0)


def test_a_model_may_stand_for_one_that_is_retired() -> None:
    found = compare(measured("AB", model="newer"), [TEN], {"newer": "Printed"})

    assert {each.measured_as for each in found} == {"newer"}
    assert {each.model for each in found} == {"Printed"}


def test_first_answers_are_compared_because_papers_ask_once() -> None:
    retried = [jobs("NB", item=number, dataset="d", model="Printed") for number in range(10)]
    for pair in retried:
        pair[0] |= {"final_outcome": "answered", "final_choice": 0}

    found = {each.figure: each.measured for each in compare(report(*retried), [TEN], {})}

    assert found["accuracy, correct first"] == 0.0
    assert found["invalid, correct first"] == 1.0
