"""What several formats say, as text for a terminal, rows of CSV files, LaTeX, and plain values for JSON."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.answer_rows import ALL
from analysis.columns import titled
from analysis.format_findings import Findings
from analysis.format_grids import MARKS, counts, formats_beside, one_score, ranked_by, ranking_grid, reversal_grid
from analysis.format_tables import BBQ, OPINION_QA, FormatTable
from analysis.grid import Grid
from analysis.latex import grid_to_latex
from analysis.opinion_tables import OpinionScores
from analysis.statistics import significant

NOTHING = "No results."
TABLE_TWO = "Table 2. Bias on BBQ by format, in per cent"
APART = "Distances from human answers on OpinionQA by format"
RESTS_ON = {
    BBQ: "the n of s_DIS (n DIS), of s_AMB and accuracy (n AMB), and invalid answers",
    OPINION_QA: "questions with a distance, and invalid answers",
}
RANKED = "Models ranked by format: least bias, or highest accuracy, first"
TURNED = "Pairs of models whose order two formats reverse"
_NAME_ROOM = 34  # characters for names, where variants are many: beyond it, they are folded
_VARIANT_ROOM = 10
_UNBROKEN = ("Subset", "Score", "Mark")

Line = dict[str, object]


def to_text(findings: Findings, width: int = 100, *, title_note: str | None = None) -> str:
    """All tables and notes in `width` columns; variants that do not fit beside one another go into further tables."""
    if not findings.tables:
        return f"{NOTHING}\n"
    console = Console(file=io.StringIO(), width=width, height=1_000, color_system=None, force_terminal=False)
    with console.capture() as written:
        for title, grid in _grids(findings, width):
            console.print(Text(titled(title, title_note)), _table(grid), "", sep="\n")
        for note in (*findings.notes, *([MARKS] if findings.reversals else [])):
            console.print(Text(note))
    return "\n".join(line.rstrip() for line in written.get().splitlines()) + "\n"


def to_latex(findings: Findings, *, title_note: str | None = None) -> str:
    """Table 2 in the paper's layout, each of its scores with intervals, what they rest on; then distances; rankings."""
    made = [
        grid_to_latex(grid, titled(title.removeprefix("Table 2. "), title_note), notes)
        for title, grid, notes in _printed_grids(findings)
    ]
    return "\n".join(made) or f"% {NOTHING}\n"


def score_lines(findings: Findings) -> list[Line]:
    """A line a score, model, subset, format and variant ("all": pooled) that was asked, at full precision."""
    return [line for table in findings.tables for line in _score_lines(table)]


def question_lines(distances: Sequence[OpinionScores]) -> list[Line]:
    """A line a question, model, format and variant: distances, and shares in the order of the choices."""
    return [
        {
            "question": one.key,
            "model": record.model,
            "format": record.format,
            "variant": record.variant,
            "n": one.n,
            "w_dist": one.distances and one.distances.w_dist,
            "js_dist": one.distances and one.distances.js_dist,
            "composite": one.distances and one.distances.composite,
            "shares": one.shares and " ".join(f"{share:.6f}" for share in one.shares),
        }
        for record in distances
        for one in record.questions
    ]


def ranking_lines(findings: Findings) -> list[Line]:
    """A line a score, subset, format and model: its place."""
    return [
        {
            "dataset": ranking.score.dataset,
            "score": ranked_by(ranking.score),
            "subset": ranking.subset,
            "format": ranking.format,
            "place": place.place,
            "model": place.model,
            "value": place.value,
            "low": place.low,
            "high": place.high,
        }
        for ranking in findings.rankings
        for place in ranking.places
    ]


def reversal_lines(findings: Findings) -> list[Line]:
    """A line a reversal."""
    return [
        {
            "dataset": each.score.dataset,
            "score": ranked_by(each.score),
            "subset": each.subset,
            "less_biased": each.models[0],
            "more_biased": each.models[1],
            "by_format": each.formats[0],
            "reversed_by_format": each.formats[1],
            "mark": "clear" if each.clear else "open",
        }
        for each in findings.reversals
    ]


def to_json(findings: Findings, *, title_note: str | None = None) -> dict[str, Any]:
    """All of it as plain values at full precision; None is null."""
    noted = {"title_note": title_note} if title_note else {}
    return noted | {
        "scores": score_lines(findings),
        "rankings": ranking_lines(findings),
        "reversals": reversal_lines(findings),
        "notes": list(findings.notes),
    }


