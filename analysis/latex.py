"""Table 1 for LaTeX with booktabs. Every text from outside is escaped; no name is wider than its column."""

import re
import unicodedata
from collections.abc import Iterator

from analysis.columns import DASH, NOMINAL_MARK, Topic, titled
from analysis.grid import Grid
from analysis.table_one import NOTHING, grid, grid_notes
from analysis.tables import Report

_LONG_NAME = 24  # characters; longer names get a column in which they are broken
_LONG_TABLE = 45  # lines; a longer table goes over several pages
_RUN = 12  # characters of a name without a place to break it
_NEGATIVE = re.compile(r"(?<!\w)-(?=[\d.])")
_PIECES = re.compile(rf"[^\W_]{{0,{_RUN}}}[\W_]|[^\W_]{{1,{_RUN}}}")
_BREAK = r"\allowbreak{}"
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\char96{}",
    DASH: r"\textendash{}",
    "−": r"\textminus{}",
    NOMINAL_MARK: r"\textdagger{}",
}


def escaped(text: str) -> str:
    """The text as LaTeX prints it, sign by sign; white space and control characters become a space."""
    composed = unicodedata.normalize("NFC", text)
    safe = "".join(_SIGNS.get(sign, sign if sign.isprintable() else " ") for sign in composed)
    # Doubled, these would become another sign; the first ones of a line would be read as options of the line's end.
    return re.sub(r"^(?=[\[*])", "{}", re.sub(r"([-,'])(?=\1)", r"\1{}", safe))


def to_latex(report: Report, *, title_note: str | None = None, n: bool = True, intervals: bool = True) -> str:
    """Table 1 as a file to \\input; a comment in it says what packages it needs. Without `n` it is the paper's."""
    shown = grid(report, n=n, intervals=intervals)
    return grid_to_latex(shown, titled(Topic.ACCURACY.partition(". ")[2], title_note), grid_notes(report))


def grid_to_latex(shown: Grid, title: str, notes: list[str]) -> str:
    """Any table as a file to \\input, or a part of one."""
    caption = escaped(title)
    long = len(shown.cells) > _LONG_TABLE
    packages = r"\usepackage{booktabs,longtable}" if long else r"\usepackage{booktabs}"
    body = _longtable(shown, caption) if long else _table(shown, caption, notes)
    after = _small(notes) if long and notes else []
    return "\n".join([f"% needs {packages}", *body, *after]) + "\n"


def _table(shown: Grid, caption: str, notes: list[str]) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{caption}}}"
    yield r"\footnotesize"
    yield r"\setlength{\tabcolsep}{4pt}"
    yield rf"\begin{{tabular}}{{{_specification(shown)}}}"
    yield from _header(shown)
    yield from _rows(shown)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    if shown.cells and notes:
        yield from _small(notes)
    yield r"\end{table}"


def _longtable(shown: Grid, caption: str) -> Iterator[str]:
    yield r"\begingroup"
    yield r"\footnotesize"
    yield r"\setlength{\tabcolsep}{4pt}"
    yield rf"\begin{{longtable}}{{{_specification(shown)}}}"
    yield rf"\caption{{{caption}}} \\"
    yield from _header(shown)
    yield r"\endhead"
    yield r"\bottomrule"
    yield r"\endfoot"
    yield from _rows(shown)
    yield r"\end{longtable}"
    yield r"\endgroup"


def _specification(shown: Grid) -> str:
    """Names to the left, in a column of their own width where one is long; figures to the right."""
    names = ["p{2.9cm}" if _longest(shown, at) > _LONG_NAME else "l" for at in range(shown.names)]
    return "".join(names) + "r" * (len(shown.headings) - shown.names)


def _longest(shown: Grid, at: int) -> int:
    return max((len(cells[at]) for cells in shown.cells), default=0)


def _header(shown: Grid) -> Iterator[str]:
    over = [rf"\multicolumn{{{last - first + 1}}}{{c}}{{{escaped(name)}}}" for name, first, last in shown.halves]
    yield r"\toprule"
    if over:
        yield " & ".join([""] * shown.names + over).lstrip() + r" \\"
        yield " ".join(rf"\cmidrule(lr){{{first + 1}-{last + 1}}}" for _, first, last in shown.halves)
    yield " & ".join(escaped(heading) for heading in shown.headings) + r" \\"
    yield r"\midrule"


def _rows(shown: Grid) -> Iterator[str]:
    if not shown.cells:
        yield rf"\multicolumn{{{len(shown.headings)}}}{{c}}{{{NOTHING}}} \\"
    for at, (cells, opens) in enumerate(zip(shown.cells, shown.opens, strict=True)):
        if opens and at:
            yield r"\addlinespace"
        figures = (escaped(_NEGATIVE.sub("−", text)) for text in cells[shown.names :])
        texts = [*map(_breakable, cells[: shown.names]), *figures]
        yield " & ".join(texts) + r" \\"


def _breakable(name: str) -> str:
    """A name whose long words may be broken after their signs and, where they have none, every so many characters."""
    return " ".join(
        escaped(word) if len(word) <= _RUN else _BREAK.join(map(escaped, _PIECES.findall(word)))
        for word in unicodedata.normalize("NFC", name).split()
    )


def _small(notes: list[str]) -> Iterator[str]:
    yield r"\par\medskip"
    yield r"\begin{minipage}{\linewidth}\scriptsize\raggedright"
    yield from (escaped(note) + r"\par" for note in notes)
    yield r"\end{minipage}"
