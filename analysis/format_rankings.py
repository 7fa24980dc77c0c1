"""Which model is least biased by each format, and where two formats disagree about two models. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from analysis.format_tables import Cell, FormatTable, Score
from analysis.statistics import folded_ends

Ends = tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class Place:
    """A model's place by one score: 1 is the least biased; models with equal values share a place.

    `value` is what is ranked, a signed score without its sign, and `low` and `high` its interval; None without one.
    """

    model: str
    place: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The models in the order of one score by one format, least bias first; those without a value have no place."""

    score: Score
    subset: str | None
    format: str
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """Two models whose order is turned round: by `formats[0]` `models[0]` is less biased, by `formats[1]` more.

    It is `clear` where in both formats the intervals of the two models do not overlap; otherwise, and where an interval
    is lacking, it is open.
    """

    score: Score
    subset: str | None
    models: tuple[str, str]
    formats: tuple[str, str]
    clear: bool


def rankings(tables: Iterable[FormatTable]) -> list[Ranking]:
    """The rankings of tables with formats side by side: one for each score, subset and format that gives any value."""
    return [ranking for table in tables for ranking in _of_table(table) if ranking.places]


def reversals(ranked: Iterable[Ranking]) -> list[Reversal]:
    """Every pair of models that two formats of one score and subset put in opposite orders."""
    alike: dict[tuple[Score, str | None], list[Ranking]] = {}
    for ranking in ranked:
        alike.setdefault((ranking.score, ranking.subset), []).append(ranking)
    return [each for group in alike.values() for pair in combinations(group, 2) for each in _turned(*pair)]


def _of_table(table: FormatTable) -> Iterator[Ranking]:
    subsets = dict.fromkeys(line.names[1:] for line in table.lines)
    for subset in subsets:
        lines = [line for line in table.lines if line.names[1:] == subset]
        for at, form in enumerate(table.columns):
            cells = {line.names[0]: line.cells[at] for line in lines}
            yield Ranking(
                score=table.score,
                subset=subset[0] if subset else None,
                format=form,
                places=_places(cells, table.score),
            )


def _places(cells: dict[str, Cell | None], score: Score) -> tuple[Place, ...]:
    values = {model: _ranked(cell, score) for model, cell in cells.items()}
    known = {model: value for model, value in values.items() if value is not None}
    best = sorted(known.values(), reverse=score.highest)
    made = [_place(model, best.index(value) + 1, value, _ends(cells[model], score)) for model, value in known.items()]
    return tuple(sorted(made, key=lambda place: place.place))


def _place(model: str, place: int, value: float, ends: Ends) -> Place:
    low, high = ends or (None, None)
    return Place(model=model, place=place, value=value, low=low, high=high)


def _ranked(cell: Cell | None, score: Score) -> float | None:
    value = None if cell is None else cell.estimate.value
    return abs(value) if score.signed and value is not None else value


def _ends(cell: Cell | None, score: Score) -> Ends:
    if cell is None:
        return None
    interval = cell.estimate.interval
    if score.signed:
        return folded_ends(interval)
    return None if interval.low is None or interval.high is None else (interval.low, interval.high)


def _turned(one: Ranking, other: Ranking) -> Iterator[Reversal]:
    there = {place.model: place for place in other.places}
    for first, second in combinations(one.places, 2):
        if first.model not in there or second.model not in there:
            continue
        if first.place < second.place and there[first.model].place > there[second.model].place:
            yield Reversal(
                score=one.score,
                subset=one.subset,
                models=(first.model, second.model),
                formats=(one.format, other.format),
                clear=_apart(first, second) and _apart(there[first.model], there[second.model]),
            )


def _apart(one: Place, other: Place) -> bool:
    """Whether two intervals have nothing in common, not even an end."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low
