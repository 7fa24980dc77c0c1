"""What the printed tables hold: titles, columns, lines and notes, whatever they are printed as. Absence is a dash."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from analysis.shifts import shifts
from analysis.statistics import FEW_CLUSTERS, LEAST_CLUSTERS, RESAMPLES, Comparison, Method
from analysis.tables import Estimate, OrderFigures, Report, Row, same_figures

DASH = "–"
NOMINAL_MARK = "†"


class Topic(StrEnum):
    """The printed tables, in their order."""

    ACCURACY = "Table 1. Accuracy by where the right choice stood"
    BIAS = "Table 2. Position bias"
    PAIRS = "Table 3. Pairs, and what the invalid ones could change"
    JOBS = "Table 4. Jobs"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a printed table: its heading, what it prints of a row, and its name where no heading is above it."""

    heading: str
    cell: Callable[[Row], str]
    label: str = ""

    @property
    def name(self) -> str:
        """The column in one line."""
        return self.label or self.heading.replace("\n", " ")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A printed line: a row, which answers it shows (None where both views agree all through), and its place."""

    row: Row
    answers: str | None
    opens_dataset: bool
    opens_model: bool


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a table leaves unsaid; `about` is None where it holds for all of them."""

    about: Topic | None
    text: str


COLUMNS = {
    Topic.ACCURACY: (
        Column(heading="Correct-first\naccuracy", cell=lambda row: figure(row.correct_first.accuracy)),
        Column(
            heading="#\ninvalid", cell=lambda row: count(invalid(row.correct_first)), label="Correct-first # invalid"
        ),
        Column(heading="Wrong-first\naccuracy", cell=lambda row: figure(row.wrong_first.accuracy)),
        Column(heading="#\ninvalid", cell=lambda row: count(invalid(row.wrong_first)), label="Wrong-first # invalid"),
    ),
    Topic.BIAS: (
        Column(heading="PF", cell=lambda row: figure(row.bias.fairness, sign=True)),
        Column(heading="|PF|", cell=lambda row: _number(folded(row.bias.fairness))),
        Column(heading="p (Holm)", cell=lambda row: _p_value(row.bias.comparison)),
        Column(heading="PC", cell=lambda row: figure(row.bias.consistency)),
    ),
    Topic.PAIRS: (
        Column(heading="pairs", cell=lambda row: count(row.bias.counts.n)),
        Column(heading="valid", cell=lambda row: count(row.bias.counts.valid)),
        Column(heading="left out", cell=lambda row: count(row.bias.failed + row.bias.missing)),
        Column(heading="unpaired", cell=lambda row: count(row.unpaired)),
        Column(heading="PF of valid", cell=lambda row: _number(row.bias.fairness_valid.value, sign=True)),
        Column(heading="PC bounds", cell=lambda row: _range(row.bias.bounds)),
    ),
    Topic.JOBS: (
        Column(heading="jobs", cell=lambda row: count(row.jobs.planned)),
        Column(heading="answered", cell=lambda row: count(row.jobs.answered)),
        Column(heading="invalid", cell=lambda row: count(row.jobs.invalid)),
        Column(heading="refused", cell=lambda row: count(row.jobs.refused)),
        Column(heading="failed", cell=lambda row: count(row.jobs.failed)),
        Column(heading="missing", cell=lambda row: count(row.jobs.missing)),
    ),
}


def titled(title: str, note: str | None) -> str:
    """The title of a table or a figure with the note that every title of the report bears, if there is one."""
    return f"{title} ({note})" if note else title


def lines(report: Report) -> list[Line]:
    """The lines of a table: one a dataset and model where its two views agree, else one for each view."""
    views_differ = not all(same_figures(*cell) for cell in report.by_cell())
    made: list[Line] = []
    dataset = None
    for first, final in report.by_cell():
        same = same_figures(first, final)
        for row in (final,) if same else (first, final):
            answers = ("both" if same else row.view.value) if views_differ else None
            opens_model = same or row is first
            opens_dataset = row.dataset != dataset
            made.append(Line(row=row, answers=answers, opens_dataset=opens_dataset, opens_model=opens_model))
            dataset = row.dataset
    return made


def dataset_name(row: Row) -> str:
    """The dataset, marked where its accuracies are nominal."""
    return row.dataset + (f" {NOMINAL_MARK}" if row.nominal else "")


