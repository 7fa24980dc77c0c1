"""The tables of several formats as texts: the paper's Table 2, figures with intervals, counts, rankings. Pure."""

from collections.abc import Mapping, Sequence

from analysis.columns import DASH, NOMINAL_MARK, count
from analysis.format_rankings import Place, Ranking, Reversal
from analysis.format_tables import FORMATS, Cell, FormatTable, Score, number, printed
from analysis.grid import Grid, spread

CLEAR, OPEN = NOMINAL_MARK, f"({NOMINAL_MARK})"
MARKS = f"{CLEAR} in a clear reversal; {OPEN} only in open ones, where intervals overlap or there is none."


def formats_beside(tables: Sequence[FormatTable]) -> Grid:
    """The layout of the paper's Table 2: under each score its formats, with stars and without intervals."""
    first = tables[0]
    figures = [[printed(cell, table.score) for cell in line.cells] for table in tables for line in table.lines]
    many = len(first.lines)
    return Grid(
        names=len(first.names),
        headings=(*first.names, *_columns(first) * len(tables)),
        cells=tuple(
            (*names, *(text for table in range(len(tables)) for text in figures[table * many + at]))
            for at, names in enumerate(_names(first))
        ),
        opens=first.opens,
        halves=spread(tuple(table.score.name for table in tables), start=len(first.names), size=len(first.columns)),
    )


def one_score(table: FormatTable, *, intervals: bool) -> Grid:
    """One score, with intervals if they are asked for."""
    return Grid(
        names=len(table.names),
        headings=(*table.names, *_columns(table)),
        cells=tuple(
            (*names, *(printed(cell, table.score, interval=intervals) for cell in line.cells))
            for names, line in zip(_names(table), table.lines, strict=True)
        ),
        opens=table.opens,
    )


def counts(numbers: Mapping[str, FormatTable]) -> Grid:
    """What the figures of each format rest on: under its heading the n of each table, and how many are invalid."""
    tables = list(numbers.values())
    first = tables[0]
    lines = zip(_names(first), zip(*(table.lines for table in tables), strict=True), strict=True)
    return Grid(
        names=len(first.names),
        headings=(*first.names, *(*numbers, "invalid") * len(first.columns)),
        cells=tuple(
            (*names, *(text for at in range(len(first.columns)) for text in _counted([one.cells[at] for one in alike])))
            for names, alike in lines
        ),
        opens=first.opens,
        halves=spread(_columns(first), start=len(first.names), size=len(tables) + 1),
    )


def ranking_grid(ranked: Sequence[Ranking], turned: Sequence[Reversal]) -> Grid:
    """A line a score, subset and model: its place by each format, and what it is ranked by; reversals are marked."""
    found = {
        (ranking.score, ranking.subset, place.model, ranking.format): place
        for ranking in ranked
        for place in ranking.places
    }
    lines = list(dict.fromkeys(key[:3] for key in found))
    groups = list(dict.fromkeys(key[:2] for key in lines))
    lines.sort(key=lambda line: groups.index(line[:2]))
    opens = [at == 0 or lines[at - 1][:2] != line[:2] for at, line in enumerate(lines)]
    marks = {form: _marks(form, turned) for form in FORMATS}
    return Grid(
        names=3,
        headings=("Score", "Subset", "Model", *FORMATS.values()),
        cells=tuple(
            (
                ranked_by(score) if first else "",
                (subset or DASH) if first else "",
                model,
                *(_placed(found.get((*line, form)), score, marks[form].get(line, "")) for form in FORMATS),
            )
            for line, first in zip(lines, opens, strict=True)
            for score, subset, model in [line]
        ),
        opens=tuple(opens),
    )


def reversal_grid(turned: Sequence[Reversal]) -> Grid:
    """A line a reversal: which model is less biased by the one format, and more by the other."""
    keys = [(each.score, each.subset) for each in turned]
    opens = [at == 0 or keys[at - 1] != key for at, key in enumerate(keys)]
    return Grid(
        names=7,
        headings=("Score", "Subset", "Less biased", "than", "by", "but more by", "Mark"),
        cells=tuple(
            (
                ranked_by(each.score) if first else "",
                (each.subset or DASH) if first else "",
                *each.models,
                *(FORMATS[form] for form in each.formats),
                "clear" if each.clear else "open",
            )
            for each, first in zip(turned, opens, strict=True)
        ),
        opens=tuple(opens),
    )


def ranked_by(score: Score) -> str:
    """What models are ranked by: a signed score without its sign."""
    return f"|{score.name}|" if score.signed else score.name


def _names(table: FormatTable) -> list[tuple[str, ...]]:
    """The names of each line; a model stands only where it opens."""
    return [
        line.names if opens else ("", *line.names[1:]) for line, opens in zip(table.lines, table.opens, strict=True)
    ]


def _columns(table: FormatTable) -> tuple[str, ...]:
    return tuple(FORMATS.get(column, column) for column in table.columns)


def _counted(cells: Sequence[Cell | None]) -> list[str]:
    """The n of each cell, and the invalid jobs behind them, which are the same for all."""
    invalid = next((cell.jobs.invalid for cell in cells if cell is not None), None)
    numbers = [None if cell is None else cell.estimate.n for cell in cells]
    return [DASH if value is None else count(value) for value in (*numbers, invalid)]


def _placed(place: Place | None, score: Score, mark: str) -> str:
    return DASH if place is None else f"{place.place} ({number(place.value, score)}){' ' if mark else ''}{mark}"


def _marks(form: str, turned: Sequence[Reversal]) -> dict[tuple[Score, str | None, str], str]:
    """The mark of each model that another format ranks otherwise; a clear reversal outdoes open ones."""
    made: dict[tuple[Score, str | None, str], str] = {}
    for each in sorted((one for one in turned if form in one.formats), key=lambda one: one.clear):
        for model in each.models:
            made[each.score, each.subset, model] = CLEAR if each.clear else OPEN
    return made
