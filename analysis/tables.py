"""The report as values: one row a dataset, model and view, every figure with its n and its interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product

import numpy as np
import polars as pl

from analysis import metrics, statistics
from analysis.metrics import PAIR_CLASSES, OrderCounts, PairClass, PairCounts
from analysis.pairing import FINISHED, View, jobs_in_view, pair
from analysis.statistics import Comparison, Interval, Sums, balance_interval, holm, seed_for, share_interval

OUTCOMES = (*FINISHED, "failed", "missing")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its denominator and its interval; the value is None where n is 0."""

    value: float | None
    n: int
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class JobCounts:
    """All planned jobs of a row, by outcome; each job is in exactly one."""

    answered: int
    invalid: int
    refused: int
    failed: int
    missing: int

    @property
    def planned(self) -> int:
        """All of them."""
        return self.answered + self.invalid + self.refused + self.failed + self.missing


@dataclass(frozen=True, kw_only=True)
class OrderFigures:
    """One half of Table 1: the jobs in which the right choice stood in one slot.

    `accuracy` counts invalid and refused as wrong (the paper), `accuracy_answered` leaves them out. `# Invalid` of the
    paper is `counts.invalid + counts.refused`, and `invalid_rate` their share of the finished jobs. `failed` and
    `missing` jobs are in none of these.
    """

    accuracy: Estimate
    accuracy_answered: Estimate
    invalid_rate: Estimate
    counts: OrderCounts
    failed: int
    missing: int


@dataclass(frozen=True, kw_only=True)
class BiasFigures:
    """What the pairs say. `counts` holds those whose two sides both have a completion or a block.

    PF is signed (+ second slot, - first), over all pairs (Shi et al.) and over the valid ones. `bounds` are the least
    and the most that PC could be had the invalid pairs been read. `failed` and `missing` pairs are in no figure.
    """

    counts: PairCounts
    failed: int
    missing: int
    fairness: Estimate
    fairness_valid: Estimate
    consistency: Estimate
    bounds: tuple[float, float] | None
    comparison: Comparison | None

    @property
    def joined(self) -> int:
        """All pairs, those left out of the figures too: jobs = 2 x joined + unpaired."""
        return self.counts.n + self.failed + self.missing


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured of one model on one dataset, in one view.

    `nominal`: no item has a right choice, so "correct" stands for choice 0 and the accuracies are the share that chose
    it: a first-slot share in `correct_first`, a second-slot share in `wrong_first`. `untargeted` counts the two-choice
    jobs without a right choice among others that have one; they are in the pairs but in no accuracy.
    """

    dataset: str
    model: str
    view: View
    nominal: bool
    untargeted: int
    jobs: JobCounts
    unpaired: int
    correct_first: OrderFigures
    wrong_first: OrderFigures
    bias: BiasFigures


@dataclass(frozen=True, kw_only=True)
class Report:
    """All rows: by dataset, then model, in order of first appearance, the first view before the final one."""

    rows: tuple[Row, ...]

    def by_cell(self) -> list[tuple[Row, Row]]:
        """The first and the final row of each dataset and model."""
        cells = [list(rows) for _, rows in groupby(self.rows, key=lambda row: (row.dataset, row.model))]
        return [(first, final) for first, final in cells]


def same_figures(first: Row, final: Row) -> bool:
    """Whether the two views of a dataset and model agree in everything."""
    return replace(first, view=final.view) == final


def build(results: pl.DataFrame) -> Report:
    """Measure `results` (RESULT_SCHEMA). P values are adjusted by Holm over the datasets and models of each view."""
    cells = _cells(results)
    views = [_adjusted([_row(cell, view) for cell in cells]) for view in View]
    return Report(rows=tuple(row for rows in zip(*views, strict=True) for row in rows))


def _cells(results: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of each dataset and model. Plans go model by model, a reader compares models within a dataset."""
    parts = results.partition_by("dataset", "model", maintain_order=True, as_dict=True)
    datasets, models = (list(dict.fromkeys(str(key[at]) for key in parts)) for at in (0, 1))
    return [parts[key] for key in product(datasets, models) if key in parts]


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    tests = [row.bias.comparison for row in rows]
    adjusted = holm([test.p if test else None for test in tests])
    return [
        replace(row, bias=replace(row.bias, comparison=replace(test, adjusted=p))) if test else row
        for row, test, p in zip(rows, tests, adjusted, strict=True)
    ]


