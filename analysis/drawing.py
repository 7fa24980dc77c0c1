"""What the pictures share: one font, text that is measured before it is placed, the same bytes for the same data.

Pictures are laid out in inches from the top left corner, as blocks one under the other, and are as high as their blocks
ask for. So nothing is shrunk, cut or laid over something else, however long a name is.
"""

import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

DPI = 200
MARGIN = 0.15
KINDS = ("png", "svg", "pdf")
INK = "#1a1a1a"
FAINT = "#595959"
_LEADING = 1.3
_SLACK = 1.03  # a picture of dots rounds each letter to whole dots
_PIECES = re.compile(r"[^-/_:.,;@+]*[-/_:.,;@+]+|[^-/_:.,;@+]+")
_NO_GLYPH = "\N{REPLACEMENT CHARACTER}"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "bothways",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "pdf.compression": 6,
}
_DATELESS: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}

Align = Literal["left", "center", "right"]


@dataclass(frozen=True, kw_only=True)
class Pen:
    """How a text is written: its size in points and its colour."""

    size: float = 8.0
    bold: bool = False
    colour: str = INK

    @property
    def leading(self) -> float:
        """From one line to the next, in inches."""
        return self.size * _LEADING / 72

    @property
    def font(self) -> FontProperties:
        """The bundled DejaVu Sans, whatever fonts this machine has."""
        return FontProperties(fname=_font_file(bold=self.bold), size=self.size)

    def width(self, text: str) -> float:
        """How many inches wide a line of text is."""
        width, _, _ = text_to_path.get_text_width_height_descent(readable(text), self.font, ismath=False)
        return float(width) / 72 * _SLACK

    def wrapped(self, text: str, width: float) -> list[str]:
        """The text in lines of at most `width` inches: broken at spaces, a longer word at its signs, else anywhere."""
        lines = [""]
        for word in readable(text).split():
            joined = f"{lines[-1]} {word}".lstrip()
            if self.width(joined) <= width:
                lines[-1] = joined
                continue
            if lines[-1]:
                lines.append("")
            for piece in self._pieces(word, width):
                if lines[-1] and self.width(lines[-1] + piece) > width:
                    lines.append("")
                lines[-1] += piece
        return lines

    def _pieces(self, word: str, width: float) -> Iterator[str]:
        for piece in [word] if self.width(word) <= width else _PIECES.findall(word):
            yield from [piece] if self.width(piece) <= width else piece


class Sheet:
    """A figure that is drawn on in inches from its top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
        self.width, self.height = width, height
        self._inches = Affine2D().scale(1, -1).translate(0, height) + self.figure.dpi_scale_trans

    def text(self, x: float, top: float, text: str, pen: Pen, align: Align = "left") -> None:
        """Write one line, its line box beginning at `top`; nothing in it is taken for mathematics."""
        base = top + pen.leading * 0.77
        self.figure.text(
            x,
            base,
            readable(text),
            ha=align,
            va="baseline",
            color=pen.colour,
            fontproperties=pen.font,
            parse_math=False,
            transform=self._inches,
        )

    def line(self, left: float, right: float, y: float, *, weight: float = 0.5, colour: str = INK) -> None:
        """Rule a level line."""
        rule = Line2D([left, right], [y, y], lw=weight, color=colour, transform=self._inches, solid_capstyle="butt")
        self.figure.add_artist(rule)

    def box(self, left: float, top: float, width: float, height: float) -> Rectangle:
        """Place a box, to be styled by who asked for it."""
        placed = Rectangle((left, top), width, height, transform=self._inches)
        self.figure.add_artist(placed)
        return placed

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Place axes."""
        bottom = self.height - top - height
        return self.figure.add_axes(
            (left / self.width, bottom / self.height, width / self.width, height / self.height), facecolor="white"
        )


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a picture: how high it is, and how to draw it from a given top."""

    height: float
    draw: Callable[[Sheet, float], None]


def paragraph(text: str, width: float, pen: Pen, *, after: float = 0.0) -> Block:
    """A text between the margins of a picture `width` inches wide."""
    lines = pen.wrapped(text, width - 2 * MARGIN)

    def draw(sheet: Sheet, top: float) -> None:
        for at, line in enumerate(lines):
            sheet.text(MARGIN, top + at * pen.leading, line, pen)

    return Block(height=len(lines) * pen.leading + after, draw=draw)


def stack(blocks: Iterable[Block], width: float) -> Figure:
    """Draw the blocks one under the other on a sheet just as high as they are. Call it under `settled`."""
    blocks = list(blocks)
    sheet = Sheet(width, sum(block.height for block in blocks) + 2 * MARGIN)
    top = MARGIN
    for block in blocks:
        block.draw(sheet, top)
        top += block.height
    return sheet.figure


@contextmanager
def settled() -> Iterator[None]:
    """matplotlib's own defaults and ours, whatever this machine's settings are; they are put back afterwards."""
    kept: dict[Any, Any] = {key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"}
    with mpl.rc_context(kept | _SETTINGS):
        yield


def encoded(figure: Figure, kind: str, title: str) -> bytes:
    """The picture as a file of `kind` (KINDS), without dates or versions: the same data make the same bytes."""
    written = io.BytesIO()
    with settled():
        FigureCanvasAgg(figure).print_figure(
            written, format=kind, dpi=DPI, metadata={**_DATELESS[kind], "Title": readable(title)}
        )
    return written.getvalue()


def readable(text: str) -> str:
    """The text as the font can show it: accents composed, white space plain, what it has no glyph for replaced."""
    composed = unicodedata.normalize("NFC", text)
    shown = (" " if sign.isspace() else sign for sign in composed)
    return "".join(sign if ord(sign) in _glyphs() and sign.isprintable() else _NO_GLYPH for sign in shown)


@cache
def _font_file(*, bold: bool) -> Path:
    return Path(mpl.get_data_path()) / "fonts" / "ttf" / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")


@cache
def _glyphs() -> frozenset[int]:
    """The characters that both weights of the font can show."""
    return frozenset.intersection(
        *(frozenset(FT2Font(str(_font_file(bold=bold))).get_charmap()) for bold in (False, True))
    )
