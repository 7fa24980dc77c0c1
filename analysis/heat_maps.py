"""Heat maps of the scores of one format by model and variant. Every figure is printed in its cell, so that the pictures
are read without colours too; what there is no figure of is hatched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.columns import titled
from analysis.drawing import FAINT, INK, MARGIN, Block, Pen, Sheet, paragraph, settled, stack
from analysis.format_tables import FORMATS, STAR, Cell, FormatTable, Line, Score, number, printed

WIDEST = 9.0  # inches
_HEAD, _TITLE, _NAME = Pen(size=9, bold=True), Pen(size=8, bold=True), Pen(size=8)
_SMALL, _INSIDE = Pen(size=7, colour=FAINT), Pen(size=7.5)
_LEAST = 5.5
_CELL, _ROW = 0.62, 0.27  # the width and the least height of a cell
_MODEL_ROOM, _SUBSET_ROOM = 1.5, 0.65
_STRIP, _STEPS, _SWATCH = 1.8, 45, 0.3
_DARKEST = 0.75  # of a colour map: its last colours are too dark to read in
_FILLS = {"accuracy": "Blues", "polarisation": "Purples"}
_SIGNED, _DISTANT = "PuOr_r", "Oranges"


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A picture of one dataset and format, and the name of its files."""

    name: str
    title: str
    figure: Figure


@dataclass(frozen=True, kw_only=True)
class _Shades:
    """The colours of a score between two limits, the same in all pictures of a report."""

    low: float
    high: float
    map: str

    def of(self, value: float) -> str:
        """The colour of a value, as #rrggbb."""
        part = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        place = 0.5 + (part - 0.5) * _DARKEST if self.low < 0 else part * _DARKEST
        return to_hex(mpl.colormaps[self.map](place))


def heat_maps(tables: Sequence[FormatTable], *, title_note: str | None = None) -> list[HeatMap]:
    """A picture for each dataset and format of the tables of variants, with a map for each score."""
    of_picture: dict[tuple[str, str], list[FormatTable]] = {}
    for table in tables:
        if table.format is not None:
            of_picture.setdefault((table.score.dataset, table.format), []).append(table)
    shades = {score: _shades(score, tables) for score in dict.fromkeys(table.score for table in tables)}
    made = []
    for (dataset, form), group in of_picture.items():
        title = titled(f"{dataset}: {FORMATS[form]} answers by model and variant", title_note)
        name = f"heat-{dataset.lower()}-{form}"
        made.append(HeatMap(name=name, title=title, figure=_picture(title, group, shades)))
    return made


def _picture(title: str, tables: Sequence[FormatTable], shades: dict[Score, _Shades]) -> Figure:
    with settled():
        left = _left(tables)
        most = max(1, int((WIDEST - left - MARGIN) / _CELL))
        width = max(_LEAST, left + min(most, max(len(table.columns) for table in tables)) * _CELL + MARGIN)
        blocks = [paragraph(title, width, _HEAD, after=0.08)]
        for score in dict.fromkeys(table.score for table in tables):
            for table in (one for one in tables if one.score == score):
                blocks.append(paragraph(table.title.partition(", ")[2], width, _TITLE, after=0.05))
                blocks += [_map(table, columns, left, shades[score]) for columns in _bands(len(table.columns), most)]
            blocks.append(_legend(score, shades[score], gaps=_gaps(score, tables)))
        return stack([*blocks, *_notes(tables, width)], width)


def _bands(columns: int, most: int) -> list[range]:
    """The columns in bands of at most `most`, evenly shared out."""
    size = ceil(columns / ceil(columns / most))
    return [range(start, min(start + size, columns)) for start in range(0, columns, size)]


def _gaps(score: Score, tables: Sequence[FormatTable]) -> bool:
    """Whether a cell of the score is hatched."""
    return any(
        cell is None or cell.estimate.value is None
        for table in tables
        if table.score == score
        for line in table.lines
        for cell in line.cells
    )


def _notes(tables: Sequence[FormatTable], width: float) -> Iterator[Block]:
    if any(table.score.signed for table in tables):
        yield paragraph(f"{STAR} The 95 % interval leaves 0 out.", width, _SMALL, after=0.02)
    if any(table.score.per_cent for table in tables):
        yield paragraph("In per cent.", width, _SMALL, after=0.02)
    yield paragraph("The colours of a score mean the same in every picture of this report.", width, _SMALL)


def _map(table: FormatTable, columns: range, left: float, shades: _Shades) -> Block:
    """Some columns of a table, under their headings."""
    headings = [_SMALL.wrapped(table.columns[at], _CELL - 0.06) for at in columns]
    head = max(map(len, headings)) * _SMALL.leading + 0.04
    models = list(_models(table, left))

    def draw(sheet: Sheet, top: float) -> None:
        for place, texts in enumerate(headings):
            above = top + head - 0.04 - len(texts) * _SMALL.leading
            for row, text in enumerate(texts):
                sheet.text(left + (place + 0.5) * _CELL, above + row * _SMALL.leading, text, _SMALL, "center")
        y = top + head
        for names, lines, tall in models:
            _written(sheet, y + (tall * len(lines) - len(names) * _NAME.leading) / 2, names)
            for line in lines:
                _row(sheet, y, tall, left, line, columns, table.score, shades)
                y += tall
            y += 0.04

    height = head + sum(tall * len(lines) + 0.04 for _, lines, tall in models)
    return Block(height=height + 0.06, draw=draw)


