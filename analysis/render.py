"""A report as text for a terminal, as rows of a CSV file, as a JSON object. Absence is a dash, an empty cell, null."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.statistics import FEW_CLUSTERS, RESAMPLES, Comparison, Method
from analysis.tables import Estimate, OrderFigures, Report, Row, same_figures

DASH = "–"
WIDE = 100  # from so many columns on, dataset and model stand side by side; below, one above the other
NOMINAL_MARK = "†"
_SILENT = ("value", "interval")
_GUARDED = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A column of a text table: its heading and what it prints of a row."""

    heading: str
    cell: Callable[[Row], str]


_COLUMNS = {
    "Table 1. Accuracy by where the right choice stood": (
        _Column(heading="Correct-first\naccuracy", cell=lambda row: _figure(row.correct_first.accuracy)),
        _Column(heading="#\ninvalid", cell=lambda row: _count(_invalid(row.correct_first))),
        _Column(heading="Wrong-first\naccuracy", cell=lambda row: _figure(row.wrong_first.accuracy)),
        _Column(heading="#\ninvalid", cell=lambda row: _count(_invalid(row.wrong_first))),
    ),
    "Table 2. Position bias": (
        _Column(heading="PF", cell=lambda row: _figure(row.bias.fairness, sign=True)),
        _Column(heading="|PF|", cell=lambda row: _number(_folded(row.bias.fairness))),
        _Column(heading="p (Holm)", cell=lambda row: _p_value(row.bias.comparison)),
        _Column(heading="PC", cell=lambda row: _figure(row.bias.consistency)),
    ),
    "Table 3. Pairs, and what the invalid ones could change": (
        _Column(heading="pairs", cell=lambda row: _count(row.bias.counts.n)),
        _Column(heading="valid", cell=lambda row: _count(row.bias.counts.valid)),
        _Column(heading="left out", cell=lambda row: _count(row.bias.failed + row.bias.missing)),
        _Column(heading="unpaired", cell=lambda row: _count(row.unpaired)),
        _Column(heading="PF of valid", cell=lambda row: _number(row.bias.fairness_valid.value, sign=True)),
        _Column(heading="PC bounds", cell=lambda row: _range(row.bias.bounds)),
    ),
    "Table 4. Jobs": (
        _Column(heading="jobs", cell=lambda row: _count(row.jobs.planned)),
        _Column(heading="answered", cell=lambda row: _count(row.jobs.answered)),
        _Column(heading="invalid", cell=lambda row: _count(row.jobs.invalid)),
        _Column(heading="refused", cell=lambda row: _count(row.jobs.refused)),
        _Column(heading="failed", cell=lambda row: _count(row.jobs.failed)),
        _Column(heading="missing", cell=lambda row: _count(row.jobs.missing)),
    ),
}


def to_text(report: Report, width: int = 100) -> str:
    """The report as four tables and notes in `width` columns; equal first and final figures share a line."""
    if not report.rows:
        return "No results.\n"
    console = Console(file=io.StringIO(), width=width, height=1_000, color_system=None, force_terminal=False)
    with console.capture() as written:
        for title, columns in _COLUMNS.items():
            console.print(Text(title), _table(report, columns, wide=width >= WIDE), "", sep="\n")
        for note in _notes(report):
            console.print(Text(note))
    return "\n".join(line.rstrip() for line in written.get().splitlines()) + "\n"


def to_csv_rows(report: Report) -> list[list[str]]:
    """A heading and a line a dataset, model and view, at full precision; None is empty, formulas are guarded."""
    lines = [dict(_flat(_plain(row))) for row in report.rows]
    return [list(lines[0]), *([_csv_cell(value) for value in line.values()] for line in lines)] if lines else []


def to_json(report: Report) -> dict[str, Any]:
    """The report as nested plain values at full precision; None is null."""
    return {"rows": [_plain(row) for row in report.rows]}


