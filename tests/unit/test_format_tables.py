"""Formats side by side, the variants of each, rankings and what reverses them: on scores made by hand."""

from typing import Any

import pytest

from analysis.answer_rows import ALL
from analysis.bbq_scores import COMBINED, SUBSETS, BiasScores, OffScale
from analysis.columns import DASH
from analysis.format_findings import Findings, find
from analysis.format_grids import CLEAR, OPEN, counts, formats_beside, one_score, ranking_grid, reversal_grid
from analysis.format_rankings import rankings, reversals
from analysis.format_tables import BIAS, DISTANCES, POLARISATION, FormatTable, by_variant, printed, side_by_side
from analysis.opinion_tables import OpinionScores
from analysis.statistics import Interval, Method, folded_ends
from analysis.tables import Estimate, JobCounts

S_DIS, S_AMB, ACCURACY = BIAS
NOTHING = Estimate(value=None, n=0, interval=Interval(low=None, high=None, method=None, clusters=0))


def about(value: float | None, reach: float | None = 0.02, n: int = 1080) -> Estimate:
    """A value with an interval that reaches so far to both sides; without a reach there is none."""
    ends = (None, None) if value is None or reach is None else (round(value - reach, 9), round(value + reach, 9))
    method = None if reach is None else Method.BOOTSTRAP
    return Estimate(value=value, n=n, interval=Interval(low=ends[0], high=ends[1], method=method, clusters=48))


def jobs(invalid: int = 3, missing: int = 0) -> JobCounts:
    return JobCounts(answered=1080, invalid=invalid, refused=0, failed=0, missing=missing)


def bias(
    model: str = "m", made: str = "closed", variant: str = ALL, subset: str = COMBINED, **given: object
) -> BiasScores:
    """Scores of little bias, unless told otherwise."""
    usual: dict[str, Any] = {"s_dis": about(0.01), "s_amb": about(-0.1), "accuracy": about(0.7), "jobs": jobs()}
    usual |= {"accuracy_disambiguated": None, "polarisation": about(0.2) if made == "likert" else None}
    usual |= {"model": model, "format": made, "variant": variant, "subset": subset, "off_scale": OffScale.LEFT_OUT}
    return BiasScores(**usual | given)


def apart(model: str = "m", made: str = "closed", variant: str = ALL, **given: object) -> OpinionScores:
    usual: dict[str, Any] = {"w_dist": about(0.2), "js_dist": about(0.4), "composite": about(0.3)}
    usual |= {"model": model, "format": made, "variant": variant, "jobs": jobs(), "questions": ()}
    return OpinionScores(**usual | given)


def ranked(**values: tuple[Estimate, Estimate]) -> Findings:
    """The findings of models with an s_DIS by the closed format and another by the open one."""
    pairs = [(model, *both) for model, both in values.items()]
    return find(
        [bias(model, "closed", s_dis=closed) for model, closed, _ in pairs]
        + [bias(model, "open", s_dis=opened) for model, _, opened in pairs],
        [],
    )


def texts(table: FormatTable) -> list[list[str]]:
    return [[printed(cell, table.score) for cell in line.cells] for line in table.lines]


def test_table_2_has_a_line_a_model_and_subset_and_three_formats_under_each_score() -> None:
    made = [bias(m, f, subset=s) for m in ("b", "a") for s in reversed(SUBSETS) for f in ("open", "closed", "likert")]
    grid = formats_beside(side_by_side(made, BIAS))
    assert grid.halves == (("s_DIS", 2, 4), ("s_AMB", 5, 7), ("accuracy", 8, 10))
    assert grid.headings == ("Model", "Subset", *("closed", "Likert", "open") * 3)
    assert [cells[:2] for cells in grid.cells] == [
        *(("b", "labels"), ("", "names"), ("", "combined")),
        *(("a", "labels"), ("", "names"), ("", "combined")),
    ]
    assert grid.cells[0][2:] == ("1.0",) * 3 + ("-10.0*",) * 3 + ("70.0",) * 3
    assert grid.opens == (True, False, False) * 2


def test_a_format_that_was_not_asked_is_a_dash_and_never_a_zero() -> None:
    (table, *_) = side_by_side([bias("a", "closed", s_dis=about(0.0)), bias("b", "open", s_dis=NOTHING)], BIAS)
    assert texts(table) == [["0.0", DASH, DASH], [DASH, DASH, DASH]]