def _models(table: FormatTable, left: float) -> Iterator[tuple[list[str], list[Line], float]]:
    """Each model: the lines of its name, its lines in the table, and how high these are, for the name to fit beside."""
    room = left - MARGIN - 0.1 - (_SUBSET_ROOM if len(table.names) > 1 else 0)
    for model in dict.fromkeys(line.names[0] for line in table.lines):
        names = _NAME.wrapped(model, room)
        lines = [line for line in table.lines if line.names[0] == model]
        yield names, lines, max(_ROW, (len(names) * _NAME.leading + 0.04) / len(lines))


def _written(sheet: Sheet, top: float, texts: Sequence[str]) -> None:
    for row, text in enumerate(texts):
        sheet.text(MARGIN, top + row * _NAME.leading, text, _NAME)


def _row(
    sheet: Sheet, top: float, tall: float, left: float, line: Line, columns: range, score: Score, shades: _Shades
) -> None:
    for subset in line.names[1:]:
        sheet.text(left - _SUBSET_ROOM, top + (tall - _SMALL.leading) / 2, subset, _SMALL)
    for place, at in enumerate(columns):
        _cell(sheet, (left + place * _CELL, top, tall), line.cells[at], score, shades)


def _cell(sheet: Sheet, at: tuple[float, float, float], cell: Cell | None, score: Score, shades: _Shades) -> None:
    x, top, tall = at
    box = sheet.box(x, top, _CELL, tall)
    if cell is None or cell.estimate.value is None:
        _hatch(box)
        return
    fill = shades.of(cell.estimate.value)
    box.set(facecolor=fill, edgecolor="white", linewidth=0.8)
    pen = Pen(size=_INSIDE.size, colour=_readable_on(fill))
    sheet.text(x + _CELL / 2, top + (tall - pen.leading) / 2, printed(cell, score), pen, "center")


def _hatch(box: Rectangle) -> None:
    box.set(facecolor="#f0f0f0", edgecolor="white", linewidth=0.8, hatch="////", hatchcolor="#b0b0b0")
    box.set_hatch_linewidth(0.5)


def _legend(score: Score, shades: _Shades, *, gaps: bool) -> Block:
    """The colours from limit to limit, and what hatching is, where there are `gaps`."""
    low, high = number(shades.low, score), number(shades.high, score)

    def draw(sheet: Sheet, top: float) -> None:
        sheet.text(MARGIN, top, low, _SMALL)
        left = MARGIN + _SMALL.width(low) + 0.06
        step = _STRIP / _STEPS
        for at in range(_STEPS):
            fill = shades.of(shades.low + (at + 0.5) / _STEPS * (shades.high - shades.low))
            # Each reaches under the next: no white shows between them.
            sheet.box(left + at * step, top, min(2 * step, _STRIP - at * step), _SMALL.leading).set(fc=fill, lw=0)
        after = left + _STRIP + 0.06
        sheet.text(after, top, high, _SMALL)
        if gaps:
            after += _SMALL.width(high) + 0.3
            _hatch(sheet.box(after, top, _SWATCH, _SMALL.leading))
            sheet.text(after + _SWATCH + 0.06, top, "no data, or not asked", _SMALL)

    return Block(height=_SMALL.leading + 0.2, draw=draw)


def _shades(score: Score, tables: Sequence[FormatTable]) -> _Shades:
    """From 0 on, to 1 for an accuracy; of a signed score as far to one side of 0 as to the other."""
    cells = [cell for table in tables if table.score == score for line in table.lines for cell in line.cells]
    values = [abs(cell.estimate.value) for cell in cells if cell is not None and cell.estimate.value is not None]
    reach = max(1, ceil(round(10 * max(values, default=0.0), 9))) / 10
    if score.signed:
        return _Shades(low=-reach, high=reach, map=_SIGNED)
    return _Shades(low=0.0, high=1.0 if score.highest else reach, map=_FILLS.get(score.name, _DISTANT))


def _left(tables: Sequence[FormatTable]) -> float:
    """Where the cells begin: right of the names."""
    longest = max(_NAME.width(line.names[0]) for table in tables for line in table.lines)
    subsets = any(len(table.names) > 1 for table in tables)
    return MARGIN + min(_MODEL_ROOM, longest) + 0.1 + (_SUBSET_ROOM if subsets else 0)


def _readable_on(fill: str) -> str:
    """White or ink, whichever stands out more: by the relative luminance of WCAG 2."""
    red, green, blue = (((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in to_rgb(fill))
    return "#ffffff" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.2 else INK
