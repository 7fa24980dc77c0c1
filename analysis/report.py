"""The report folder: the same figures as text and pictures for people, CSV for tables, JSON for programs, one page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from analysis import tables
from analysis.columns import Topic, titled
from analysis.drawing import KINDS, encoded
from analysis.figures import PHONE, TITLE, WIDEST, figure_csv, figure_two
from analysis.latex import to_latex
from analysis.page import Part, Picture, to_html
from analysis.pairing import View
from analysis.render import csv_text, to_csv_rows, to_json, to_text
from analysis.table_one import table_one, table_one_csv
from analysis.tables import Report, same_figures

FILE_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """What was written, the text for the terminal, and the same as plain values for JSON."""

    text: str
    data: dict[str, Any]
    paths: tuple[Path, ...]


def write_report(
    results: pl.DataFrame,
    out: Path,
    *,
    study: dict[str, Any],
    width: int = 100,
    title_note: str | None = None,
    parts: Sequence[Part] = (),
) -> ReportFiles:
    """Measure `results` (RESULT_SCHEMA) and write report.*, table1.*, figure2.* and index.html into `out`.

    `study` says where the figures come from (name, revision, when); it stands in report.json and on the page.
    `title_note` is added to the title of every table and figure, whatever the form. `parts` end the page;
    where there are some and no results, nothing is written of position bias. A report that is there is replaced.
    """
    report = tables.build(results)
    out.mkdir(parents=True, exist_ok=True)
    data = {"study": study, **(to_json(report, title_note=title_note) if report.rows or not parts else {})}
    contents = dict(_contents(report, data, title_note, parts))
    for name, content in contents.items():
        (out / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    text = to_text(report, width, title_note=title_note)
    return ReportFiles(text=text, data=data, paths=tuple(out / name for name in contents))


def _contents(
    report: Report, data: dict[str, Any], title_note: str | None, parts: Sequence[Part]
) -> Iterator[tuple[str, str | bytes]]:
    """Each file of the report and what it holds."""
    pictures = _pictures(report, title_note) if report.rows or not parts else ()
    yield "index.html", to_html(report, pictures, study=data["study"], title_note=title_note, parts=parts)
    if parts and not report.rows:
        return
    yield "report.txt", to_text(report, FILE_WIDTH, title_note=title_note) + "\n"
    yield "report.csv", csv_text(to_csv_rows(report, title_note=title_note))
    yield "report.json", json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    yield "table1.csv", csv_text(table_one_csv(report, title_note=title_note))
    yield "table1.tex", to_latex(report, title_note=title_note)
    yield "figure2.csv", csv_text(figure_csv(report, title_note=title_note))
    for name, title, drawn in (
        ("table1", titled(Topic.ACCURACY, title_note), table_one(report, title_note=title_note)),
        ("figure2", titled(TITLE, title_note), figure_two(report, title_note=title_note)),
    ):
        for kind in KINDS:
            yield f"{name}.{kind}", encoded(drawn, kind, title)


def _pictures(report: Report, title_note: str | None) -> Iterator[Picture]:
    """Figure 2 of the final answers and, where they give other figures, of the first ones; each wide and narrow."""
    views_differ = not all(same_figures(*cell) for cell in report.by_cell())
    for view in reversed(View) if views_differ else (View.FINAL,):
        title = titled(TITLE + (f", {view.value} answers" if views_differ else ""), title_note)
        wide, narrow = (
            encoded(figure_two(report, view=view, title_note=title_note, widest=widest), "svg", title)
            for widest in (WIDEST, PHONE)
        )
        yield Picture(title=title, wide=wide, narrow=narrow)
