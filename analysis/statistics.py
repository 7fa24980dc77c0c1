"""Intervals and tests that respect clusters: questions about one paragraph, and repeats of one question, go together.

The intervals take sums per cluster. Nothing here differs from one report to the next: seeds are derived from names.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from contract.items import canonical_digest

RESAMPLES = 1_000
FLIPS = 9_999
FEW_CLUSTERS = 20
LEAST_CLUSTERS = 6  # fewer give a bootstrap so few distinct resamples that its interval contradicts the exact test
_Z = 1.959963984540054  # the 97.5 % point of the standard normal distribution
_CELLS = 1_000_000  # the most random draws held at once
_SAME = 1e-12  # ratios of clusters closer than this are equal: what sums of fractions leave of rounding

Sums = NDArray[np.int64]
Values = NDArray[np.float64]
Amounts = Sums | Values
Statistic = Callable[[Values], Values]
"""From sums, one row a resample and one column a quantity, to one value a row; NaN where it is undefined."""


class Method(StrEnum):
    """How an interval or a p value was come by."""

    WILSON = "Wilson"
    BOOTSTRAP = "cluster bootstrap"
    WILSON_CLUSTERS = "Wilson over clusters"
    MCNEMAR = "exact McNemar"
    SIGN_FLIP = "cluster sign-flip permutation"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A 95 % interval, how it was made, how many clusters hold data; with too few of those, only their number."""

    low: float | None
    high: float | None
    method: Method | None
    clusters: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A two-sided p value for "neither slot is favoured", alone and adjusted for the grid it stands in."""

    p: float
    method: Method
    adjusted: float | None = None


def seed_for(*names: str) -> int:
    """The seed for the figure of these names (dataset, model, figure): the same names, the same report."""
    return int(canonical_digest(list(names))[:16], 16)


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share of `n` > 0; `successes` may be a fraction of a whole number."""
    share, scale = successes / n, 1 + _Z**2 / n
    centre = (share + _Z**2 / (2 * n)) / scale
    reach = _Z / scale * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    # A share of none or all touches its end exactly; rounding must not push the interval off the figure.
    return min(max(0.0, centre - reach), share), max(min(1.0, centre + reach), share)


def share_interval(hits: Amounts, totals: Sums, *, independent: bool, seed: int) -> Interval:
    """The interval of the share sum(hits) / sum(totals), 0 to 1; `hits` may be fractions, where not `independent`.

    Wilson where the observations are `independent` (each cluster holds one item, asked once), else a percentile
    bootstrap over whole clusters. Clusters with nothing in `totals` take no part; with fewer than LEAST_CLUSTERS (two,
    where independent) there is no interval. Where every cluster has the same ratio (all correct, say) each resample
    equals the next, and the bootstrap would claim certainty: then it is Wilson's interval with the number of clusters
    as n, as if a cluster were a single observation, which is never too sure. Percentile intervals are somewhat too
    narrow below FEW_CLUSTERS clusters.
    """
    hits, totals = hits[totals > 0], totals[totals > 0]
    if totals.size < (2 if independent else LEAST_CLUSTERS):
        return _interval(None, None, totals)
    if independent:
        return _interval(wilson(float(hits.sum()), int(totals.sum())), Method.WILSON, totals)
    if np.ptp(hits / totals) < _SAME:
        return _interval(_limits(hits, totals), Method.WILSON_CLUSTERS, totals)
    return _interval(_bootstrap(hits, totals, seed), Method.BOOTSTRAP, totals)


def balance_interval(gains: Amounts, losses: Amounts, totals: Sums, *, seed: int) -> Interval:
    """The interval of (sum(gains) - sum(losses)) / sum(totals), -1 to 1, by the same bootstrap, independent or not.

    Where every cluster has the same ratio the interval reaches from the least gains less the most losses to the most
    gains less the least losses, by Wilson's limits over clusters.
    """
    held = totals > 0
    gains, losses, totals = gains[held], losses[held], totals[held]
    nets = gains - losses
    if totals.size < LEAST_CLUSTERS:
        return _interval(None, None, totals)
    if np.ptp(nets / totals) < _SAME:
        (gain_low, gain_high), (loss_low, loss_high) = _limits(gains, totals), _limits(losses, totals)
        ends = max(-1.0, gain_low - loss_high), min(1.0, gain_high - loss_low)
        return _interval(ends, Method.WILSON_CLUSTERS, totals)
    return _interval(_bootstrap(nets, totals, seed), Method.BOOTSTRAP, totals)


