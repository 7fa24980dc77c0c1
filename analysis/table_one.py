"""Table 1 in the layout of the positional-bias paper: for LaTeX, as CSV, and drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise

from matplotlib.figure import Figure

from analysis.columns import Line, Topic, count, dataset_name, figure, invalid, lines, notes, titled
from analysis.drawing import FAINT, MARGIN, Block, Pen, Sheet, paragraph, settled, stack
from analysis.grid import Grid, spread
from analysis.render import csv_rows
from analysis.tables import OrderFigures, Report, Row

_HALVES: tuple[tuple[str, Callable[[Row], OrderFigures]], ...] = (
    ("Correct-first", lambda row: row.correct_first),
    ("Wrong-first", lambda row: row.wrong_first),
)
NOTHING = "No results."
_HEAD, _BODY, _STRONG, _NOTE = Pen(size=9, bold=True), Pen(size=8), Pen(size=8, bold=True), Pen(size=7, colour=FAINT)
_NAME_ROOM = 2.4  # inches for a dataset or a model; a longer name takes more lines
_BETWEEN = 0.22
_LEAST = 5.5


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """What is drawn for a dataset and a model: the lines of each cell."""

    cells: list[list[str]]
    opens: bool

    @property
    def tall(self) -> int:
        """How many lines it takes."""
        return max(map(len, self.cells))


def grid(report: Report, *, n: bool = True, intervals: bool = True) -> Grid:
    """The texts of Table 1; the denominators `n` and the intervals can be left out, as the paper does."""
    shown = lines(report)
    answers = any(line.answers for line in shown)
    headings = ("Accuracy", "n", "# Invalid") if n else ("Accuracy", "# Invalid")
    names = 3 if answers else 2
    return Grid(
        names=names,
        headings=("Dataset", "Model", *(["Answers"] if answers else []), *headings * len(_HALVES)),
        cells=tuple((*_names(line), *_figures(line.row, n=n, intervals=intervals)) for line in shown),
        opens=tuple(line.opens_dataset for line in shown),
        halves=spread(tuple(name for name, _ in _HALVES), start=names, size=len(headings)),
    )


def grid_notes(report: Report) -> list[str]:
    """What Table 1 leaves unsaid."""
    return [" ".join(note.text.split()) for note in notes(report) if note.about in (None, Topic.ACCURACY)]


def table_one_csv(report: Report, *, title_note: str | None = None) -> list[list[str]]:
    """Table 1 in both views at full precision. The paper's # Invalid is `..._invalid_or_refused`."""
    return csv_rows((_csv_line(row) for row in report.rows), title_note=title_note)


def table_one(report: Report, *, title_note: str | None = None) -> Figure:
    """Table 1 drawn, as wide and as high as its texts ask for."""
    title = titled(Topic.ACCURACY, title_note)
    with settled():
        if not report.rows:
            return stack([paragraph(title, _LEAST, _HEAD, after=0.1), paragraph(NOTHING, _LEAST, _BODY)], _LEAST)
        drawn = grid(report)
        entries = _entries(drawn)
        places = _places(drawn, [entry.cells for entry in entries])
        width = max(_LEAST, places[-1] - _BETWEEN + MARGIN)
        apart = 0.02 if max(entry.tall for entry in entries) == 1 else 0.05
        rows = [_row(places, drawn.names, entry, apart) for entry in entries]
        blocks = [paragraph(title, width, _HEAD, after=0.08), _header(drawn, places), *rows, _rule(places)]
        return stack([*blocks, *(paragraph(note, width, _NOTE, after=0.02) for note in grid_notes(report))], width)


def _names(line: Line) -> list[str]:
    dataset = dataset_name(line.row) if line.opens_dataset else ""
    return [dataset, line.row.model if line.opens_model else "", *([line.answers] if line.answers else [])]