def _row(results: pl.DataFrame, view: View) -> Row:
    names = (str(results["dataset"][0]), str(results["model"][0]))
    jobs = jobs_in_view(results, view)
    pairs = pair(jobs)
    two = jobs.filter(pl.col("choices") == 2)
    nominal = not two.is_empty() and two["target"].null_count() == two.height
    scored = two if nominal else two.drop_nulls("target")
    independent = _independent(two)
    return Row(
        dataset=names[0],
        model=names[1],
        view=view,
        nominal=nominal,
        untargeted=two.height - scored.height,
        jobs=JobCounts(**_tally(jobs["outcome"])),
        unpaired=pairs.unpaired,
        correct_first=_order_figures(scored, slot=0, independent=independent, names=names),
        wrong_first=_order_figures(scored, slot=1, independent=independent, names=names),
        bias=_bias(pairs.frame, independent=independent, names=names),
    )


def _independent(jobs: pl.DataFrame) -> bool:
    """Whether every cluster holds one item and every item was asked once in each order."""
    sizes = jobs.group_by("cluster").agg(pl.col("item").n_unique(), pl.col("repeat").n_unique())
    return bool(((sizes["item"] == 1) & (sizes["repeat"] == 1)).all())


def _tally(outcomes: pl.Series) -> dict[str, int]:
    """How many jobs ended in each outcome; one that is none of ours is refused by JobCounts, not lost."""
    return dict.fromkeys(OUTCOMES, 0) | dict(outcomes.value_counts().iter_rows())


def _order_figures(jobs: pl.DataFrame, *, slot: int, independent: bool, names: tuple[str, str]) -> OrderFigures:
    asked = jobs.filter(pl.col("reference_slot") == slot)
    tally = _tally(asked["outcome"])
    finished, answered = pl.col("outcome").is_in(FINISHED), pl.col("outcome") == "answered"
    correct = answered & (pl.col("slot") == slot)
    hits, all_finished, all_answered = _sums(asked, correct, finished, answered)

    def share(value: float | None, n: int, parts: tuple[Sums, Sums], figure: str) -> Estimate:
        seed = seed_for(*names, f"{figure}, slot {slot}")
        return Estimate(value=value, n=n, interval=share_interval(*parts, independent=independent, seed=seed))

    counts = OrderCounts(correct=int(hits.sum()), **{outcome: tally[outcome] for outcome in FINISHED})
    return OrderFigures(
        accuracy=share(metrics.accuracy(counts), counts.n, (hits, all_finished), "accuracy"),
        accuracy_answered=share(metrics.accuracy_answered(counts), counts.answered, (hits, all_answered), "accuracy"),
        invalid_rate=share(
            metrics.invalid_rate(counts), counts.n, (all_finished - all_answered, all_finished), "invalid rate"
        ),
        counts=counts,
        failed=tally["failed"],
        missing=tally["missing"],
    )


def _bias(pairs: pl.DataFrame, *, independent: bool, names: tuple[str, str]) -> BiasFigures:
    used = pairs.filter(pl.col("left_out").is_null())
    left_out = dict(pairs["left_out"].value_counts().iter_rows())
    counts = metrics.count_pairs(dict(used["code"].value_counts().iter_rows()))
    kind = pl.col("code").replace_strict(
        {code: kind.value for code, kind in PAIR_CLASSES.items()}, default=PairClass.INVALID.value
    )
    primacy, recency, consistent, n = _sums(
        used,
        *(kind == name.value for name in (PairClass.PRIMACY, PairClass.RECENCY, PairClass.CONSISTENT)),
        pl.lit(True),
    )
    valid = primacy + recency + consistent
    pf_seed, pc_seed = seed_for(*names, "PF"), seed_for(*names, "PC")
    by_chance = statistics.mcnemar(counts.primacy, counts.recency) if counts.valid else None
    return BiasFigures(
        counts=counts,
        failed=left_out.get("failed", 0),
        missing=left_out.get("missing", 0),
        fairness=Estimate(
            value=metrics.preference_fairness(counts),
            n=counts.n,
            interval=balance_interval(recency, primacy, n, seed=pf_seed),
        ),
        fairness_valid=Estimate(
            value=metrics.preference_fairness_valid(counts),
            n=counts.valid,
            interval=balance_interval(recency, primacy, valid, seed=pf_seed),
        ),
        consistency=Estimate(
            value=metrics.position_consistency(counts),
            n=counts.valid,
            interval=share_interval(consistent, valid, independent=independent, seed=pc_seed),
        ),
        bounds=metrics.position_consistency_bounds(counts),
        comparison=by_chance if independent else statistics.sign_flip((recency - primacy)[valid > 0], seed=pf_seed),
    )


def _sums(frame: pl.DataFrame, *marks: pl.Expr) -> tuple[Sums, ...]:
    """How many rows of each cluster carry each mark: one array a mark, one entry a cluster."""
    marked = frame.select("cluster", *(mark.cast(pl.Int64).alias(str(at)) for at, mark in enumerate(marks)))
    sums = marked.group_by("cluster").sum()
    return tuple(sums[str(at)].to_numpy().astype(np.int64) for at in range(len(marks)))