def _table(report: Report, columns: Iterable[_Column], *, wide: bool) -> Table:
    cells = report.by_cell()
    views_differ = not all(same_figures(*cell) for cell in cells)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("Dataset", "Model") if wide else ("Dataset\nModel",):
        table.add_column(heading, overflow="fold")
    if views_differ:
        table.add_column("Answers", no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    dataset = None
    for first, final in cells:
        if dataset not in (None, final.dataset):
            table.add_section()
        same = same_figures(first, final)
        rows = [final] if same else [first, final]
        names = [_dataset_name(final) if final.dataset != dataset else "", final.model]
        answers = ["both" if same else "first\nfinal"] if views_differ else []
        figures = ["\n".join(column.cell(row) for row in rows) for column in columns]
        table.add_row(*map(Text, (*(names if wide else ["\n".join(filter(None, names))]), *answers, *figures)))
        dataset = final.dataset
    return table


def _dataset_name(row: Row) -> str:
    return row.dataset + (f" {NOMINAL_MARK}" if row.nominal else "")


def _notes(report: Report) -> Iterator[str]:
    """What the tables leave unsaid, and only what applies to this report."""
    rows = report.rows
    methods = {
        str(estimate.interval.method) for row in rows for estimate in _estimates(row) if estimate.interval.method
    }
    yield f"[low, high] is a 95 % interval ({', '.join(sorted(methods)) or 'none could be made'}); {DASH} is no data."
    if Method.BOOTSTRAP in methods:
        yield f"Bootstrap: {RESAMPLES:,} resamples of whole clusters (what shares content) with all their repeats."
    if Method.WILSON_CLUSTERS in methods:
        yield "Wilson over clusters: all clusters agree, so a bootstrap would claim certainty; clusters are the n."
    if any(0 < estimate.interval.clusters < FEW_CLUSTERS for row in rows for estimate in _estimates(row)):
        yield f"Some figures rest on fewer than {FEW_CLUSTERS} clusters: such intervals are rough, absent below two."
    yield "Accuracy: correct over finished jobs. # invalid (with refused) is wrong; failed and missing are left out."
    if any(row.nominal for row in rows):
        yield f"{NOMINAL_MARK} No choice is right: nominal accuracy, the share that chose choice 1:"
        yield "  under Correct-first that is the first-slot share, under Wrong-first the second-slot share."
    if any(row.untargeted for row in rows):
        yield "Some items have no right choice: they count in the pairs, not in the accuracies."
    yield "PF: (second slot twice - first slot twice) / pairs; -1 is always the first slot, +1 always the second."
    yield "PC: same answer in both orders, over valid pairs. Bounds: over all pairs, however the rest had ended."
    tests = {str(row.bias.comparison.method) for row in rows if row.bias.comparison}
    if tests:
        yield f"p: neither slot is favoured ({', '.join(sorted(tests))}), Holm-adjusted over the datasets and models."
    yield "Pairs: both sides finished; left out: pairs with a failed or missing side; unpaired: jobs without a partner."
    if all(same_figures(*cell) for cell in report.by_cell()):
        yield "First and final answers give the same figures throughout, so each is shown once."
    else:
        yield "Answers: first asking, final after the invalid retries, or both where they give the same figures."


def _estimates(row: Row) -> tuple[Estimate, ...]:
    """The figures that are printed with an interval."""
    return row.correct_first.accuracy, row.wrong_first.accuracy, row.bias.fairness, row.bias.consistency


def _invalid(figures: OrderFigures) -> int:
    """The paper's # Invalid."""
    return figures.counts.invalid + figures.counts.refused


def _folded(estimate: Estimate) -> float | None:
    return None if estimate.value is None else abs(estimate.value)


def _figure(estimate: Estimate, *, sign: bool = False) -> str:
    text = _number(estimate.value, sign=sign)
    low, high = estimate.interval.low, estimate.interval.high
    if low is None or high is None:
        return text
    return f"{text} [{_short(low, sign=sign)}, {_short(high, sign=sign)}]"


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


def _count(value: int) -> str:
    return f"{value:,}"


def _plain(row: Row) -> dict[str, Any]:
    bias = row.bias
    low, high = bias.bounds or (None, None)
    return {
        "dataset": row.dataset,
        "model": row.model,
        "view": row.view.value,
        "correct_first": _plain_order(row.correct_first, nominally="first-slot share" if row.nominal else None),
        "wrong_first": _plain_order(row.wrong_first, nominally="second-slot share" if row.nominal else None),
        "preference_fairness": asdict(bias.fairness),
        "preference_fairness_absolute": _folded(bias.fairness),
        "preference_fairness_valid": asdict(bias.fairness_valid),
        "position_consistency": asdict(bias.consistency),
        "position_consistency_bounds": {"low": low, "high": high},
        "test": dict.fromkeys(("p", "method", "adjusted")) if bias.comparison is None else asdict(bias.comparison),
        "pairs": {
            "joined": bias.joined,
            "n": bias.counts.n,
            "valid": bias.counts.valid,
            **asdict(bias.counts),
            "failed": bias.failed,
            "missing": bias.missing,
        },
        "jobs": {"planned": row.jobs.planned, **asdict(row.jobs)},
        "jobs_unpaired": row.unpaired,
        "jobs_untargeted": row.untargeted,
    }


def _plain_order(figures: OrderFigures, *, nominally: str | None) -> dict[str, Any]:
    return {
        "means": f"{nominally} (nominal accuracy)" if nominally else "accuracy",
        "accuracy": asdict(figures.accuracy),
        "accuracy_answered": asdict(figures.accuracy_answered),
        **asdict(figures.counts),
        "failed": figures.failed,
        "missing": figures.missing,
    }


def _flat(nested: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Nested keys joined by underscores; a figure's value and interval go by the figure's own name."""
    for key, value in nested.items():
        name = prefix if key in _SILENT else f"{prefix}_{key}".lstrip("_")
        if isinstance(value, dict):
            yield from _flat(value, name)
        else:
            yield name, value


def _csv_cell(value: object) -> str:
    if isinstance(value, str) and value.startswith(_GUARDED):
        return f"'{value}"
    return "" if value is None else str(value)
