"""The measures of position bias, as pure functions of counts. An undefined measure is None, never 0.

PC and PF follow Shi et al. 2024 (arXiv 2406.07791) and the positional-bias paper. Two passes over one question give a
pair of slot letters; the same letter twice is an answer that went with the slot, two letters are the same answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class PairClass(StrEnum):
    """What a pair of slot letters says about the position."""

    PRIMACY = "primacy"
    RECENCY = "recency"
    CONSISTENT = "consistent"
    INVALID = "invalid"


PAIR_CLASSES: Mapping[str, PairClass] = {
    **dict.fromkeys(("AA", "AC", "CA"), PairClass.PRIMACY),
    **dict.fromkeys(("BB", "BC", "CB"), PairClass.RECENCY),
    **dict.fromkeys(("AB", "BA", "CC"), PairClass.CONSISTENT),
}
"""Shi et al.'s classes; C is a tie. Any other code (N: no letter read) is invalid."""


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """How many pairs fell into each class; pairs with a failed or missing side are in none."""

    primacy: int
    recency: int
    consistent: int
    invalid: int

    @property
    def valid(self) -> int:
        """Pairs in which both sides were read."""
        return self.primacy + self.recency + self.consistent

    @property
    def n(self) -> int:
        """All pairs, the invalid ones too."""
        return self.valid + self.invalid


@dataclass(frozen=True, kw_only=True)
class OrderCounts:
    """The finished jobs of one order, by what came of them; `correct` is among `answered`."""

    correct: int
    answered: int
    invalid: int
    refused: int

    @property
    def n(self) -> int:
        """Jobs with a completion or a block: failed and missing ones are left out."""
        return self.answered + self.invalid + self.refused


def count_pairs(codes: Mapping[str, int]) -> PairCounts:
    """Class the pairs, given how often each code stands ("AB": 6, "AN": 1)."""
    counts: Counter[PairClass] = Counter()
    for code, times in codes.items():
        counts[PAIR_CLASSES.get(code, PairClass.INVALID)] += times
    return PairCounts(**{kind.value: counts[kind] for kind in PairClass})


def position_consistency(counts: PairCounts) -> float | None:
    """PC: the share of valid pairs with the same answer in both orders, 0 to 1; None without a valid pair.

    The positional-bias paper writes it as equality of the letters chosen; taken on slot letters that would be the
    opposite, so answers are compared: K / (P + R + K), as Shi et al. compute it.
    """
    return _ratio(counts.consistent, counts.valid)


def position_consistency_bounds(counts: PairCounts) -> tuple[float, float] | None:
    """The least and the most that PC over all pairs could be, had the invalid ones been read: [K/N, (K+U)/N]."""
    if not counts.n:
        return None
    return counts.consistent / counts.n, (counts.consistent + counts.invalid) / counts.n


def preference_fairness(counts: PairCounts) -> float | None:
    """PF over all pairs, -1 (first slot always) to +1 (second slot always); None without a pair.

    Shi et al. scale raw = R * R/(P+R) - P * P/(P+R) from [-N, N] to [-1, 1]. As (R² - P²) / (R + P) = R - P, that is
    (R - P) / N exactly, invalid pairs in N. (Theirs is 0 without a pair.) |PF|, as the paper prints it, loses the sign.
    """
    return _ratio(counts.recency - counts.primacy, counts.n)


def preference_fairness_valid(counts: PairCounts) -> float | None:
    """PF over the valid pairs only: the same numerator; None without a valid pair."""
    return _ratio(counts.recency - counts.primacy, counts.valid)


def marginal_fairness(*, n: int, correct_first: tuple[float, int], wrong_first: tuple[float, int]) -> float:
    """PF over all pairs out of the margins of a table: for each order its accuracy over `n` jobs and its invalid ones.

    Equal to `preference_fairness` for complete pairs: what is chosen in each order adds up to the pairs. With invalid
    ones it is their PF with each read side counted by itself, which is all that a table without pairs can say.
    """
    (first_accuracy, first_invalid), (second_accuracy, second_invalid) = correct_first, wrong_first
    first_slot = first_accuracy * n + (n - second_accuracy * n - second_invalid)
    second_slot = second_accuracy * n + (n - first_accuracy * n - first_invalid)
    return (second_slot - first_slot) / (2 * n)


def accuracy(counts: OrderCounts) -> float | None:
    """Correct answers over all finished jobs: an invalid or refused one counts as wrong, as in the paper's Table 1."""
    return _ratio(counts.correct, counts.n)


def accuracy_answered(counts: OrderCounts) -> float | None:
    """Correct answers over the answered jobs only."""
    return _ratio(counts.correct, counts.answered)


def invalid_rate(counts: OrderCounts) -> float | None:
    """Invalid and refused jobs over all finished jobs: the paper's # Invalid as a share."""
    return _ratio(counts.invalid + counts.refused, counts.n)


def repetition_consistency(instances: Iterable[Sequence[str]]) -> float | None:
    """RC of Shi et al.: how often an instance's commonest letter came up among its repetitions, averaged.

    Each instance holds the letters of its repetitions, N (no letter read) being one; an empty one is skipped.
    """
    shares = [max(Counter(letters).values()) / len(letters) for letters in instances if letters]
    return _ratio(sum(shares), len(shares))


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