def notes(report: Report) -> Iterator[Note]:
    """What the tables leave unsaid, and only what applies to this report; warnings first."""
    yield from _shift_notes(report)
    yield from _interval_notes(report)
    text = "Accuracy: correct over finished jobs. # invalid (with refused) is wrong; failed and missing are left out."
    yield Note(about=Topic.ACCURACY, text=text)
    if any(row.nominal for row in report.rows):
        text = f"{NOMINAL_MARK} No choice is right: nominal accuracy, the share that chose choice 1:\n"
        text += "  under Correct-first that is the first-slot share, under Wrong-first the second-slot share."
        yield Note(about=Topic.ACCURACY, text=text)
    if any(row.untargeted for row in report.rows):
        text = "Some items have no right choice: they count in the pairs, not in the accuracies."
        yield Note(about=Topic.ACCURACY, text=text)
    yield from _pair_notes(report)
    if all(same_figures(*cell) for cell in report.by_cell()):
        text = "First and final answers give the same figures throughout, so each is shown once."
    else:
        text = "Answers: first asking, final after the invalid retries, or both where they give the same figures."
    yield Note(about=None, text=text)


def _shift_notes(report: Report) -> Iterator[Note]:
    for shift in shifts(report):
        signed = shift.figure == "PF"
        text = (
            f"Warning: the invalid retries move {shift.figure} of {shift.model} on {shift.dataset} from "
            f"{figure(shift.first, sign=signed)} to {figure(shift.final, sign=signed, interval=False)}, out of its\n"
            "  interval: what could not be read at first is not like the rest. Give both figures."
        )
        yield Note(about=None, text=text)


def _interval_notes(report: Report) -> Iterator[Note]:
    intervals = [estimate.interval for row in report.rows for estimate in _estimates(row)]
    methods = {str(interval.method) for interval in intervals if interval.method}
    made = ", ".join(sorted(methods)) or "none could be made"
    yield Note(about=None, text=f"[low, high] is a 95 % interval ({made}); {DASH} is no data.")
    if Method.BOOTSTRAP in methods:
        text = f"Bootstrap: {RESAMPLES:,} resamples of whole clusters (what shares content) with all their repeats."
        yield Note(about=None, text=text)
    if Method.WILSON_CLUSTERS in methods:
        text = "Wilson over clusters: all clusters agree, so a bootstrap would claim certainty; clusters are the n."
        yield Note(about=None, text=text)
    if any(0 < interval.clusters < FEW_CLUSTERS for interval in intervals):
        text = (
            f"Some figures rest on fewer than {FEW_CLUSTERS} clusters: such intervals are rough,"
            f" and absent below {LEAST_CLUSTERS}."
        )
        yield Note(about=None, text=text)


def _pair_notes(report: Report) -> Iterator[Note]:
    text = "PF: (second slot twice - first slot twice) / pairs; -1 is always the first slot, +1 always the second."
    yield Note(about=Topic.BIAS, text=text)
    text = "PC: same answer in both orders, over valid pairs. Bounds: over all pairs, however the rest had ended."
    yield Note(about=Topic.BIAS, text=text)
    tests = {str(row.bias.comparison.method) for row in report.rows if row.bias.comparison}
    if tests:
        named = ", ".join(sorted(tests))
        text = f"p: neither slot is favoured ({named}), Holm-adjusted over the datasets and models."
        yield Note(about=Topic.BIAS, text=text)
    text = (
        "Pairs: both sides finished; left out: pairs with a failed or missing side; unpaired: jobs without a partner."
    )
    yield Note(about=Topic.PAIRS, text=text)


def _estimates(row: Row) -> tuple[Estimate, ...]:
    """The figures that are printed with an interval."""
    return row.correct_first.accuracy, row.wrong_first.accuracy, row.bias.fairness, row.bias.consistency


def invalid(figures: OrderFigures) -> int:
    """The paper's # Invalid."""
    return figures.counts.invalid + figures.counts.refused


def folded(estimate: Estimate) -> float | None:
    """The figure without its sign."""
    return None if estimate.value is None else abs(estimate.value)


def figure(estimate: Estimate, *, sign: bool = False, interval: bool = True) -> str:
    """Three decimals and, if it is asked for, the interval: a dash in brackets where too few clusters hold data."""
    text = _number(estimate.value, sign=sign)
    if estimate.value is None or not interval:
        return text
    low, high = estimate.interval.low, estimate.interval.high
    if low is None or high is None:
        return f"{text} [{DASH}]"
    return f"{text} [{_short(low, sign=sign)}, {_short(high, sign=sign)}]"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def _number(value: float | None, *, sign: bool = False) -> str:
    """Three decimals; a figure that rounds to zero has no sign."""
    if value is None:
        return DASH
    rounded = round(value, 3) + 0.0
    return f"{rounded:+.3f}" if sign and rounded else f"{rounded:.3f}"


def _short(value: float, *, sign: bool = False) -> str:
    """The same without the zero before the point."""
    return _number(value, sign=sign).replace("0.", ".", 1)


def _range(bounds: tuple[float, float] | None) -> str:
    return DASH if bounds is None else f"{_short(bounds[0])}{DASH}{_short(bounds[1])}"


def _p_value(comparison: Comparison | None) -> str:
    if comparison is None or comparison.adjusted is None:
        return DASH
    return "<.001" if comparison.adjusted < 0.001 else _short(comparison.adjusted)
