"""Whether 95 % intervals hold the truth 95 times out of 100, on studies whose truth is known.

Questions of a study stand in clusters that differ: in how often the model knows the answer, which slot it likes, and
how often it cannot be read. `make coverage` looks at 1,000 studies, and wants between 92 and 98 %; here fewer are
looked at, always the same ones, within bounds as wide as their number asks for.
"""

import math
import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from analysis.pairing import RESULT_SCHEMA, View
from analysis.tables import Estimate, Row, build

STUDIES = int(os.environ.get("BOTHWAYS_COVERAGE_STUDIES", "80"))
BOUNDS = (0.92, 0.98) if STUDIES >= 1000 else (0.95 - 4 * math.sqrt(0.95 * 0.05 / STUDIES), 1.0)
CLUSTERS = 60
LARGEST = 8


@dataclass(frozen=True, kw_only=True)
class Habit:
    """A probability that differs from cluster to cluster by a beta distribution."""

    mean: float
    spread: float

    def draw(self, random: np.random.Generator) -> np.ndarray:
        """One value for each cluster."""
        size = self.mean * (1 - self.mean) / self.spread**2 - 1
        return random.beta(self.mean * size, (1 - self.mean) * size, CLUSTERS)

    @property
    def square(self) -> float:
        """The mean of its square."""
        return self.spread**2 + self.mean**2


KNOWS, UNREADABLE = Habit(mean=0.5, spread=0.2), Habit(mean=0.1, spread=0.06)
FAIR, BIASED = Habit(mean=0.5, spread=0.2), Habit(mean=0.7, spread=0.15)


def truth(first: Habit) -> dict[str, float]:
    """The figures of endlessly many questions, where `first` is how often the first slot is picked of what is unknown.

    The three habits of a cluster do not depend on each other nor on its size.
    """
    known, guessed = KNOWS.mean, 1 - KNOWS.mean
    both_read = 1 - 2 * UNREADABLE.mean + UNREADABLE.square
    return {
        "PF": guessed * (1 - 2 * first.mean) * both_read,
        "PC": known + guessed * 2 * (first.mean - first.square),
        "accuracy, correct first": (known + guessed * first.mean) * (1 - UNREADABLE.mean),
        "accuracy, wrong first": (known + guessed * (1 - first.mean)) * (1 - UNREADABLE.mean),
        "invalid rate": UNREADABLE.mean,
    }


def study(seed: int, first: Habit) -> pl.DataFrame:
    """The results of one study."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, LARGEST + 1, CLUSTERS)
    of = np.repeat(np.arange(CLUSTERS), sizes)
    knows, likes, unreadable = (habit.draw(random)[of] for habit in (KNOWS, first, UNREADABLE))
    known = random.random(of.size) < knows
    orders = []
    for order, right in (("12", 0), ("21", 1)):
        slot = np.where(known, right, np.where(random.random(of.size) < likes, 0, 1))
        read = random.random(of.size) >= unreadable
        outcome = np.where(read, "answered", "invalid")
        choice = pl.Series(np.where(slot == right, 0, 1)).set(pl.Series(~read), None)
        columns = {"item": np.arange(of.size), "cluster": of.astype(str), "order": order, "first_outcome": outcome}
        orders.append(pl.DataFrame(columns).with_columns(choice.alias("first_choice")))
    same = {"dataset": "d", "model": "m", "repeat": 1, "choices": 2, "target": 0}
    frame = pl.concat(orders).with_columns(
        *(pl.lit(value).alias(name) for name, value in same.items()),
        pl.col("first_outcome").alias("final_outcome"),
        pl.col("first_choice").alias("final_choice"),
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in RESULT_SCHEMA.items())


def estimates(row: Row) -> dict[str, Estimate]:
    """What a report says of the figures whose truth is known."""
    return {
        "PF": row.bias.fairness,
        "PC": row.bias.consistency,
        "accuracy, correct first": row.correct_first.accuracy,
        "accuracy, wrong first": row.wrong_first.accuracy,
        "invalid rate": row.correct_first.invalid_rate,
    }


@pytest.fixture(scope="module")
def held() -> dict[str, float]:
    """How often the interval of each figure held the truth; half of the studies have no bias."""
    times: Counter[str] = Counter()
    for seed in range(STUDIES):
        first = FAIR if seed % 2 else BIASED
        (row,) = (row for row in build(study(seed, first)).rows if row.view is View.FIRST)
        for name, estimate in estimates(row).items():
            low, high = estimate.interval.low, estimate.interval.high
            assert low is not None
            assert high is not None
            times[name] += low <= truth(first)[name] <= high
    return {name: count / STUDIES for name, count in times.items()}


@pytest.mark.parametrize("figure", list(truth(FAIR)))
def test_an_interval_holds_the_truth_as_often_as_it_says(held: dict[str, float], figure: str) -> None:
    low, high = BOUNDS

    assert low <= held[figure] <= high, held


def test_figures_come_out_around_the_truth() -> None:
    (row,) = (row for row in build(study(1, FAIR)).rows if row.view is View.FIRST)

    for name, estimate in estimates(row).items():
        assert estimate.value == pytest.approx(truth(FAIR)[name], abs=0.15)
