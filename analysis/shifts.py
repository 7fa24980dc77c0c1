"""Where the invalid retries change a figure by more than chance explains: each lies outside of the other's interval.

Retries are drawn from the answers that could not be read, which are not any answers: who resamples until something can
be read may measure another model than the one that was asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.tables import Estimate, Report, Row


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A figure of one model on one dataset, at the first asking and after the retries."""

    dataset: str
    model: str
    figure: str
    first: Estimate
    final: Estimate


def shifts(report: Report) -> tuple[Shift, ...]:
    """The figures whose first and final values lie outside of each other's intervals; none where there is no interval.

    Both ways, because no interval of a share below 1 reaches 1: a single retry would be a warning.
    """
    return tuple(shift for first, final in report.by_cell() for shift in _of_cell(first, final))


def _of_cell(first: Row, final: Row) -> Iterator[Shift]:
    for (name, before), (_, after) in zip(_figures(first), _figures(final), strict=True):
        if _outside(after.value, before) and _outside(before.value, after):
            yield Shift(dataset=first.dataset, model=first.model, figure=name, first=before, final=after)


def _outside(value: float | None, estimate: Estimate) -> bool:
    low, high = estimate.interval.low, estimate.interval.high
    return value is not None and low is not None and high is not None and not low <= value <= high


def _figures(row: Row) -> tuple[tuple[str, Estimate], ...]:
    """The figures that are printed with an interval, by the names that they are printed with."""
    return (
        ("accuracy, correct first", row.correct_first.accuracy),
        ("accuracy, wrong first", row.wrong_first.accuracy),
        ("PF", row.bias.fairness),
        ("PC", row.bias.consistency),
    )
