"""Figure 2 of the positional-bias paper: |PF| and PC by dataset and model, with intervals and what they rest on."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from analysis.bars import NAME, NO_DATA, SMALL, Groups, Span, band, legend
from analysis.columns import folded, titled
from analysis.drawing import Pen, paragraph, settled, stack
from analysis.pairing import View
from analysis.render import csv_rows
from analysis.statistics import folded_ends
from analysis.tables import Estimate, Report, Row, same_figures

TITLE = "Figure 2. Position bias by dataset and model"
NOTHING = "No results."
WIDEST, PHONE = 9.0, 3.8  # inches
_HEAD = Pen(size=9, bold=True)
_EMPTY = 5.5  # inches, for a picture that only says so


def folded_span(estimate: Estimate) -> Span:
    """A signed figure without its sign; an interval that holds 0 reaches down to 0, for the figure can be 0."""
    low, high = folded_ends(estimate.interval) or (None, None)
    return Span(value=folded(estimate), low=low, high=high)


def span(estimate: Estimate) -> Span:
    """A figure as it is."""
    return Span(value=estimate.value, low=estimate.interval.low, high=estimate.interval.high)


_PANELS: Mapping[str, Callable[[Row], Span]] = {
    "(a) Preference Fairness, |PF|: the higher, the more bias": lambda row: folded_span(row.bias.fairness),
    "(b) Position Consistency, PC: the lower, the more bias": lambda row: span(row.bias.consistency),
}


def figure_two(
    report: Report, *, view: View = View.FINAL, title_note: str | None = None, widest: float = WIDEST
) -> Figure:
    """Figure 2 of one view, at most `widest` inches wide; what could not be measured is a gap.

    Beyond 12 models styles come again; the bars of a dataset always stand in the order of the legend.
    """
    rows = {(row.dataset, row.model): row for row in report.rows if row.view is view}
    title = titled(TITLE, title_note)
    with settled():
        if not rows:
            width = min(_EMPTY, widest)
            return stack([paragraph(title, width, _HEAD, after=0.1), paragraph(NOTHING, width, NAME)], width)
        datasets, models = (tuple(dict.fromkeys(key[at] for key in rows)) for at in (0, 1))
        groups = Groups(names=datasets, series=models, widest=widest)
        below = {name: _counts([row for row in rows.values() if row.dataset == name]) for name in datasets}
        blocks = [paragraph(title, groups.width, _HEAD, after=0.1), legend(groups)]
        for heading, measure in _PANELS.items():
            spans = {key: measure(row) for key, row in rows.items()}
            blocks.append(paragraph(heading, groups.width, NAME, after=0.12))
            blocks += [band(groups, names, spans, below) for names in groups.bands]
        notes = _notes(list(rows.values()), gaps=len(rows) < len(datasets) * len(models))
        answers = _answers(report, view)
        blocks += [paragraph(note, groups.width, SMALL, after=0.02) for note in (*notes, answers)]
        return stack(blocks, groups.width)


def figure_csv(report: Report, *, title_note: str | None = None) -> list[list[str]]:
    """What the bars show, and what they rest on, in both views at full precision."""
    return csv_rows((_csv_line(row) for row in report.rows), title_note=title_note)


def _csv_line(row: Row) -> dict[str, object]:
    spans = {
        "preference_fairness_absolute": folded_span(row.bias.fairness),
        "preference_fairness": span(row.bias.fairness),
        "position_consistency": span(row.bias.consistency),
    }
    return {
        "dataset": row.dataset,
        "model": row.model,
        "view": row.view.value,
        **{
            f"{name}{end}": value
            for name, drawn in spans.items()
            for end, value in (("", drawn.value), ("_low", drawn.low), ("_high", drawn.high))
        },
        "pairs_n": row.bias.counts.n,
        "pairs_valid": row.bias.counts.valid,
        "pairs_invalid": row.bias.counts.invalid,
        "pairs_failed": row.bias.failed,
        "pairs_missing": row.bias.missing,
    }


def _notes(rows: Sequence[Row], *, gaps: bool) -> Iterator[str]:
    """What the bars rest on, and only what applies to them."""
    estimates = [estimate for row in rows for estimate in (row.bias.fairness, row.bias.consistency)]
    measured = [estimate for estimate in estimates if estimate.value is not None]
    yield "|PF| is PF without its sign, over all pairs; PC is the same answer in both orders, over valid pairs."
    methods = sorted({str(estimate.interval.method) for estimate in measured if estimate.interval.method})
    if methods:
        yield f"Whiskers: 95 % intervals ({', '.join(methods)}); that of |PF| is PF's, folded at 0."
    if any(estimate.interval.low is None for estimate in measured):
        yield "A bar without whiskers rests on a single cluster: no interval could be made."
    if gaps or len(measured) < len(estimates):
        yield f"{NO_DATA}: no finished pair, or for PC no valid one."
    pairs, invalid = (sum(numbers) for numbers in ([row.bias.counts.n for row in rows], _invalid(rows)))
    share = f" ({invalid / pairs:.1%})".replace("%", " %") if pairs else ""
    failed, missing = sum(row.bias.failed for row in rows), sum(row.bias.missing for row in rows)
    yield "Under each dataset: the pairs of a bar, and how many of them are invalid."
    yield f"All bars: {pairs:,} pairs, of which {invalid:,} invalid{share}."
    if failed or missing:
        yield f"Left out of every bar: {failed:,} pairs with a failed side, {missing:,} with a missing one."


def _answers(report: Report, view: View) -> str:
    if all(same_figures(*cell) for cell in report.by_cell()):
        return "First and final answers give the same figures."
    return (
        "First answers, before the invalid retries."
        if view is View.FIRST
        else "Final answers, after the invalid retries."
    )


def _counts(rows: Sequence[Row]) -> str:
    return f"{_range([row.bias.counts.n for row in rows])} pairs, {_range(_invalid(rows))} invalid"


def _invalid(rows: Sequence[Row]) -> list[int]:
    return [row.bias.counts.invalid for row in rows]


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
