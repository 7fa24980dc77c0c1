"""What several formats say of the same models: all tables, rankings and reversals, and what they leave unsaid. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.answer_rows import ALL
from analysis.bbq_scores import COMBINED, BiasScores, OffScale
from analysis.columns import DASH
from analysis.format_rankings import Ranking, Reversal, rankings, reversals
from analysis.format_tables import (
    BIAS,
    DISTANCES,
    POLARISATION,
    STAR,
    Cell,
    FormatTable,
    Scored,
    by_variant,
    side_by_side,
    subset_of,
)
from analysis.opinion_tables import OpinionScores
from analysis.statistics import FEW_CLUSTERS, LEAST_CLUSTERS, RESAMPLES, Interval, Method


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All of it; what no record is of has no tables.

    `bias` and `distances` have formats side by side, `polarisation` is one such table or none, `variants` the variants
    of each format, and both rankings are by the first two.
    """

    bias: tuple[FormatTable, ...]
    polarisation: tuple[FormatTable, ...]
    distances: tuple[FormatTable, ...]
    variants: tuple[FormatTable, ...]
    rankings: tuple[Ranking, ...]
    reversals: tuple[Reversal, ...]
    notes: tuple[str, ...]

    @property
    def tables(self) -> tuple[FormatTable, ...]:
        """All of them."""
        return (*self.bias, *self.polarisation, *self.distances, *self.variants)


def find(bias: Sequence[BiasScores], distances: Sequence[OpinionScores]) -> Findings:
    """The tables of these scores, as `bbq_scores.score` and `opinion_tables.measure` give them."""
    biased, apart = side_by_side(bias, BIAS), side_by_side(distances, DISTANCES)
    polarised = [table for table in side_by_side(bias, [POLARISATION]) if any(_cells([table]))]
    variants = [*by_variant(bias, [*BIAS, POLARISATION]), *by_variant(distances, DISTANCES)]
    ranked = rankings([*biased, *apart])
    return Findings(
        bias=tuple(biased),
        polarisation=tuple(polarised),
        distances=tuple(apart),
        variants=tuple(variants),
        rankings=tuple(ranked),
        reversals=tuple(reversals(ranked)),
        notes=tuple(_notes(bias, distances, [*biased, *polarised, *apart, *variants])),
    )


def _notes(
    bias: Sequence[BiasScores], distances: Sequence[OpinionScores], tables: Sequence[FormatTable]
) -> Iterator[str]:
    """What the tables leave unsaid, and only what applies to them."""
    if bias:
        yield (
            "s_DIS, s_AMB, accuracy and polarisation are in per cent. s_DIS: mean bias in disambiguated contexts; "
            "s_AMB: bias in ambiguous ones; accuracy: share of UNKNOWN in ambiguous contexts."
        )
        yield f"{STAR} the interval of s_DIS or s_AMB leaves 0 out."
    if distances:
        yield "WDist, JSDist and their mean, the composite: 0 is what people answered, 1 as far from it as can be."
        yield "Of refusals WDist sees nothing: a model that refuses often can have a small one; JSDist counts them."
    yield from _interval_notes([cell.estimate.interval for cell in _cells(tables)])
    if any(record.format == "likert" for record in bias):
        left_out = all(record.off_scale is OffScale.LEFT_OUT for record in bias)
        yield (
            "Ratings off their scale are left out of every score."
            if left_out
            else "Ratings off their scale stay in the denominators of ambiguous contexts, as in the paper's figures."
        )
    records: list[Scored] = [*bias, *distances]
    # The jobs of one subset are also among those of both combined.
    pooled = [each.jobs for each in records if each.variant == ALL and subset_of(each) in ((), (COMBINED,))]
    lost = {name: sum(getattr(jobs, name) for jobs in pooled) for name in ("refused", "failed", "missing")}
    if any(lost.values()):
        yield f"In no score, and not among the invalid: {', '.join(f'{many:,} {name}' for name, many in lost.items())}."


def _interval_notes(intervals: Sequence[Interval]) -> Iterator[str]:
    methods = {str(interval.method) for interval in intervals if interval.method}
    made = ", ".join(sorted(methods)) or "none could be made"
    yield f"[low, high] is a 95 % interval ({made}) over questions; {DASH} is no data, or was not asked."
    if Method.BOOTSTRAP in methods:
        yield f"Bootstrap: {RESAMPLES:,} resamples of whole questions with all their answers."
    if any(0 < interval.clusters < FEW_CLUSTERS for interval in intervals):
        yield (
            f"Some figures rest on fewer than {FEW_CLUSTERS} questions: such intervals are rough, "
            f"and absent below {LEAST_CLUSTERS}."
        )


def _cells(tables: Sequence[FormatTable]) -> Iterator[Cell]:
    return (cell for table in tables for line in table.lines for cell in line.cells if cell is not None)
