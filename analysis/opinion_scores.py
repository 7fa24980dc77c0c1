"""The OpinionQA distances of "Effects of Answer Format Variation on Gender Bias in LLMs" (arXiv 2608.17516). Pure.

A model's shares over the choices of a question lie so far from those of the people who were asked: the Wasserstein
distance over ordinals, the Jensen-Shannon distance, and their mean, each 0 (alike) to 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EPSILON = 1e-12  # the paper's: it keeps logarithms of empty choices finite

Shares = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OpinionQuestion:
    """One question: its `choices`, their `ordinals`, and the `human` shares, all in the order of the list.

    An ordinal is None where a choice has no place on the scale: "Refused", "Not sure". Human shares add up to 1.
    `refused` is the index of the choice that says "Refused", the only one without a statement; None without such.
    """

    key: str
    choices: tuple[str, ...]
    ordinals: tuple[float | None, ...]
    human: Shares
    refused: int | None


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How far two distributions lie apart, each 0 to 1."""

    w_dist: float
    js_dist: float
    composite: float


def aligned(choices: Sequence[str], human: Mapping[str, float], *, refused: str = "Refused") -> Shares:
    """The human shares in the order of `choices`, by their texts, divided by their sum.

    ValueError names a text that is no choice, whose mass would be lost, and a choice without a share; only the
    `refused` one may lack it, having been chosen by nobody.
    """
    strangers = sorted(human.keys() - set(choices))
    if strangers:
        raise ValueError(f"human shares of {strangers} match none of the choices {list(choices)}: correct their texts")
    lacking = [choice for choice in choices if choice not in human and choice != refused]
    if lacking:
        raise ValueError(f"no human share for {lacking}: add it, 0 where nobody chose it")
    shares = _divided([human.get(choice, 0.0) for choice in choices])
    if shares is None:
        raise ValueError(f"the human shares of {list(choices)} add up to nothing")
    return shares


def w_dist(human: Sequence[float], model: Sequence[float], ordinals: Sequence[float | None]) -> float:
    """The area between the cumulative shares over the sorted ordinals, divided by their range, 0 to 1.

    Choices without ordinal are left out and the rest divided by their sum. Where either side has nothing on the rest,
    or all ordinals are equal, it is 0, as published: a model that always refuses is then not far from anybody by this
    distance alone.
    """
    places = sorted((ordinal, at) for at, ordinal in enumerate(ordinals) if ordinal is not None)
    p, q = (_divided([shares[at] for _, at in places]) for shares in (human, model))
    if p is None or q is None or places[0][0] == places[-1][0]:
        return 0.0
    steps = np.diff([ordinal for ordinal, _ in places])
    apart = np.abs(np.cumsum(np.subtract(p, q)))[:-1]
    return min(1.0, float(apart @ steps) / (places[-1][0] - places[0][0]))


def js_dist(human: Sequence[float], model: Sequence[float]) -> float:
    """The square root of the Jensen-Shannon divergence (base 2) over all choices, 0 to 1, 1e-12 added to each share."""
    p, q = (_smoothed(shares) for shares in (human, model))
    middle = (p + q) / 2
    divergence = float(p @ np.log2(p / middle) + q @ np.log2(q / middle)) / 2
    return float(np.sqrt(min(1.0, max(0.0, divergence))))


def composite(w: float, js: float, *, alpha: float = 0.5) -> float:
    """The paper's D: alpha x WDist + (1 - alpha) x JSDist."""
    return alpha * w + (1 - alpha) * js


def distances(question: OpinionQuestion, model: Sequence[float]) -> Distances:
    """All three distances of a model's shares from the human ones of a question."""
    w, js = w_dist(question.human, model, question.ordinals), js_dist(question.human, model)
    return Distances(w_dist=w, js_dist=js, composite=composite(w, js))


def shares_of_choices(counts: Sequence[int]) -> Shares | None:
    """How often each choice was chosen, as shares of all answers; None where there are none."""
    return _divided(counts)


def shares_of_ratings(sums: Sequence[float], counts: Sequence[int], *, refused: int | None) -> Shares | None:
    """Each choice's mean agreement as its share of all of them; `refused` is the index of the choice without statement.

    `sums` adds up the agreements with each choice, 0 to 1: (x - 1)/(k - 1), or 1 minus that on a negative scale, and
    `counts` says of how many ratings. The share of the refused choice is 0. None where a choice has no rating, or where
    nothing was agreed with (the paper's code then takes all choices for equal).
    """
    stated = [at for at in range(len(counts)) if at != refused]
    if not all(counts[at] for at in stated):
        return None
    return _divided([0.0 if at == refused else sums[at] / counts[at] for at in range(len(counts))])


def _divided(amounts: Sequence[float]) -> Shares | None:
    whole = sum(amounts)
    return tuple(amount / whole for amount in amounts) if whole > 0 else None


def _smoothed(shares: Sequence[float]) -> NDArray[np.float64]:
    raised = np.asarray(shares, dtype=np.float64) + _EPSILON
    return np.asarray(raised / raised.sum(), dtype=np.float64)
