"""What a benchmark says: figures beside their baseline, what is to be reached, and whether it was. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contract.errors import BothwaysError

EDGE = 0.1
"""The share of a run that is left out at each end: it starts and stops slower than it runs."""


class NotMeasuredError(BothwaysError):
    """A benchmark that lacks something; the text says what to give."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A bound on a line's ratio, or on its measured figure itself; `at_least` tells from which side."""

    bound: float
    at_least: bool = True
    of_ratio: bool = True

    def reached_by(self, line: "Line") -> bool:
        """Whether the line is within the bound; a ratio that does not exist is not."""
        figure = line.ratio if self.of_ratio else line.measured
        if figure is None:
            return False
        return figure >= self.bound if self.at_least else figure <= self.bound


@dataclass(frozen=True, kw_only=True)
class Line:
    """One figure in `unit`, beside that of the baseline that `against` names. Without a goal it tells only."""

    what: str
    unit: str
    measured: float
    baseline: float
    against: str
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over baseline; None without a baseline to divide by."""
        return self.measured / self.baseline if self.baseline > 0 else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return None if self.goal is None else self.goal.reached_by(self)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one benchmark found: its lines, and every figure behind them by name."""

    lines: tuple[Line, ...]
    raw: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One benchmark of this run: what it measured, or the reason why there is nothing. `failed` tells an error."""

    name: str
    seconds: float
    measurement: Measurement | None = None
    reason: str | None = None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """When a provider call began, in seconds of any one clock, and how many seconds it took."""

    started: float
    seconds: float


def middle_rate(times: Sequence[float]) -> float:
    """How many a second between the first and the last tenth of `times`, the moments (in seconds) when one ended.

    0 where there are too few to tell.
    """
    ordered = sorted(times)
    cut = round(len(ordered) * EDGE)
    middle = ordered[cut : len(ordered) - cut]
    if len(middle) < 2 or middle[-1] <= middle[0]:
        return 0.0
    return (len(middle) - 1) / (middle[-1] - middle[0])


def busy_share(calls: Sequence[Call], slots: int) -> float:
    """Which share of the slots' time was spent in calls, over the middle of the time from first begin to last end."""
    if not calls:
        return 0.0
    begin = min(call.started for call in calls)
    end = max(call.started + call.seconds for call in calls)
    edge = (end - begin) * EDGE
    low, high = begin + edge, end - edge
    if high <= low:
        return 0.0
    inside = (min(call.started + call.seconds, high) - max(call.started, low) for call in calls)
    return sum(max(0.0, seconds) for seconds in inside) / (slots * (high - low))
