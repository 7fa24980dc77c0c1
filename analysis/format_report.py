"""The part of the report folder that sets formats side by side: text, CSV, LaTeX and heat maps."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.bbq_scores import BiasScores
from analysis.drawing import KINDS, encoded
from analysis.format_findings import Findings, find
from analysis.format_render import (
    question_lines,
    ranking_lines,
    reversal_lines,
    score_lines,
    to_json,
    to_latex,
    to_text,
)
from analysis.heat_maps import heat_maps
from analysis.opinion_tables import OpinionScores
from analysis.page import Picture
from analysis.render import csv_rows, csv_text

FILE_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class FormatFiles:
    """What was written, the text for the terminal, its maps for a page, and all of it as plain values for JSON."""

    text: str
    maps: tuple[Picture, ...]
    paths: tuple[Path, ...]
    data: dict[str, Any]


def write_format_report(
    bias: Sequence[BiasScores],
    distances: Sequence[OpinionScores],
    folder: Path,
    *,
    title_note: str | None = None,
    width: int = 100,
) -> FormatFiles:
    """Write formats.txt, formats*.csv, formats.json, formats.tex and the heat maps of these scores into `folder`.

    A CSV file or a map is left out where there is nothing for it. `title_note` is added to the title of every table and
    picture and leads every line of the CSV files. Files that are there already are replaced.
    """
    findings = find(bias, distances)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = heat_maps(findings.variants, title_note=title_note)
    pictures = {f"{one.name}.{kind}": encoded(one.figure, kind, one.title) for one in drawn for kind in KINDS}
    data = to_json(findings, title_note=title_note)
    contents: dict[str, str | bytes] = {**dict(_tables(findings, distances, title_note)), **pictures}
    contents["formats.json"] = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    for name, content in contents.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return FormatFiles(
        text=to_text(findings, width, title_note=title_note),
        maps=tuple(Picture(title=one.title, wide=pictures[f"{one.name}.svg"]) for one in drawn),
        paths=tuple(folder / name for name in contents),
        data=data,
    )


def _tables(
    findings: Findings, distances: Sequence[OpinionScores], title_note: str | None
) -> Iterator[tuple[str, str]]:
    """Each file of text and what it holds."""
    yield "formats.txt", to_text(findings, FILE_WIDTH, title_note=title_note)
    yield "formats.tex", to_latex(findings, title_note=title_note)
    for name, lines in (
        ("formats", score_lines(findings)),
        ("formats-rankings", ranking_lines(findings)),
        ("formats-reversals", reversal_lines(findings)),
        ("formats-questions", question_lines(distances)),
    ):
        if lines:
            yield f"{name}.csv", csv_text(csv_rows(lines, title_note=title_note))