def statistic_interval(sums: Values, statistic: Statistic, *, seed: int) -> Interval:
    """The interval of any statistic of sums, by the same bootstrap: one row a cluster that holds data, in any order.

    Resamples in which the statistic is undefined are left out. There is no interval with fewer than LEAST_CLUSTERS, and
    none where all resamples agree: that is certainty for want of data. For shares and balances, which have limits that
    allow for it, take `share_interval` and `balance_interval`.
    """
    if len(sums) < LEAST_CLUSTERS:
        return Interval(low=None, high=None, method=None, clusters=len(sums))
    values = statistic(_resampled(sums, seed))
    values = values[~np.isnan(values)]
    if not values.size or np.ptp(values) < _SAME:
        return Interval(low=None, high=None, method=None, clusters=len(sums))
    low, high = np.percentile(values, [2.5, 97.5])
    return Interval(low=float(low), high=float(high), method=Method.BOOTSTRAP, clusters=len(sums))


def significant(interval: Interval) -> bool | None:
    """Whether the interval leaves zero out, an end at zero being in it; None without an interval."""
    if interval.low is None or interval.high is None:
        return None
    return interval.low > 0 or interval.high < 0


def folded_ends(interval: Interval) -> tuple[float, float] | None:
    """The ends of the interval of a signed figure without its sign; where 0 is in it, the figure can be 0."""
    if interval.low is None or interval.high is None:
        return None
    near, far = sorted((abs(interval.low), abs(interval.high)))
    return 0.0 if interval.low <= 0 <= interval.high else near, far


def mcnemar(primacy: int, recency: int) -> Comparison:
    """The exact McNemar test on the two discordant cells, for independent pairs; p is 1 when both are empty."""
    p = float(binomtest(primacy, primacy + recency).pvalue) if primacy + recency else 1.0
    return Comparison(p=p, method=Method.MCNEMAR)


def sign_flip(nets: Sums, *, seed: int) -> Comparison | None:
    """Permutation test that PF is 0: each cluster's recency minus primacy keeps its size and gets a random sign.

    Exact up to 20 clusters, else 9,999 draws, so that p is never below 0.0001. None with fewer than two clusters. With
    one pair a cluster this is McNemar.
    """
    if nets.size < 2:
        return None
    if nets.size <= FEW_CLUSTERS:
        return Comparison(p=_all_flips(nets), method=Method.SIGN_FLIP)
    draw = np.random.default_rng(seed)
    totals = np.zeros(FLIPS, dtype=np.int64)
    # Clusters of one size are alike, so the number of plus signs among them is all that need be drawn.
    for size, clusters in zip(*np.unique(np.abs(nets), return_counts=True), strict=True):
        totals += size * (2 * draw.binomial(clusters, 0.5, FLIPS) - clusters)
    extreme = np.count_nonzero(np.abs(totals) >= abs(nets.sum()))
    return Comparison(p=float((1 + extreme) / (1 + FLIPS)), method=Method.SIGN_FLIP)


def _all_flips(nets: Sums) -> float:
    """The share of all sign patterns whose sum is as far from 0 as the one observed."""
    reach = int(np.abs(nets).sum())
    ways = np.ones(1)  # of reaching each sum from -reach on, in steps of 2
    for size in np.abs(nets):
        ways = np.pad(ways, (0, int(size))) + np.pad(ways, (int(size), 0))
    sums = np.arange(-reach, reach + 1, 2)
    return float(ways[np.abs(sums) >= abs(int(nets.sum()))].sum() / ways.sum())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, in the order given; None stays None and is not counted as a test."""
    tested = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for done, (p, at) in enumerate(tested):
        floor = max(floor, min(1.0, p * (len(tested) - done)))
        adjusted[at] = floor
    return adjusted


def _interval(ends: tuple[float, float] | None, method: Method | None, totals: Sums) -> Interval:
    low, high = ends or (None, None)
    return Interval(low=low, high=high, method=method, clusters=totals.size)


def _bootstrap(nets: Amounts, totals: Sums, seed: int) -> tuple[float, float]:
    """The 2.5 and 97.5 percentiles of the ratio over resampled clusters."""
    sums = _resampled(np.stack([nets, totals], axis=1).astype(np.float64), seed)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], [2.5, 97.5])
    return float(low), float(high)


def _resampled(sums: Values, seed: int) -> Values:
    """The column sums of each of RESAMPLES resamples of the rows.

    Clusters with equal sums are alike, so how often each distinct row is drawn is multinomial: exactly the bootstrap,
    at the cost of the few distinct rows instead of the many clusters.
    """
    kinds, counts = np.unique(sums, axis=0, return_counts=True)
    draw = np.random.default_rng(seed)
    step = max(1, _CELLS // len(kinds))
    drawn = [
        draw.multinomial(len(sums), counts / len(sums), size=min(step, RESAMPLES - start)) @ kinds
        for start in range(0, RESAMPLES, step)
    ]
    return np.concatenate(drawn)


def _limits(hits: Amounts, totals: Sums) -> tuple[float, float]:
    """Wilson's limits for the share, the number of clusters as n."""
    return wilson(totals.size * float(hits.sum()) / int(totals.sum()), totals.size)
