"""Bars in groups, with intervals: told apart by hatching and lightness as well as by colour, and a gap for no data."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from analysis.drawing import FAINT, INK, MARGIN, Block, Pen, Sheet

NAME, SMALL = Pen(size=8), Pen(size=7, colour=FAINT)
NO_DATA = "no data"
_INSIDE = Pen(size=6.5, colour=FAINT)
_NARROWEST = 5.5
_AXIS = 0.45  # left of the bars, for the numbers
_PLOT = 1.7  # the height of a bar of 1
_GAP = 0.3  # between the bars of one group and those of the next
_THINNEST, _THICKEST = 0.18, 0.42
_SWATCH = 0.3
_DARK, _LIGHT = "#1a1a1a", "#ffffff"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A bar: how high (0 to 1), and its interval; None where there is nothing to draw."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class _Style:
    fill: str
    hatch: str
    stroke: str


# No dotted hatches: as SVG they are a hundred times the size of lines.
_STYLES = (
    _Style(fill="#1f3a73", hatch="", stroke=_LIGHT),
    _Style(fill="#f2b04a", hatch="/////", stroke=_DARK),
    _Style(fill="#4c9f70", hatch="", stroke=_LIGHT),
    _Style(fill="#f8dbe6", hatch="xxxxx", stroke="#7a2a4d"),
    _Style(fill="#8a2b2b", hatch="+++++", stroke=_LIGHT),
    _Style(fill="#b3dcf5", hatch="", stroke=_LIGHT),
    _Style(fill="#7b5ea7", hatch="\\\\\\\\\\", stroke=_LIGHT),
    _Style(fill="#fbf3c4", hatch="-----", stroke="#5c5200"),
    _Style(fill="#2b2b2b", hatch="/////", stroke=_LIGHT),
    _Style(fill="#d9b38c", hatch="\\\\\\\\\\", stroke=_DARK),
    _Style(fill="#737373", hatch="xxxxx", stroke=_LIGHT),
    _Style(fill="#ffffff", hatch="|||||", stroke=_DARK),
)


@dataclass(frozen=True, kw_only=True)
class Groups:
    """What stands along the axis: a group of bars for each name, a bar of it for each series; and the room for it.

    The picture is at most `widest` inches wide, but for a single group that needs more.
    """

    names: tuple[str, ...]
    series: tuple[str, ...]
    widest: float

    @property
    def least(self) -> float:
        """The least width of a group, in inches."""
        return max(1.3, len(self.series) * _THINNEST + _GAP)

    @property
    def bands(self) -> list[tuple[str, ...]]:
        """The groups that stand side by side: so many that the bars stay legible, and evenly shared out."""
        fitting = max(1, int((self.widest - _AXIS - 2 * MARGIN) / self.least))
        size = ceil(len(self.names) / ceil(len(self.names) / fitting))
        return [self.names[at : at + size] for at in range(0, len(self.names), size)]

    @property
    def width(self) -> float:
        """The width of the whole picture."""
        wished = len(self.bands[0]) * max(1.6, len(self.series) * 0.3 + _GAP) + _AXIS + 2 * MARGIN
        return max(min(self.widest, max(wished, _NARROWEST)), self.least + _AXIS + 2 * MARGIN)

    @property
    def room(self) -> float:
        """The width of a group."""
        return (self.width - _AXIS - 2 * MARGIN) / len(self.bands[0])

    @property
    def bar(self) -> float:
        """The width of a bar, in shares of its group."""
        return min(_THICKEST, (self.room - _GAP) / len(self.series)) / self.room


def legend(groups: Groups) -> Block:
    """The series, in as many columns as fit."""
    inner = groups.width - 2 * MARGIN
    entries = [NAME.wrapped(name, inner - _SWATCH) for name in groups.series]
    column = _SWATCH + 0.2 + max(NAME.width(line) for lines in entries for line in lines)
    across = max(1, int((inner + 0.2) / column))
    tall = max(map(len, entries)) * NAME.leading + 0.05

    def place(sheet: Sheet, top: float) -> None:
        for at, lines in enumerate(entries):
            left, upper = MARGIN + at % across * column, top + at // across * tall
            _paint(sheet.box(left, upper, _SWATCH - 0.07, NAME.leading), at)
            for row, line in enumerate(lines):
                sheet.text(left + _SWATCH, upper + row * NAME.leading, line, NAME)

    return Block(height=ceil(len(entries) / across) * tall + 0.1, draw=place)


def band(
    groups: Groups, names: tuple[str, ...], spans: Mapping[tuple[str, str], Span], below: Mapping[str, str]
) -> Block:
    """Some groups side by side, under each its name and what else is to stand `below` it; no span is a gap."""
    labels = [
        [(line, NAME) for line in NAME.wrapped(name, groups.room - 0.12)]
        + [(line, SMALL) for line in SMALL.wrapped(below[name], groups.room - 0.12)]
        for name in names
    ]

    def place(sheet: Sheet, top: float) -> None:
        left = MARGIN + _AXIS
        axes = sheet.axes(left, top, groups.room * len(names), _PLOT)
        _frame(axes, len(names))
        for at, name in enumerate(names):
            _bars(axes, groups, [spans.get((name, series)) for series in groups.series], at)
            under = top + _PLOT + 0.05
            for line, pen in labels[at]:
                sheet.text(left + (at + 0.5) * groups.room, under, line, pen, "center")
                under += pen.leading

    tallest = max(sum(pen.leading for _, pen in label) for label in labels)
    return Block(height=_PLOT + 0.05 + tallest + 0.15, draw=place)


def _frame(axes: Axes, groups: int) -> None:
    """An axis from 0 to 1 with faint rules, on which each group is 1 wide."""
    axes.set(xlim=(0, groups), ylim=(0, 1), xticks=[], axisbelow=True)
    ticks = (0, 0.25, 0.5, 0.75, 1)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], fontproperties=SMALL.font, color=INK)
    axes.grid(axis="y", color="#d0d0d0", lw=0.5)
    axes.tick_params(axis="y", length=2, width=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)


def _bars(axes: Axes, groups: Groups, spans: list[Span | None], at: int) -> None:
    for place, drawn in enumerate(spans):
        x = at + 0.5 + (place - (len(spans) - 1) / 2) * groups.bar
        if drawn is None or drawn.value is None:
            _mark(axes, x, 0.03, NO_DATA, rotation=90)
            continue
        box = Rectangle((x - 0.45 * groups.bar, 0), 0.9 * groups.bar, drawn.value)
        axes.add_patch(box)
        _paint(box, place)
        if drawn.low is not None and drawn.high is not None:
            _whisker(axes, x, drawn.low, drawn.high)
        if drawn.value == 0:
            _mark(axes, x, (drawn.high or 0) + 0.03, "0")


def _whisker(axes: Axes, x: float, low: float, high: float) -> None:
    """The interval as a dark line on a light one, to be seen on a dark bar and on white paper."""
    for colour, weight, cap in (("white", 2.0, 5.6), (INK, 0.9, 4.5)):
        axes.plot([x, x], [low, high], color=colour, lw=weight, marker="_", ms=cap, mew=weight, clip_on=False, zorder=3)


def _mark(axes: Axes, x: float, y: float, text: str, *, rotation: float = 0) -> None:
    pen: dict[str, Any] = {"fontproperties": _INSIDE.font, "color": _INSIDE.colour}
    axes.text(x, y, text, ha="center", va="bottom", rotation=rotation, zorder=4, **pen)


def _paint(box: Rectangle, series: int) -> None:
    style = _STYLES[series % len(_STYLES)]
    box.set(facecolor=style.fill, edgecolor=INK, linewidth=0.6, hatch=style.hatch, hatchcolor=style.stroke)
    box.set_hatch_linewidth(0.7)
