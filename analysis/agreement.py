"""How well two judges of the same answers agree. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.statistics import wilson


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Of `n` answers, how many both judged alike, with Wilson's 95 % interval of that share, and Cohen's kappa.

    Share and interval are None without an answer; kappa is None where chance alone would agree on every one.
    """

    n: int
    agreed: int
    share: float | None
    low: float | None
    high: float | None
    kappa: float | None


def agreement(judged: Sequence[tuple[str, str]]) -> Agreement:
    """The agreement of pairs (one judge's category, the other's).

    Kappa is (observed - expected) / (1 - expected), where by chance each judge would use each category as often as they
    did (Cohen 1960).
    """
    n, agreed = len(judged), sum(one == other for one, other in judged)
    if not n:
        return Agreement(n=0, agreed=0, share=None, low=None, high=None, kappa=None)
    first, second = Counter(one for one, _ in judged), Counter(other for _, other in judged)
    expected = sum(first[category] * second[category] for category in first) / n**2
    low, high = wilson(agreed, n)
    kappa = None if expected == 1 else (agreed / n - expected) / (1 - expected)
    return Agreement(n=n, agreed=agreed, share=agreed / n, low=low, high=high, kappa=kappa)
