"""A figure with its n and its interval, out of sums per cluster: the value is the ratio that the interval resamples."""

from analysis.statistics import Amounts, Sums, balance_interval, share_interval
from analysis.tables import Estimate


def share(hits: Amounts, totals: Sums, *, seed: int) -> Estimate:
    """sum(hits) / sum(totals), 0 to 1, one entry a cluster; the value is None where the totals are 0."""
    interval = share_interval(hits, totals, independent=False, seed=seed)
    return Estimate(value=_ratio(float(hits.sum()), totals), n=int(totals.sum()), interval=interval)


def balance(gains: Amounts, losses: Amounts, totals: Sums, *, seed: int) -> Estimate:
    """(sum(gains) - sum(losses)) / sum(totals), -1 to 1, in the same way."""
    interval = balance_interval(gains, losses, totals, seed=seed)
    return Estimate(value=_ratio(float(gains.sum() - losses.sum()), totals), n=int(totals.sum()), interval=interval)


def _ratio(part: float, totals: Sums) -> float | None:
    whole = int(totals.sum())
    return part / whole if whole else None