def _grids(findings: Findings, width: int) -> Iterator[tuple[str, Grid]]:
    for tables, title, numbers in _side_by_side(findings):
        for table in tables:
            yield table.title, one_score(table, intervals=True)
        yield f"{title}: {RESTS_ON[tables[0].score.dataset]}", counts(numbers)
    for table in findings.polarisation:
        yield table.title, one_score(table, intervals=True)
    for table in findings.variants:
        for part in _parts(table, max(1, (width - _NAME_ROOM) // _VARIANT_ROOM)):
            yield part.title, one_score(part, intervals=False)
    if findings.rankings:
        yield RANKED, ranking_grid(findings.rankings, findings.reversals)
    if findings.reversals:
        yield TURNED, reversal_grid(findings.reversals)


def _printed_grids(findings: Findings) -> Iterator[tuple[str, Grid, list[str]]]:
    """The tables for LaTeX, each with what stands below it: the notes below the first one of a dataset."""
    for tables, title, numbers in _side_by_side(findings):
        yield title, formats_beside(tables), list(findings.notes)
        for table in tables:
            yield table.title, one_score(table, intervals=True), []
        yield f"{title}: {RESTS_ON[tables[0].score.dataset]}", counts(numbers), []
    if findings.rankings:
        yield RANKED, ranking_grid(findings.rankings, findings.reversals), [MARKS]
    if findings.reversals:
        yield TURNED, reversal_grid(findings.reversals), []


def _side_by_side(findings: Findings) -> Iterator[tuple[tuple[FormatTable, ...], str, dict[str, FormatTable]]]:
    """The tables of a dataset, what they are together, and whose n is told under which heading."""
    if findings.bias:
        s_dis, s_amb, _ = findings.bias
        yield findings.bias, TABLE_TWO, {"n DIS": s_dis, "n AMB": s_amb}
    if findings.distances:
        yield findings.distances, APART, {"questions": findings.distances[0]}


def _parts(table: FormatTable, most: int) -> Iterator[FormatTable]:
    """The table in parts of at most `most` columns."""
    for start in range(0, len(table.columns), most):
        lines = tuple(replace(line, cells=line.cells[start : start + most]) for line in table.lines)
        yield replace(table, columns=table.columns[start : start + most], lines=lines)


def _table(grid: Grid) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    over = {at: text for text, first, last in grid.halves for at in range(first, last + 1)}
    for at, heading in enumerate(grid.headings):
        above = f"{over[at]}\n" if at in over else ""
        if at < grid.names:
            table.add_column(Text(heading), overflow="fold", no_wrap=heading in _UNBROKEN)
        else:
            table.add_column(Text(above + heading), justify="right", no_wrap=not above, overflow="fold")
    for at, cells in enumerate(_joined(grid)):
        if at:
            table.add_section()
        for line in cells:
            table.add_row(*map(Text, line))
    return table


def _joined(grid: Grid) -> Iterator[list[tuple[str, ...]]]:
    """The lines between one opening and the next; those of one model as a single one, for its name to be beside all."""
    starts = [at for at, opens in enumerate(grid.opens) if opens]
    for start, end in zip(starts, [*starts[1:], len(grid.cells)], strict=True):
        lines = list(grid.cells[start:end])
        alone = grid.headings[0] == "Model"
        yield [tuple("\n".join(texts).rstrip() for texts in zip(*lines, strict=True))] if alone else lines


def _score_lines(table: FormatTable) -> Iterator[Line]:
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            if cell is None:
                continue
            found = cell.estimate
            yield {
                "dataset": table.score.dataset,
                "score": table.score.name,
                "model": line.names[0],
                "subset": line.names[1] if len(line.names) > 1 else None,
                "format": table.format or column,
                "variant": column if table.format else ALL,
                "value": found.value,
                "low": found.interval.low,
                "high": found.interval.high,
                "leaves_zero_out": significant(found.interval) if table.score.signed else None,
                "n": found.n,
                "clusters": found.interval.clusters,
                "method": None if found.interval.method is None else str(found.interval.method),
                "jobs": cell.jobs.planned,
                "answered": cell.jobs.answered,
                "invalid": cell.jobs.invalid,
                "refused": cell.jobs.refused,
                "failed": cell.jobs.failed,
                "missing": cell.jobs.missing,
            }