def test_only_pooled_variants_stand_side_by_side() -> None:
    (table, *_) = side_by_side([bias(variant="123", s_dis=about(0.9)), bias(s_dis=about(0.1))], BIAS)
    assert texts(table) == [["10.0*", DASH, DASH]]
    assert side_by_side([], BIAS) == []


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (about(0.083, 0.02), "8.3* [6.3, 10.3]"),
        (about(-0.083, 0.02), "-8.3* [-10.3, -6.3]"),
        (about(0.02, 0.02), "2.0 [0.0, 4.0]"),
        (about(-0.0004, 0.02), "0.0 [-2.0, 2.0]"),
        (about(0.5, None), f"50.0 [{DASH}]"),
        (NOTHING, DASH),
    ],
)
def test_a_star_says_that_the_interval_leaves_zero_out(estimate: Estimate, text: str) -> None:
    (table, *_) = side_by_side([bias(s_dis=estimate)], BIAS)
    assert printed(table.lines[0].cells[0], S_DIS, interval=True) == text


def test_accuracies_and_distances_bear_no_star() -> None:
    *_, accuracy = side_by_side([bias()], BIAS)
    w_dist, *_ = side_by_side([apart()], DISTANCES)
    assert one_score(accuracy, intervals=True).cells == (("m", COMBINED, "70.0 [68.0, 72.0]", DASH, DASH),)
    assert one_score(w_dist, intervals=True).cells == (("m", "0.200 [0.180, 0.220]", DASH, DASH),)


def test_counts_tell_the_n_of_each_score_and_what_is_invalid() -> None:
    made = [bias(s_dis=about(0.1, n=1234), s_amb=about(0.1, n=2000), jobs=jobs(invalid=37))]
    s_dis, s_amb, _ = side_by_side(made, BIAS)
    grid = counts({"n DIS": s_dis, "n AMB": s_amb})
    assert grid.headings == ("Model", "Subset", *("n DIS", "n AMB", "invalid") * 3)
    assert grid.halves == (("closed", 2, 4), ("Likert", 5, 7), ("open", 8, 10))
    assert grid.cells == (("m", COMBINED, "1,234", "2,000", "37", *(DASH,) * 6),)


def test_scales_stand_by_points_with_the_positive_one_first() -> None:
    scales = ["10-negative", "2-negative", "10-positive", "2-positive"]
    table, *_ = by_variant([bias(made="likert", variant=scale) for scale in (*scales, ALL)], [S_DIS])
    assert table.columns == ("2-positive", "2-negative", "10-positive", "10-negative")


def test_orders_of_different_numbers_of_choices_are_in_tables_of_their_own() -> None:
    made = [apart(variant=order) for order in ("1234", "321", "4321", "123")]
    tables = by_variant(made, DISTANCES[:1])
    assert [table.columns for table in tables] == [("123", "321"), ("1234", "4321")]
    assert [table.title for table in tables] == [
        "OpinionQA, WDist by order of 3 choices",
        "OpinionQA, WDist by order of 4 choices",
    ]


def test_a_variant_that_one_model_was_not_asked_is_a_gap_in_its_line() -> None:
    made = [bias("a", "open", "reasoning"), bias("a", "open", "no-reasoning"), bias("b", "open", "reasoning")]
    (table,) = by_variant(made, [S_AMB])
    assert texts(table) == [["-10.0*", "-10.0*"], ["-10.0*", DASH]]
    assert table.lines[1].cells[1] is None


def test_only_ratings_have_a_table_of_polarisation() -> None:
    made = [bias(variant="123"), bias(made="likert", variant="4-positive"), bias(), bias(made="likert")]
    assert [table.format for table in by_variant(made, [POLARISATION])] == ["likert"]
    assert len(find(made, []).polarisation) == 1
    assert find([bias()], []).polarisation == ()


def test_models_are_ranked_by_bias_without_its_sign_and_by_accuracy_from_the_top() -> None:
    made = [
        bias("a", s_dis=about(-0.3), accuracy=about(0.9)),
        bias("b", s_dis=about(0.1), accuracy=about(0.5)),
        bias("c", s_dis=NOTHING, accuracy=about(0.7)),
    ]
    found = {ranking.score.name: ranking.places for ranking in rankings(side_by_side(made, BIAS))}
    assert [(each.place, each.model) for each in found["s_DIS"]] == [(1, "b"), (2, "a")]
    assert [(each.place, each.model) for each in found["accuracy"]] == [(1, "a"), (2, "c"), (3, "b")]
    assert (found["s_DIS"][1].value, found["s_DIS"][1].low, found["s_DIS"][1].high) == (0.3, 0.28, 0.32)


