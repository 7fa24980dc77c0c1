"""Intervals cover what they should, tests reject what they should, and neither claims more than the data hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from analysis.statistics import (
    RESAMPLES,
    Interval,
    Method,
    Sums,
    Values,
    balance_interval,
    holm,
    mcnemar,
    seed_for,
    share_interval,
    sign_flip,
    significant,
    statistic_interval,
    wilson,
)


def sums(*values: int) -> Sums:
    return np.array(values, dtype=np.int64)


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def clustered(draw: np.random.Generator, clusters: int, size: int, mean: float) -> tuple[Sums, Sums]:
    """Hits and totals of clusters whose own rates scatter widely round `mean` (a beta distribution)."""
    rates = draw.beta(2 * mean, 2 * (1 - mean), clusters)
    return draw.binomial(size, rates).astype(np.int64), np.full(clusters, size, dtype=np.int64)


def test_wilson_agrees_with_a_hand_computed_interval() -> None:
    # 8 of 10: centre (0.8 + 3.8415 / 20) / 1.38415 = 0.71674, reach 0.22658
    assert wilson(8, 10) == pytest.approx((0.49016, 0.94332), abs=1e-5)


@given(st.integers(min_value=1, max_value=20_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counted: tuple[int, int]) -> None:
    successes, n = counted
    peer = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((peer.low, peer.high), abs=1e-9)
    assert wilson(successes, n)[0] <= successes / n <= wilson(successes, n)[1]


def test_independent_observations_get_wilson() -> None:
    interval = share_interval(sums(*[1] * 8, 0, 0), sums(*[1] * 10), independent=True, seed=1)
    assert (interval.method, ends(interval), interval.clusters) == (Method.WILSON, wilson(8, 10), 10)


def test_the_bootstrap_of_clusters_covers_the_truth_where_wilson_would_not() -> None:
    draw, covered, naive, trials = np.random.default_rng(7), 0, 0, 400
    for trial in range(trials):
        hits, totals = clustered(draw, clusters=60, size=10, mean=0.7)
        low, high = ends(share_interval(hits, totals, independent=False, seed=trial))
        covered += low <= 0.7 <= high
        low, high = wilson(int(hits.sum()), int(totals.sum()))
        naive += low <= 0.7 <= high
    assert 0.91 <= covered / trials <= 0.98
    assert naive / trials < 0.80


def test_the_bootstrap_of_pf_covers_the_truth() -> None:
    draw, covered, trials = np.random.default_rng(8), 0, 400
    for trial in range(trials):
        kinds = draw.multinomial(1, [0.3, 0.1, 0.6], size=200)
        low, high = ends(balance_interval(kinds[:, 1], kinds[:, 0], np.ones(200, dtype=np.int64), seed=trial))
        covered += low <= -0.2 <= high
    assert 0.91 <= covered / trials <= 0.98


def test_the_bootstrap_is_that_of_resampled_clusters() -> None:
    hits, totals = clustered(np.random.default_rng(9), clusters=80, size=6, mean=0.5)
    draw = np.random.default_rng(10)
    chosen = draw.integers(0, 80, size=(20_000, 80))
    plain = np.percentile(hits[chosen].sum(axis=1) / totals[chosen].sum(axis=1), [2.5, 97.5])
    assert ends(share_interval(hits, totals, independent=False, seed=3)) == pytest.approx(tuple(plain), abs=0.012)


def test_the_same_seed_gives_the_same_interval_in_any_order_of_clusters() -> None:
    hits, totals = clustered(np.random.default_rng(11), clusters=50, size=5, mean=0.4)
    one = share_interval(hits, totals, independent=False, seed=seed_for("d", "m", "PC"))
    assert one == share_interval(hits[::-1], totals[::-1], independent=False, seed=seed_for("d", "m", "PC"))
    assert one != share_interval(hits, totals, independent=False, seed=seed_for("d", "n", "PC"))


def test_the_seed_of_a_figure_never_changes() -> None:
    assert seed_for("SQuAD-it-2 Low", "Llama", "PF") == 12_027_923_904_925_991_772


@pytest.mark.parametrize("totals", [sums(), sums(40), sums(40, 0)])
@pytest.mark.parametrize("independent", [True, False])
def test_fewer_than_two_clusters_with_data_have_no_interval(totals: Sums, *, independent: bool) -> None:
    absent = Interval(low=None, high=None, method=None, clusters=int(np.count_nonzero(totals)))
    assert share_interval(totals // 2, totals, independent=independent, seed=1) == absent
    assert balance_interval(totals // 2, totals // 4, totals, seed=1) == absent


def test_clusters_that_all_agree_are_not_taken_for_certainty() -> None:
    interval = share_interval(sums(*[4] * 10), sums(*[4] * 10), independent=False, seed=1)
    assert interval.method is Method.WILSON_CLUSTERS
    assert ends(interval) == wilson(10, 10)
    assert ends(interval)[0] == pytest.approx(0.72247, abs=1e-5)


def test_pf_of_clusters_that_all_agree_reaches_as_far_as_their_number_allows() -> None:
    none, full = sums(*[0] * 10), sums(*[2] * 10)
    reach = wilson(0, 10)[1]
    consistent = balance_interval(none, none, full, seed=1)
    assert consistent.method is Method.WILSON_CLUSTERS
    assert ends(consistent) == pytest.approx((-reach, reach))
    assert ends(balance_interval(none, full, full, seed=1)) == pytest.approx((-1.0, -1.0 + 2 * reach))
    assert ends(balance_interval(full, none, full, seed=1)) == pytest.approx((1.0 - 2 * reach, 1.0))


def ratio(sums: Values) -> Values:
    """The first column over the second."""
    return np.asarray(sums[:, 0] / sums[:, 1], dtype=np.float64)


def test_the_bootstrap_of_any_statistic_is_that_of_a_share_where_it_is_one() -> None:
    hits, totals = clustered(np.random.default_rng(13), clusters=40, size=7, mean=0.6)
    both = np.stack([hits, totals], axis=1).astype(np.float64)
    assert statistic_interval(both, ratio, seed=5) == share_interval(hits, totals, independent=False, seed=5)


def test_the_bootstrap_of_any_statistic_sees_all_resamples_at_once_in_any_order_of_clusters() -> None:
    seen, draw = [], np.random.default_rng(14)
    rows = draw.random((30, 3))

    def difference(sums: Values) -> Values:
        seen.append(sums.shape)
        return np.asarray(sums[:, 0] / sums[:, 2] - sums[:, 1] / sums[:, 2], dtype=np.float64)

    interval = statistic_interval(rows, difference, seed=6)
    assert seen == [(RESAMPLES, 3)]
    assert interval == statistic_interval(rows[::-1], difference, seed=6)
    chosen = draw.integers(0, 30, size=(20_000, 30))
    plain = np.percentile(difference(rows[chosen].sum(axis=1)), [2.5, 97.5])
    assert ends(interval) == pytest.approx(tuple(plain), abs=0.04)


def test_resamples_in_which_a_statistic_is_undefined_are_left_out() -> None:
    rows = np.array([[at, float(at > 6)] for at in range(8)])  # one cluster alone has something to divide by

    def defined(sums: Values) -> Values:
        return np.where(sums[:, 1] > 0, sums[:, 0] / np.maximum(sums[:, 1], 1), np.nan)

    low, high = ends(statistic_interval(rows, defined, seed=7))
    assert low < 28 < high


def test_a_statistic_that_resamples_cannot_move_has_no_interval() -> None:
    absent = Interval(low=None, high=None, method=None, clusters=9)
    assert statistic_interval(np.ones((9, 2)), ratio, seed=1) == absent
    assert statistic_interval(np.ones((9, 2)), lambda sums: np.full(len(sums), np.nan), seed=1) == absent
    assert statistic_interval(np.arange(10.0).reshape(5, 2), ratio, seed=1).low is None


def test_fractions_are_bootstrapped_like_whole_numbers() -> None:
    hits, totals = clustered(np.random.default_rng(15), clusters=40, size=8, mean=0.6)
    whole = share_interval(hits, totals, independent=False, seed=8)
    halved = share_interval(hits.astype(np.float64) * 0.5, totals, independent=False, seed=8)
    assert ends(halved) == pytest.approx(tuple(end / 2 for end in ends(whole)))
    gains, losses = (part.astype(np.float64) / 3 for part in (hits, totals - hits))
    assert ends(balance_interval(gains, losses, totals, seed=8)) == pytest.approx(
        tuple((2 * end - 1) / 3 for end in ends(whole))
    )


def test_fractions_that_differ_by_rounding_alone_all_agree() -> None:
    totals = sums(*[3] * 5, *[7] * 5)
    interval = share_interval(totals.astype(np.float64) * 0.1, totals, independent=False, seed=1)
    assert interval.method is Method.WILSON_CLUSTERS
    assert ends(interval) == pytest.approx(wilson(1, 10))


def between(low: float | None, high: float | None) -> Interval:
    return Interval(low=low, high=high, method=None, clusters=10)


def test_an_interval_is_significant_where_it_leaves_zero_out() -> None:
    assert significant(between(0.01, 0.2)) is significant(between(-0.2, -0.01)) is True
    assert significant(between(-0.1, 0.2)) is significant(between(0.0, 0.2)) is significant(between(-0.2, 0.0)) is False
    assert significant(between(None, None)) is None


def test_mcnemar_weighs_the_discordant_pairs_only() -> None:
    assert mcnemar(1, 5).p == pytest.approx(2 * (1 + 6) / 2**6)
    assert mcnemar(0, 0).p == 1.0


def test_the_sign_flip_of_single_pairs_is_mcnemar() -> None:
    flipped = sign_flip(sums(*[-1] * 30, *[1] * 14, *[0] * 200), seed=1)
    assert flipped is not None
    assert flipped.p == pytest.approx(mcnemar(30, 14).p, abs=0.005)


def test_pairs_that_copy_one_another_are_no_further_evidence() -> None:
    once, copied = sign_flip(sums(*[-1] * 9, 1, 1), seed=1), sign_flip(sums(*[-50] * 9, 50, 50), seed=1)
    assert once is not None
    assert copied is not None
    assert once.p == pytest.approx(copied.p, abs=0.01)
    assert copied.p > 0.03


def test_the_sign_flip_rejects_at_its_level_when_no_slot_is_favoured() -> None:
    draw, rejected, trials = np.random.default_rng(12), 0, 400
    for trial in range(trials):
        sizes = draw.integers(1, 8, size=40) * draw.choice([-1, 1], size=40)
        comparison = sign_flip(sizes, seed=trial)
        assert comparison is not None
        rejected += comparison.p < 0.05
    assert 0.02 <= rejected / trials <= 0.085


def test_one_cluster_cannot_be_tested() -> None:
    assert sign_flip(sums(12), seed=1) is None


def test_holm_steps_down_and_never_lets_a_larger_p_overtake() -> None:
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])


def test_holm_stops_at_one() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
