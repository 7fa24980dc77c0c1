"""The report folder: the same figures as text for people, CSV for tables and JSON for programs."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from analysis import tables
from analysis.render import to_csv_rows, to_json, to_text

FILE_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """What was written, and the text for the terminal."""

    text: str
    paths: tuple[Path, ...]


def write_report(results: pl.DataFrame, out: Path, *, study: dict[str, Any], width: int = 100) -> ReportFiles:
    """Measure `results` (RESULT_SCHEMA) and write report.txt, report.csv and report.json into `out`.

    `study` says where the figures come from (name, revision, when); it stands in report.json. A report that is there
    already is replaced.
    """
    report = tables.build(results)
    out.mkdir(parents=True, exist_ok=True)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(to_csv_rows(report))
    contents = {
        "report.txt": to_text(report, FILE_WIDTH) + "\n",
        "report.csv": table.getvalue(),
        "report.json": json.dumps({"study": study, **to_json(report)}, ensure_ascii=False, indent=2) + "\n",
    }
    for name, content in contents.items():
        (out / name).write_text(content, encoding="utf-8")
    return ReportFiles(text=to_text(report, width), paths=tuple(out / name for name in contents))
