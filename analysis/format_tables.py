"""The scores of answers in several formats as tables: formats side by side, and the variants of each. Pure.

A table holds figures and no texts: what prints, draws or writes it takes all of it from here. A cell is None where a
format, a variant or a subset was not asked, or a score has no meaning there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from analysis.answer_rows import ALL
from analysis.bbq_scores import SUBSETS, BiasScores
from analysis.columns import DASH
from analysis.opinion_tables import OpinionScores
from analysis.statistics import significant
from analysis.tables import Estimate, JobCounts

FORMATS = {"closed": "closed", "likert": "Likert", "open": "open"}
"""The formats in their order, and how they are printed."""
STAR = "*"
_RATED = re.compile(r"(\d+)-(positive|negative)")

Scored = BiasScores | OpinionScores


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score: the field of the records that holds it, and how it is read.

    `per_cent`: printed times 100, with one decimal; else with three. `signed`: -1 to 1, and 0 is no bias; it is starred
    where its interval leaves 0 out. `highest`: the highest is best, else the one nearest to 0.
    """

    name: str
    field: str
    dataset: str
    per_cent: bool = True
    signed: bool = False
    highest: bool = False


BBQ, OPINION_QA = "BBQ", "OpinionQA"
BIAS = (
    Score(name="s_DIS", field="s_dis", dataset=BBQ, signed=True),
    Score(name="s_AMB", field="s_amb", dataset=BBQ, signed=True),
    Score(name="accuracy", field="accuracy", dataset=BBQ, highest=True),
)
POLARISATION = Score(name="polarisation", field="polarisation", dataset=BBQ)
DISTANCES = (
    Score(name="WDist", field="w_dist", dataset=OPINION_QA, per_cent=False),
    Score(name="JSDist", field="js_dist", dataset=OPINION_QA, per_cent=False),
    Score(name="composite", field="composite", dataset=OPINION_QA, per_cent=False),
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A score of one model, format, variant and subset, and the jobs behind it."""

    estimate: Estimate
    jobs: JobCounts


@dataclass(frozen=True, kw_only=True)
class Line:
    """A model, a model and a subset; and a cell for each column."""

    names: tuple[str, ...]
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, kw_only=True)
class FormatTable:
    """One score by model (and subset) and column; `format` is None where the columns are the formats themselves."""

    score: Score
    format: str | None
    title: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def opens(self) -> tuple[bool, ...]:
        """Whether each line is the first of its model."""
        models = [line.names[0] for line in self.lines]
        return tuple(at == 0 or models[at - 1] != model for at, model in enumerate(models))


def side_by_side(records: Sequence[Scored], scores: Sequence[Score]) -> list[FormatTable]:
    """Each score by model and subset, the three formats beside one another, all variants of each pooled."""
    pooled = [record for record in records if record.variant == ALL]
    return [
        FormatTable(
            score=score,
            format=None,
            title=f"{score.dataset}, {score.name} by format, all variants pooled",
            names=_headings(pooled),
            columns=tuple(FORMATS),
            lines=_lines(pooled, score, tuple(FORMATS), lambda record: record.format),
        )
        for score in (scores if pooled else ())
    ]


def by_variant(records: Sequence[Scored], scores: Sequence[Score]) -> list[FormatTable]:
    """Each score by model and subset, the variants of one format beside one another.

    Orders of different numbers of choices are of different questions: each number has tables of its own. A score that
    no record of a format can have (polarisation of choices) has no table there.
    """
    made: list[FormatTable] = []
    for form in FORMATS:
        of_form = [record for record in records if record.format == form and record.variant != ALL]
        for title, variants in _variants(form, of_form):
            rows = [record for record in of_form if record.variant in variants]
            for score in scores:
                if any(_cell(record, score) for record in rows):
                    lines = _lines(rows, score, variants, lambda record: record.variant)
                    title_of = f"{score.dataset}, {score.name} {title}"
                    made.append(
                        FormatTable(
                            score=score,
                            format=form,
                            title=title_of,
                            names=_headings(rows),
                            columns=variants,
                            lines=lines,
                        )
                    )
    return made


def starred(cell: Cell | None, score: Score) -> bool:
    """Whether the score could be of either sign, and its interval leaves 0 out."""
    return cell is not None and score.signed and significant(cell.estimate.interval) is True


def printed(cell: Cell | None, score: Score, *, interval: bool = False) -> str:
    """The figure with its star and, if it is asked for, its interval; a dash where there is none, and never 0."""
    if cell is None or cell.estimate.value is None:
        return DASH
    text = number(cell.estimate.value, score) + (STAR if starred(cell, score) else "")
    if not interval:
        return text
    low, high = cell.estimate.interval.low, cell.estimate.interval.high
    ends = DASH if low is None or high is None else f"{number(low, score)}, {number(high, score)}"
    return f"{text} [{ends}]"


def number(value: float, score: Score) -> str:
    """A value of the score as it is printed; what rounds to 0 has no sign."""
    return f"{round(100 * value, 1) + 0.0:.1f}" if score.per_cent else f"{round(value, 3) + 0.0:.3f}"


def subset_of(record: Scored) -> tuple[str, ...]:
    """The subset that a record is of, where its dataset has some."""
    return (record.subset,) if isinstance(record, BiasScores) else ()


def _headings(records: Sequence[Scored]) -> tuple[str, ...]:
    return ("Model", "Subset") if any(isinstance(record, BiasScores) for record in records) else ("Model",)


def _lines(
    records: Sequence[Scored], score: Score, columns: Sequence[str], column_of: Callable[[Scored], str]
) -> tuple[Line, ...]:
    """A line a model, in order of first appearance, and subset."""
    found = {(record.model, *subset_of(record), column_of(record)): _cell(record, score) for record in records}
    models = list(dict.fromkeys(record.model for record in records))
    names = dict.fromkeys((record.model, *subset_of(record)) for record in records)
    ordered = sorted(names, key=lambda name: (models.index(name[0]), *map(SUBSETS.index, name[1:])))
    return tuple(Line(names=name, cells=tuple(found.get((*name, column)) for column in columns)) for name in ordered)


def _cell(record: Scored, score: Score) -> Cell | None:
    estimate: Estimate | None = getattr(record, score.field)
    return None if estimate is None else Cell(estimate=estimate, jobs=record.jobs)


def _variants(form: str, records: Sequence[Scored]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the variants of a format are, and which, in their order: those that go into one table."""
    ordered = sorted({record.variant for record in records}, key=lambda variant: (*_place(variant), variant))
    if form != "closed":
        if ordered:
            yield ("by scale" if form == "likert" else "of open answers by reasoning"), tuple(ordered)
        return
    for choices, group in groupby(ordered, key=len):
        yield f"by order of {choices} choices", tuple(group)


def _place(variant: str) -> tuple[int, bool]:
    """Scales rise by points, the positive one first; orders by their number of choices."""
    rated = _RATED.fullmatch(variant)
    return (int(rated[1]), rated[2] == "negative") if rated else (len(variant), False)
