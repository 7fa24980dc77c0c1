"""A report as text for a terminal, as rows of a CSV file, as a JSON object. Absence is a dash, an empty cell, null."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.columns import COLUMNS, Column, dataset_name, folded, notes, titled
from analysis.shifts import shifts
from analysis.tables import OrderFigures, Report, Row, same_figures

WIDE = 100  # from so many columns on, dataset and model stand side by side; below, one above the other
_SILENT = ("value", "interval")
_GUARDED = ("=", "+", "-", "@", "\t", "\r")


def to_text(report: Report, width: int = 100, *, title_note: str | None = None) -> str:
    """The report as four tables and notes in `width` columns; equal first and final figures share a line."""
    if not report.rows:
        return "No results.\n"
    console = Console(file=io.StringIO(), width=width, height=1_000, color_system=None, force_terminal=False)
    with console.capture() as written:
        for topic, columns in COLUMNS.items():
            title = Text(titled(topic, title_note))
            console.print(title, _table(report, columns, wide=width >= WIDE), "", sep="\n")
        for note in notes(report):
            console.print(Text(note.text))
    return "\n".join(line.rstrip() for line in written.get().splitlines()) + "\n"


def to_csv_rows(report: Report, *, title_note: str | None = None) -> list[list[str]]:
    """A heading and a line a dataset, model and view, at full precision; None is empty, formulas are guarded."""
    return csv_rows([dict(_flat(_plain(row))) for row in report.rows], title_note=title_note)


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    """Rows as the text of a CSV file."""
    table = io.StringIO()
    csv.writer(table, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return table.getvalue()


def to_json(report: Report, *, title_note: str | None = None) -> dict[str, Any]:
    """The report as nested plain values at full precision; None is null."""
    noted = {"title_note": title_note} if title_note else {}
    moved = [asdict(shift) for shift in shifts(report)]
    return noted | {"rows": [_plain(row) for row in report.rows], "moved_by_retries": moved}


def csv_rows(lines: Iterable[Mapping[str, object]], *, title_note: str | None = None) -> list[list[str]]:
    """Lines with the same keys under one heading; the note of the titles, if there is one, leads each line."""
    noted = [{"title_note": title_note, **line} if title_note else dict(line) for line in lines]
    return [list(noted[0]), *([_csv_cell(value) for value in line.values()] for line in noted)] if noted else []


def _table(report: Report, columns: Iterable[Column], *, wide: bool) -> Table:
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
        names = [dataset_name(final) if final.dataset != dataset else "", final.model]
        answers = ["both" if same else "first\nfinal"] if views_differ else []
        figures = ["\n".join(column.cell(row) for row in rows) for column in columns]
        table.add_row(*map(Text, (*(names if wide else ["\n".join(filter(None, names))]), *answers, *figures)))
        dataset = final.dataset
    return table


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
        "preference_fairness_absolute": folded(bias.fairness),
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
