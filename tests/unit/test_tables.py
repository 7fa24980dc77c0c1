"""The report's rows: right columns, right denominators, right method, nothing lost."""

import json
from dataclasses import asdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import metrics
from analysis.pairing import RESULT_SCHEMA, View
from analysis.statistics import Method, wilson
from analysis.tables import Report, Row, build, same_figures

Value = str | int | None
SLOTS = {"A": 0, "B": 1}
OUTCOMES = {"N": "invalid", "R": "refused", "F": "failed", "-": None}


def jobs(code: str, *, item: int, cluster: str | None = None, **named: Value) -> list[dict[str, Value]]:
    """Two jobs of one item by the slot letters of orders 12 and 21 (N, R, F, - for the other ends)."""
    made = []
    for letter, order in zip(code, ("12", "21"), strict=True):
        choice = None if letter not in SLOTS else SLOTS[letter] if order == "12" else 1 - SLOTS[letter]
        outcome = OUTCOMES.get(letter, "answered")
        answer: dict[str, Value] = {"first_outcome": outcome, "first_choice": choice}
        answer |= {"final_outcome": outcome, "final_choice": choice}
        job: dict[str, Value] = {"dataset": "d", "model": "m", "repeat": 0, "choices": 2, "target": 0}
        made.append(job | {"item": item, "cluster": cluster or f"c{item}", "order": order} | answer | named)
    return made


def report(*made: list[dict[str, Value]]) -> Report:
    return build(pl.DataFrame([job for pair in made for job in pair], schema=RESULT_SCHEMA))


def final(*made: list[dict[str, Value]]) -> Row:
    (row,) = [row for row in report(*made).rows if row.view is View.FINAL]
    return row


def test_correct_first_goes_by_the_slot_of_the_right_choice_not_by_the_order() -> None:
    always_first = [jobs("AA", item=i, target=i % 2) for i in range(6)]
    row = final(*always_first)
    assert (row.correct_first.accuracy.value, row.wrong_first.accuracy.value) == (1.0, 0.0)
    assert (row.correct_first.accuracy.n, row.wrong_first.accuracy.n) == (6, 6)


def test_invalid_and_refused_are_wrong_and_failed_and_missing_are_left_out() -> None:
    row = final(*(jobs(code, item=i) for i, code in enumerate(["AB", "NB", "RB", "FB", "-B"])))
    first = row.correct_first
    assert (first.accuracy.value, first.accuracy.n) == (1 / 3, 3)
    assert (first.accuracy_answered.value, first.accuracy_answered.n) == (1.0, 1)
    assert (first.counts.invalid, first.counts.refused, first.failed, first.missing) == (1, 1, 1, 1)
    assert (row.wrong_first.accuracy.value, row.wrong_first.accuracy.n) == (1.0, 5)


def test_pairs_with_a_failed_or_missing_side_are_counted_apart() -> None:
    row = final(*(jobs(code, item=i) for i, code in enumerate(["AB", "AA", "AN", "RN", "AF", "-A", "F-"])))
    assert (row.bias.counts.n, row.bias.counts.valid, row.bias.failed, row.bias.missing) == (4, 2, 2, 1)
    assert (row.bias.fairness.value, row.bias.fairness_valid.value) == (-0.25, -0.5)
    assert (row.bias.consistency.value, row.bias.bounds) == (0.5, (0.25, 0.75))


def test_without_a_right_choice_the_columns_hold_the_share_of_choice_0() -> None:
    row = final(*(jobs("AA", item=i, target=None) for i in range(3)), jobs("BB", item=3, target=None))
    assert row.nominal
    assert (row.correct_first.accuracy.value, row.wrong_first.accuracy.value) == (0.75, 0.25)


def test_items_without_a_right_choice_among_others_are_in_the_pairs_only() -> None:
    row = final(jobs("AB", item=0), jobs("AB", item=1), jobs("AA", item=2, target=None))
    assert (row.nominal, row.untargeted) == (False, 2)
    assert (row.correct_first.accuracy.n, row.bias.counts.n) == (2, 3)


def test_one_item_a_cluster_asked_once_gets_wilson_and_mcnemar() -> None:
    row = final(*(jobs("AB" if i < 8 else "AA", item=i) for i in range(10)))
    interval, comparison = row.bias.consistency.interval, row.bias.comparison
    assert (interval.low, interval.high) == wilson(8, 10)
    assert comparison is not None
    assert (comparison.method, comparison.p) == (Method.MCNEMAR, 0.5)


