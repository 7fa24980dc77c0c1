"""PC, PF, accuracy and RC: worked values, and what must hold whatever the counts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics import (
    OrderCounts,
    PairCounts,
    accuracy,
    accuracy_answered,
    count_pairs,
    position_consistency,
    position_consistency_bounds,
    preference_fairness,
    preference_fairness_valid,
    repetition_consistency,
)

Codes = dict[str, int]
codes = st.dictionaries(
    st.text("ABCN", min_size=2, max_size=2), st.integers(min_value=0, max_value=10_000), max_size=16
)
complete = st.dictionaries(st.text("AB", min_size=2, max_size=2), st.integers(min_value=1, max_value=500), min_size=1)


def shi_printed_route(counts: PairCounts) -> float:
    """PF as Shi et al. 2024 print it: raw score, then scaled from [S_min, S_max] to [-1, 1]; 0 where undefined."""
    flipped = counts.primacy + counts.recency
    ipr, irr = (counts.primacy / flipped, counts.recency / flipped) if flipped else (0.0, 0.0)
    raw = counts.recency * irr - counts.primacy * ipr
    s_min, s_max = -counts.n, counts.n
    return (raw - s_min) / (s_max - s_min) * 2 - 1 if counts.n else 0.0


def test_pf_is_minus_one_when_the_first_slot_always_wins() -> None:
    always_first = count_pairs({"AA": 10})
    assert preference_fairness(always_first) == -1.0
    assert position_consistency(always_first) == 0.0


def test_pf_is_plus_one_when_the_second_slot_always_wins() -> None:
    assert preference_fairness(count_pairs({"BB": 10})) == 1.0


@pytest.mark.parametrize("code", ["AB", "BA"])
def test_the_same_answer_both_ways_is_consistent_and_fair(code: str) -> None:
    counts = count_pairs({code: 3})
    assert (position_consistency(counts), preference_fairness(counts)) == (1.0, 0.0)


def test_primacy_and_recency_in_equal_parts_are_fair_and_yet_inconsistent() -> None:
    counts = count_pairs({"AA": 5, "BB": 5})
    assert (position_consistency(counts), preference_fairness(counts)) == (0.0, 0.0)


def test_ties_count_as_shi_counts_them() -> None:
    counts = count_pairs({"AC": 1, "CA": 2, "BC": 4, "CB": 8, "CC": 16, "DA": 32})
    assert counts == PairCounts(primacy=3, recency=12, consistent=16, invalid=32)


def test_invalid_pairs_stay_in_one_denominator_and_leave_the_other() -> None:
    counts = count_pairs({"AB": 6, "AA": 2, "BB": 1, "AN": 1, "NB": 1, "NN": 1})
    assert position_consistency(counts) == pytest.approx(6 / 9)
    assert position_consistency_bounds(counts) == (6 / 12, 9 / 12)
    assert preference_fairness(counts) == pytest.approx(-1 / 12)
    assert preference_fairness_valid(counts) == pytest.approx(-1 / 9)


def test_a_unit_worked_by_hand() -> None:
    counts = PairCounts(primacy=1, recency=4, consistent=4, invalid=1)
    assert preference_fairness(counts) == pytest.approx(0.3)
    assert shi_printed_route(counts) == pytest.approx(0.3)


def test_without_a_valid_pair_pc_and_pf_over_valid_are_undefined() -> None:
    counts = count_pairs({"NN": 4})
    assert (position_consistency(counts), preference_fairness_valid(counts)) == (None, None)
    assert (preference_fairness(counts), position_consistency_bounds(counts)) == (0.0, (0.0, 1.0))


def test_without_pairs_everything_is_undefined() -> None:
    counts = count_pairs({})
    assert (preference_fairness(counts), position_consistency(counts)) == (None, None)
    assert position_consistency_bounds(counts) is None


def test_an_invalid_answer_is_wrong_only_in_the_papers_accuracy() -> None:
    counts = OrderCounts(correct=6, answered=8, invalid=1, refused=1)
    assert (accuracy(counts), accuracy_answered(counts)) == (0.6, 0.75)


def test_accuracy_of_nothing_is_undefined() -> None:
    counts = OrderCounts(correct=0, answered=0, invalid=2, refused=0)
    assert (accuracy(counts), accuracy_answered(counts)) == (0.0, None)
    assert accuracy(OrderCounts(correct=0, answered=0, invalid=0, refused=0)) is None


def test_repetition_consistency_counts_no_letter_as_a_letter() -> None:
    assert repetition_consistency(["AAA", "AAB", "NNB", "ABN"]) == pytest.approx((1 + 2 / 3 + 2 / 3 + 1 / 3) / 4)
    assert repetition_consistency([]) is None


@given(codes)
def test_every_pair_is_in_exactly_one_class(given_codes: Codes) -> None:
    assert count_pairs(given_codes).n == sum(given_codes.values())


@given(codes)
def test_shis_printed_route_gives_the_same_pf(given_codes: Codes) -> None:
    counts = count_pairs(given_codes)
    assert (preference_fairness(counts) or 0.0) == pytest.approx(shi_printed_route(counts), abs=1e-9)


@given(complete)
def test_pc_and_the_size_of_pf_share_one_whole(given_codes: Codes) -> None:
    counts = count_pairs(given_codes)
    pc, pf = position_consistency(counts), preference_fairness(counts)
    assert pc is not None
    assert pf is not None
    assert pc + abs(pf) <= 1 + 1e-12


@given(complete)
def test_pf_is_half_the_difference_of_the_slot_shares(given_codes: Codes) -> None:
    counts, letters = count_pairs(given_codes), Counter[str]()
    for code, times in given_codes.items():
        for letter in code:
            letters[letter] += times
    assert preference_fairness(counts) == pytest.approx((letters["B"] - letters["A"]) / (2 * counts.n))


@given(codes)
def test_swapping_the_slots_turns_pf_round_and_leaves_pc(given_codes: Codes) -> None:
    swapped = {code.translate(str.maketrans("AB", "BA")): times for code, times in given_codes.items()}
    one, other = count_pairs(given_codes), count_pairs(swapped)
    assert position_consistency(one) == position_consistency(other)
    assert (preference_fairness(one) or 0.0) == -(preference_fairness(other) or 0.0)


@given(codes)
def test_the_bounds_hold_pc(given_codes: Codes) -> None:
    counts = count_pairs(given_codes)
    bounds, pc = position_consistency_bounds(counts), position_consistency(counts)
    if bounds is not None and pc is not None:
        assert bounds[0] - 1e-12 <= pc <= bounds[1] + 1e-12