def test_models_with_equal_values_share_a_place_and_are_never_reversed() -> None:
    made = ranked(a=(about(0.1), about(0.3)), b=(about(-0.1), about(0.1)))
    assert [place.place for place in made.rankings[0].places] == [1, 1]
    assert made.reversals == ()


def test_a_reversal_is_clear_where_intervals_are_apart_in_both_formats() -> None:
    (found,) = ranked(a=(about(0.1), about(0.4)), b=(about(0.3), about(-0.2))).reversals
    assert (found.score.name, found.subset, found.models) == ("s_DIS", COMBINED, ("a", "b"))
    assert (found.formats, found.clear) == (("closed", "open"), True)


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param((about(0.21), about(0.2)), id="overlapping"),
        pytest.param((about(0.5, None), about(0.2)), id="without an interval"),
        pytest.param((about(0.3, 0.125), about(0.125, 0.05)), id="touching"),
    ],
)
def test_a_reversal_is_open_where_intervals_overlap_or_are_lacking(opened: tuple[Estimate, Estimate]) -> None:
    (found,) = ranked(a=(about(0.1), opened[0]), b=(about(0.3), opened[1])).reversals
    assert not found.clear


def test_a_model_that_one_format_did_not_ask_reverses_nothing() -> None:
    assert ranked(a=(about(0.1), NOTHING), b=(about(0.3), about(0.2))).reversals == ()


def test_reversals_are_marked_in_the_ranking_and_listed() -> None:
    made = ranked(
        a=(about(0.1), about(0.4)), b=(about(0.3), about(0.2)), c=(about(0.31), about(0.19)), d=(about(0.9), about(0.9))
    )
    grid = ranking_grid(made.rankings[:2], made.reversals)
    assert grid.cells == (
        ("|s_DIS|", COMBINED, "a", f"1 (10.0) {CLEAR}", DASH, f"3 (40.0) {CLEAR}"),
        ("", "", "b", f"2 (30.0) {CLEAR}", DASH, f"2 (20.0) {CLEAR}"),
        ("", "", "c", f"3 (31.0) {CLEAR}", DASH, f"1 (19.0) {CLEAR}"),
        ("", "", "d", "4 (90.0)", DASH, "4 (90.0)"),
    )
    assert reversal_grid(made.reversals).cells == (
        ("|s_DIS|", COMBINED, "a", "b", "closed", "open", "clear"),
        ("", "", "a", "c", "closed", "open", "clear"),
        ("", "", "b", "c", "closed", "open", "open"),
    )


def test_models_in_open_reversals_alone_bear_the_other_mark() -> None:
    made = ranked(a=(about(0.1), about(0.3)), b=(about(0.11), about(0.2)))
    assert [cells[3] for cells in ranking_grid(made.rankings[:2], made.reversals).cells] == [
        f"1 (10.0) {OPEN}",
        f"2 (11.0) {OPEN}",
    ]


def test_subsets_are_ranked_apart() -> None:
    made = [bias(m, f, subset=s) for m in ("a", "b") for f in ("closed", "open") for s in ("labels", "names")]
    found = rankings(side_by_side(made, [S_DIS]))
    assert [(each.subset, each.format) for each in found] == [
        *(("labels", "closed"), ("labels", "open")),
        *(("names", "closed"), ("names", "open")),
    ]
    assert reversals(found) == []


def test_an_interval_without_its_sign_begins_at_0_where_it_holds_0() -> None:
    ends = [(-0.3, -0.1), (-0.3, 0.1), (0.1, 0.3), (0.0, 0.2)]
    made = [folded_ends(Interval(low=low, high=high, method=None, clusters=9)) for low, high in ends]
    assert made == [(0.1, 0.3), (0.0, 0.3), (0.1, 0.3), (0.0, 0.2)]
    assert folded_ends(NOTHING.interval) is None


def test_notes_say_what_became_of_ratings_off_their_scale_and_of_jobs_without_answer() -> None:
    notes = " ".join(find([bias(made="likert", jobs=jobs(missing=4)), bias(subset="names")], []).notes)
    assert "Ratings off their scale are left out" in notes
    assert "0 refused, 0 failed, 4 missing" in notes
    kept = find([bias(made="likert", off_scale=OffScale.AS_PUBLISHED)], [])
    assert "stay in the denominators" in " ".join(kept.notes)
    assert "Ratings" not in " ".join(find([bias()], []).notes)
