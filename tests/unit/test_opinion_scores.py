"""Distances from the human shares: worked values, peers, and what must hold whatever the shares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from analysis.opinion_scores import (
    OpinionQuestion,
    aligned,
    composite,
    distances,
    js_dist,
    shares_of_choices,
    shares_of_ratings,
    w_dist,
)
from analysis.opinion_tables import OPINION_SCHEMA, OpinionScores, measure
from analysis.statistics import Method

Job = dict[str, Any]
SAME = 1e-9
QUESTION = OpinionQuestion(
    key="q", choices=("Yes", "No", "Refused"), ordinals=(1.0, 2.0, None), human=(0.5, 0.4, 0.1), refused=2
)
ordinals = st.sampled_from([(1.0, 2.0), (1.0, 2.0, 1.5), (1.0, 2.0, 3.0, 4.0, 2.5), (2.0, 2.0), (1.0, 3.0, 7.0)])
amounts = st.integers(min_value=0, max_value=1_000)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[float], list[float], tuple[float | None, ...]]:
    """The shares of two sides over the same choices, the last one without ordinal."""
    places = draw(ordinals)
    sides = st.lists(amounts, min_size=len(places) + 1, max_size=len(places) + 1).filter(any)
    p, q = draw(sides), draw(sides)
    return [x / sum(p) for x in p], [x / sum(q) for x in q], (*places, None)


def job(**values: object) -> Job:
    """A closed answer to QUESTION that chose its first choice, unless told otherwise."""
    usual: Job = {"model": "m", "format": "closed", "variant": "v", "question": "q", "part": 0, "repeat": 1}
    return usual | {"outcome": "answered", "choice": 0} | values


def rated(choice: int, rating: int | None, points: int, polarity: str = "positive", **values: object) -> Job:
    return job(format="likert", choice=choice, rating=rating, points=points, polarity=polarity) | values


def measured(*jobs: Mapping[str, Any], questions: tuple[OpinionQuestion, ...] = (QUESTION,)) -> list[OpinionScores]:
    return measure(pl.DataFrame(list(jobs), schema=OPINION_SCHEMA), questions)


def shares(scores: OpinionScores) -> tuple[float, ...] | None:
    (question,) = scores.questions
    return question.shares


def test_a_neutral_choice_lies_between_the_others_wherever_it_stands_in_the_list() -> None:
    assert w_dist((1, 0, 0, 0), (0, 0, 1, 0), (1.0, 2.0, 1.5, None)) == 0.5


def test_refusals_are_left_out_of_one_distance_and_counted_by_the_other() -> None:
    human, model = (0.5, 0.5, 0.0), (0.25, 0.25, 0.5)
    assert w_dist(human, model, (1.0, 2.0, None)) == 0.0
    assert js_dist(human, model) == pytest.approx(0.557923, abs=1e-6)


def test_who_only_refuses_is_not_far_by_w_dist_and_as_far_as_can_be_by_js_dist() -> None:
    human, model = (0.6, 0.4, 0.0), (0.0, 0.0, 1.0)
    assert w_dist(human, model, (1.0, 2.0, None)) == w_dist(model, human, (1.0, 2.0, None)) == 0.0
    assert js_dist(human, model) == pytest.approx(1.0)


def test_ordinals_that_are_all_equal_have_no_distance() -> None:
    assert w_dist((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (2.0, 2.0, None)) == 0.0
    assert w_dist((1.0, 0.0), (0.0, 1.0), (2.0, None)) == 0.0


def test_a_choice_without_ordinal_is_left_out_like_a_refusal() -> None:
    assert w_dist((0.5, 0.1, 0.4, 0.0), (0.25, 0.05, 0.2, 0.5), (1.0, 2.0, None, None)) == pytest.approx(0.0)


def test_without_any_ordinal_w_dist_is_zero() -> None:
    assert w_dist((1.0, 0.0), (0.0, 1.0), (None, None)) == 0.0


def test_the_composite_is_the_mean_of_both_unless_told_otherwise() -> None:
    assert composite(0.2, 0.6) == pytest.approx(0.4)
    assert composite(0.2, 0.6, alpha=0.25) == pytest.approx(0.5)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_w_dist_is_scipys_over_the_range(case: tuple[list[float], list[float], tuple[float | None, ...]]) -> None:
    p, q, places = case
    kept = np.array([place for place in places if place is not None])
    if sum(p[:-1]) and sum(q[:-1]) and np.ptp(kept):
        assert w_dist(p, q, places) == pytest.approx(
            wasserstein_distance(kept, kept, p[:-1], q[:-1]) / np.ptp(kept), abs=SAME
        )


@settings(max_examples=40, deadline=None)
@given(cases())
def test_js_dist_is_scipys_on_shares_that_are_raised_a_little(
    case: tuple[list[float], list[float], tuple[float | None, ...]],
) -> None:
    p, q = np.array(case[0]) + 1e-12, np.array(case[1]) + 1e-12
    assert js_dist(case[0], case[1]) ** 2 == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=SAME)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_distances_lie_between_none_and_whole_and_are_the_same_both_ways(
    case: tuple[list[float], list[float], tuple[float | None, ...]],
) -> None:
    p, q, places = case
    for one, other in ((w_dist(p, q, places), w_dist(q, p, places)), (js_dist(p, q), js_dist(q, p))):
        assert 0 <= one <= 1
        assert one == pytest.approx(other, abs=SAME)
    assert (w_dist(p, p, places), js_dist(p, p)) == (0.0, 0.0)


def test_human_shares_go_by_the_text_and_add_up_to_one() -> None:
    assert aligned(("Yes", "No", "Refused"), {"No": 0.6, "Yes": 0.2}) == pytest.approx((0.25, 0.75, 0.0))


def test_a_human_text_that_is_no_choice_is_an_error_and_no_lost_mass() -> None:
    with pytest.raises(ValueError, match=r"human shares of \['Noo'\] match none of the choices"):
        aligned(("Yes", "No", "Refused"), {"Yes": 0.2, "Noo": 0.8})


def test_a_choice_without_human_share_is_an_error_unless_it_is_the_refusal() -> None:
    with pytest.raises(ValueError, match=r"no human share for \['No'\]"):
        aligned(("Yes", "No", "Refused"), {"Yes": 0.2, "Refused": 0.8})
    with pytest.raises(ValueError, match="add up to nothing"):
        aligned(("Yes", "Refused"), {"Yes": 0.0})


def test_shares_of_ratings_are_mean_agreements_by_their_sum() -> None:
    assert shares_of_ratings((3.0, 0.5, 0.0), (4, 2, 0), refused=2) == pytest.approx((0.75, 0.25, 0.0))


def test_shares_of_nothing_are_undefined_and_not_even() -> None:
    assert shares_of_choices((0, 0, 0)) is None
    assert shares_of_ratings((1.0, 0.0, 0.0), (1, 0, 0), refused=2) is None
    assert shares_of_ratings((0.0, 0.0, 0.0), (1, 1, 0), refused=2) is None


def test_choices_become_shares_of_all_choices_the_refusal_too() -> None:
    found = measured(*(job(choice=choice) for choice in (0, 0, 1, 2)))[-1]
    assert shares(found) == (0.5, 0.25, 0.25)
    expected = distances(QUESTION, (0.5, 0.25, 0.25))
    assert (found.w_dist.value, found.js_dist.value) == (expected.w_dist, expected.js_dist)
    assert found.composite.value == pytest.approx((expected.w_dist + expected.js_dist) / 2)


def test_ratings_become_shares_by_their_agreement() -> None:
    found = measured(rated(0, 5, 5), rated(0, 4, 5), rated(1, 2, 4, "negative"), rated(1, 4, 4, "negative"))[-1]
    assert shares(found) == pytest.approx((0.875 / (0.875 + 1 / 3), (1 / 3) / (0.875 + 1 / 3), 0.0))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(1, 9)), min_size=1, max_size=12))
def test_turning_the_scale_and_its_polarity_round_changes_no_distance(rows: list[tuple[int, int]]) -> None:
    (one,) = measured(*(rated(choice, x, 9) for choice, x in rows))[-1].questions
    (other,) = measured(*(rated(choice, 10 - x, 9, "negative") for choice, x in rows))[-1].questions
    assert one.shares == (None if other.shares is None else pytest.approx(other.shares))


def test_all_variants_pool_the_answers_of_a_question_before_they_have_one_distance() -> None:
    first, second, pooled = measured(*(job(variant=str(choice), choice=choice) for choice in (0, 1)))
    assert (shares(first), shares(second), shares(pooled)) == ((1, 0, 0), (0, 1, 0), (0.5, 0.5, 0))
    assert pooled.w_dist.value == distances(QUESTION, (0.5, 0.5, 0.0)).w_dist
    assert pooled.variant == "all"
    assert first.w_dist.value is not None
    assert second.w_dist.value is not None
    assert pooled.w_dist.value is not None
    assert pooled.w_dist.value < (first.w_dist.value + second.w_dist.value) / 2


def test_a_question_weighs_as_much_as_another_however_often_it_was_answered() -> None:
    other = OpinionQuestion(key="r", choices=("a", "b"), ordinals=(1.0, 2.0), human=(1.0, 0.0), refused=None)
    jobs = [*[job(choice=1)] * 9, job(question="r")]
    found = measured(*jobs, questions=(QUESTION, other))[-1]
    assert found.w_dist.value == pytest.approx((5 / 9 + 0.0) / 2)
    assert found.w_dist.n == 2
    assert [question.n for question in found.questions] == [9, 1]


def test_questions_without_shares_are_kept_and_averaged_nowhere() -> None:
    other = OpinionQuestion(key="r", choices=("a", "b"), ordinals=(1.0, 2.0), human=(1.0, 0.0), refused=None)
    absent = [
        job(question="r", outcome=outcome, choice=None) for outcome in ("invalid", "refused", "failed", "missing")
    ]
    found = measured(job(choice=1), *absent, questions=(QUESTION, other))[-1]
    assert found.w_dist.value == pytest.approx(5 / 9)
    assert found.w_dist.n == 1
    assert (found.questions[1].n, found.questions[1].shares, found.questions[1].distances) == (0, None, None)
    assert (found.jobs.invalid, found.jobs.refused, found.jobs.failed, found.jobs.missing) == (1, 1, 1, 1)
    nothing = measured(job(outcome="missing", choice=None))[-1]
    assert (nothing.w_dist.value, nothing.composite.value, nothing.w_dist.n) == (None, None, 0)


def many(number: int) -> tuple[OpinionQuestion, ...]:
    return tuple(
        OpinionQuestion(
            key=str(at), choices=("a", "b"), ordinals=(1.0, 2.0), human=(at / 20, 1 - at / 20), refused=None
        )
        for at in range(1, number + 1)
    )


def test_intervals_resample_questions() -> None:
    found = measured(*(job(question=question.key) for question in many(19)), questions=many(19))[-1]
    interval = found.w_dist.interval
    assert (interval.method, interval.clusters) == (Method.BOOTSTRAP, 19)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < 0.5 < interval.high


def test_fewer_than_six_questions_have_no_interval() -> None:
    found = measured(*(job(question=question.key) for question in many(5)), questions=many(5))[-1]
    assert found.w_dist.value == pytest.approx(0.85)
    assert found.w_dist.interval.low is None


@pytest.mark.parametrize(
    "wrong",
    [
        job(choice=None),
        job(choice=3),
        job(question="another"),
        job(outcome="no_completion"),
        rated(0, None, 5),
        rated(0, 6, 5),
        rated(0, 3, 5, "pos"),
        rated(2, 3, 5),
    ],
)
def test_an_answer_that_would_have_to_be_guessed_at_is_refused(wrong: Job) -> None:
    with pytest.raises(ValueError, match="1 jobs lack a value"):
        measured(job(), wrong)
