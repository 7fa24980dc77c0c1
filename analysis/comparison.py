"""What was measured beside what a paper prints, figure by figure. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.metrics import marginal_fairness
from analysis.pairing import View
from analysis.published import PrintedHalf, PrintedRow
from analysis.tables import Estimate, OrderFigures, Report, Row

FAIRNESS = "PF (implied)"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One figure of one cell, printed and measured.

    `measured_as` is the model's name in the study and `measured` the figure, both None where nothing was measured;
    `low` and `high` are its 95 % interval, None where it has none.
    """

    dataset: str
    model: str
    measured_as: str | None
    figure: str
    printed: float
    measured: float | None
    n: int
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float | None:
        """Measured minus printed."""
        return None if self.measured is None else self.measured - self.printed

    @property
    def inside(self) -> bool | None:
        """Whether the printed figure lies in the interval of the measured one; None without an interval."""
        return None if self.low is None or self.high is None else self.low <= self.printed <= self.high


def compare(report: Report, printed: Sequence[PrintedRow], names: Mapping[str, str]) -> list[Compared]:
    """Every figure of `printed`, in its order, beside that of the same dataset and model.

    `names` says which printed model a measured one stands for; others go by their own name. Papers ask each question
    once in each order, so first answers are compared.
    """
    measured = {(row.dataset, names.get(row.model, row.model)): row for row in report.rows if row.view is View.FIRST}
    return [each for row in printed for each in _cell(row, measured.get((row.dataset, row.model)))]


def _cell(printed: PrintedRow, row: Row | None) -> Iterator[Compared]:
    yield from _half(printed, row, "correct first", printed.correct_first, None if row is None else row.correct_first)
    yield from _half(printed, row, "wrong first", printed.wrong_first, None if row is None else row.wrong_first)
    first, wrong = printed.correct_first, printed.wrong_first
    # The paper draws |PF| without numbers; what its table implies stands for it, with its sign.
    implied = marginal_fairness(
        n=printed.n,
        correct_first=(first.accuracy, first.invalid),
        wrong_first=(wrong.accuracy, wrong.invalid),
    )
    yield _compared(printed, row, FAIRNESS, implied, None if row is None else row.bias.fairness)


def _half(
    printed: PrintedRow, row: Row | None, name: str, half: PrintedHalf, figures: OrderFigures | None
) -> Iterator[Compared]:
    yield _compared(printed, row, f"accuracy, {name}", half.accuracy, None if figures is None else figures.accuracy)
    share = half.invalid / printed.n
    yield _compared(printed, row, f"invalid, {name}", share, None if figures is None else figures.invalid_rate)


def _compared(printed: PrintedRow, row: Row | None, figure: str, value: float, estimate: Estimate | None) -> Compared:
    return Compared(
        dataset=printed.dataset,
        model=printed.model,
        measured_as=None if row is None else row.model,
        figure=figure,
        printed=value,
        measured=None if estimate is None else estimate.value,
        n=0 if estimate is None else estimate.n,
        low=None if estimate is None else estimate.interval.low,
        high=None if estimate is None else estimate.interval.high,
    )