def _figures(row: Row, *, n: bool, intervals: bool) -> list[str]:
    made: list[str] = []
    for _, half in _HALVES:
        figures = half(row)
        made.append(figure(figures.accuracy, interval=intervals))
        made += [count(figures.accuracy.n)] if n else []
        made.append(count(invalid(figures)))
    return made


def _csv_line(row: Row) -> dict[str, object]:
    line: dict[str, object] = {"dataset": row.dataset, "model": row.model, "view": row.view.value}
    line["means"] = "nominal accuracy" if row.nominal else "accuracy"
    for name, half in (("correct_first", row.correct_first), ("wrong_first", row.wrong_first)):
        line |= {
            f"{name}_accuracy": half.accuracy.value,
            f"{name}_accuracy_low": half.accuracy.interval.low,
            f"{name}_accuracy_high": half.accuracy.interval.high,
            f"{name}_accuracy_n": half.accuracy.n,
            f"{name}_invalid_or_refused": invalid(half),
            f"{name}_failed": half.failed,
            f"{name}_missing": half.missing,
        }
    return line


def _entries(drawn: Grid) -> list[_Entry]:
    """The lines of a model go together: its name may take as many lines as its figures, or more."""
    made: list[_Entry] = []
    for texts, opens in zip(drawn.cells, drawn.opens, strict=True):
        if texts[1]:
            wraps = [_BODY.wrapped(name, _NAME_ROOM) for name in texts[: drawn.names]]
            made.append(_Entry(cells=[*wraps, *([text] for text in texts[drawn.names :])], opens=opens))
        else:
            for cell, text in zip(made[-1].cells[2:], texts[2:], strict=True):
                cell.append(text)
    return made


def _places(drawn: Grid, wraps: list[list[list[str]]]) -> list[float]:
    """Where each column begins, and where the next would."""
    widths = [
        max(_STRONG.width(heading), *(_BODY.width(line) for cells in wraps for line in cells[at]))
        for at, heading in enumerate(drawn.headings)
    ]
    return list(accumulate((width + _BETWEEN for width in widths), initial=MARGIN))


def _header(drawn: Grid, places: list[float]) -> Block:
    """The two levels of headings between their rules."""
    step = _STRONG.leading + 0.05

    def draw(sheet: Sheet, top: float) -> None:
        sheet.line(places[0], places[-1] - _BETWEEN, top, weight=1.2)
        for name, first, last in drawn.halves:
            left, right = places[first], places[last + 1] - _BETWEEN
            sheet.text((left + right) / 2, top + 0.05, name, _STRONG, "center")
            sheet.line(left, right, top + step + 0.03)
        _write(sheet, top + step + 0.07, places, drawn.names, [[text] for text in drawn.headings], _STRONG)
        sheet.line(places[0], places[-1] - _BETWEEN, top + 2 * step + 0.06, weight=0.8)

    return Block(height=2 * step + 0.1, draw=draw)


def _row(places: list[float], names: int, entry: _Entry, apart: float) -> Block:
    gap = 0.1 if entry.opens else apart

    def draw(sheet: Sheet, top: float) -> None:
        _write(sheet, top + gap, places, names, entry.cells, _BODY)

    return Block(height=entry.tall * _BODY.leading + gap, draw=draw)


def _rule(places: list[float]) -> Block:
    return Block(
        height=0.12, draw=lambda sheet, top: sheet.line(places[0], places[-1] - _BETWEEN, top + 0.05, weight=1.2)
    )


def _write(sheet: Sheet, top: float, places: list[float], names: int, cells: list[list[str]], pen: Pen) -> None:
    """One line of the table: names to the left of their columns, figures to the right."""
    for at, ((left, after), texts) in enumerate(zip(pairwise(places), cells, strict=True)):
        for row, text in enumerate(texts):
            y = top + row * pen.leading
            if at < names:
                sheet.text(left, y, text, pen)
            else:
                sheet.text(after - _BETWEEN, y, text, pen, "right")