@pytest.mark.parametrize("shared", [{"cluster": True, "repeat": False}, {"cluster": False, "repeat": True}])
def test_shared_clusters_or_repeats_get_the_bootstrap_and_the_sign_flip(shared: dict[str, bool]) -> None:
    made = [
        jobs(
            "AB" if i % 3 else "AA",
            item=i if shared["cluster"] else i // 2,
            cluster=f"c{i // 2}",
            repeat=i % 2 * shared["repeat"],
        )
        for i in range(24)
    ]
    row = final(*made)
    assert row.correct_first.accuracy.interval.method is Method.WILSON_CLUSTERS
    assert row.bias.consistency.interval.method is Method.BOOTSTRAP
    assert row.bias.consistency.interval.clusters == 12
    assert row.bias.comparison is not None
    assert row.bias.comparison.method is Method.SIGN_FLIP


def test_p_values_are_adjusted_over_the_grid_of_a_view() -> None:
    made = [jobs("AA", item=i, model=m) for m in ("m", "n") for i in range(8)]
    tests = [row.bias.comparison for row in report(*made).rows]
    assert [test and (test.p, test.adjusted) for test in tests] == [(2 / 2**8, 4 / 2**8)] * 4


def test_rows_stand_by_dataset_then_model_in_order_of_first_appearance() -> None:
    made = [jobs("AB", item=1, model=m, dataset=d) for m, d in (("z", "y"), ("z", "x"), ("a", "y"), ("a", "w"))]
    cells = [(row.dataset, row.model, row.view.value) for row in report(*made).rows]
    assert cells[::2] == [("y", "z", "first"), ("y", "a", "first"), ("x", "z", "first"), ("w", "a", "first")]
    assert [view for *_, view in cells] == ["first", "final"] * 4


def test_views_agree_until_a_retry_changes_an_answer() -> None:
    made = [jobs("AB", item=1), jobs("NB", item=2)]
    assert same_figures(*report(*made).by_cell()[0])
    made[1][0] |= {"final_outcome": "answered", "final_choice": 0}
    assert not same_figures(*report(*made).by_cell()[0])


def test_nothing_finished_is_absence_not_zero() -> None:
    row = final(jobs("--", item=1), jobs("--", item=2))
    assert (row.jobs.planned, row.jobs.missing, row.bias.missing) == (4, 4, 2)
    figures = (row.correct_first.accuracy, row.wrong_first.accuracy, row.bias.fairness, row.bias.consistency)
    assert [figure.value for figure in figures] == [None] * 4
    assert (row.bias.bounds, row.bias.comparison) == (None, None)


def test_no_results_make_no_rows() -> None:
    assert build(pl.DataFrame(schema=RESULT_SCHEMA)).rows == ()


def test_the_same_results_make_the_same_report() -> None:
    made = [jobs("AA" if i % 5 else "NB", item=i, cluster=f"c{i // 4}") for i in range(80)]
    assert json.dumps(asdict(report(*made))) == json.dumps(asdict(report(*made[::-1])))


letters = st.text("ABNRF-", min_size=2, max_size=2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(letters, st.integers(0, 3), st.booleans()), min_size=1, max_size=30))
def test_every_job_is_counted_once_and_every_interval_has_its_figure(made: list[tuple[str, int, bool]]) -> None:
    planned = [jobs(code, item=i, cluster=f"c{c}")[: 1 if alone else 2] for i, (code, c, alone) in enumerate(made)]
    row = final(*planned)
    total = sum(map(len, planned))
    assert row.jobs.planned == total == 2 * row.bias.joined + row.unpaired
    orders = (row.correct_first, row.wrong_first)
    assert total == sum(order.counts.n + order.failed + order.missing for order in orders)
    assert row.bias.fairness.value == metrics.preference_fairness(row.bias.counts)
    for figure in (orders[0].accuracy, orders[1].accuracy, row.bias.fairness, row.bias.consistency):
        low, high = figure.interval.low, figure.interval.high
        if low is not None and high is not None:
            assert figure.value is not None
            assert -1 <= low <= high <= 1
