"""Pairing: the two answers to one question, joined across both orders, as slots and as a pair code."""

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from contract.orders import both_orders, print_order, slot_of

RESULT_SCHEMA = pl.Schema(
    {
        "dataset": pl.String,
        "model": pl.String,
        "item": pl.Int64,
        "cluster": pl.String,
        "repeat": pl.Int32,
        "order": pl.String,  # printed from 1: "12" or "21"
        "choices": pl.Int32,  # how many choices the item has
        "target": pl.Int32,  # index of the right choice, null where none is right
        "first_outcome": pl.String,
        "first_choice": pl.Int32,
        "final_outcome": pl.String,  # null: planned, not finished
        "final_choice": pl.Int32,
    }
)
"""One row a planned job of the closed format. Choices are indexes from 0."""

FINISHED = ("answered", "invalid", "refused")
"""Outcomes of a job that the model had its say in; the others are never wrong answers, only left out and counted."""

_ORDERS = both_orders(2)
_KEYS = ("dataset", "model", "item", "repeat")


class View(StrEnum):
    """Which answer of a job counts: what came at the first asking, or what stood after the invalid retries."""

    FIRST = "first"
    FINAL = "final"


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The joined pairs and the number of jobs that found no partner: jobs = 2 x pairs + unpaired."""

    frame: pl.DataFrame
    unpaired: int


def jobs_in_view(results: pl.DataFrame, view: View) -> pl.DataFrame:
    """Every row of `results` (RESULT_SCHEMA), with the `outcome` and `choice` of one view and where they stood.

    `outcome` is "missing" for a job that is not finished. A job that ended failed without a first completion is failed
    in both views. `reference` is the target, or choice 0 where the item has none; `slot` and `reference_slot` say in
    which slot (from 0) the choice and the reference were shown, null for items without exactly two choices.
    """
    failed = pl.when(pl.col("final_outcome") == "failed").then(pl.lit("failed"))
    outcome = pl.coalesce(pl.col(f"{view}_outcome"), failed, pl.lit("missing"))
    return results.select(
        *(*_KEYS, "cluster", "order", "choices", "target"),
        outcome.alias("outcome"),
        pl.col(f"{view}_choice").alias("choice"),
        pl.col("target").fill_null(0).alias("reference"),
    ).with_columns(_slot("choice").alias("slot"), _slot("reference").alias("reference_slot"))


def pair(jobs: pl.DataFrame) -> Pairs:
    """Join the two orders of each two-choice item, per dataset, model and repeat; nothing is dropped uncounted.

    Each pair has `outcome_12`, `outcome_21`, `slot_12`, `slot_21`, its `code` and why it is `left_out`. The code is the
    slot letter of order 12, then of order 21, N where no answer was read ("AB": the same choice both times); it is
    null, and `left_out` is "failed" or "missing", where one side has no completion. Raises polars' ComputeError when a
    job stands twice, which would multiply pairs.
    """
    straight, swapped = (_side(jobs, print_order(order)) for order in _ORDERS)
    frame = straight.join(swapped.drop("cluster", "target"), on=_KEYS, validate="1:1", maintain_order="left")
    outcomes = [pl.col(f"outcome_{print_order(order)}") for order in _ORDERS]
    left_out = pl.coalesce(
        pl.when(pl.any_horizontal(outcome == why for outcome in outcomes)).then(pl.lit(why))
        for why in ("failed", "missing")
    )
    code = pl.concat_str(pl.col(f"letter_{print_order(order)}") for order in _ORDERS)
    frame = frame.with_columns(code.alias("code"), left_out.alias("left_out")).drop("letter_12", "letter_21")
    return Pairs(frame=frame, unpaired=jobs.height - 2 * frame.height)


def _slot(column: str) -> pl.Expr:
    """The slot of the choice in `column`, by the row's own order."""
    two = pl.col("choices") == 2
    return pl.coalesce(
        pl.when(two & (pl.col("order") == print_order(order))).then(
            pl.col(column).replace_strict(
                {choice: slot_of(choice, order) for choice in order}, default=None, return_dtype=pl.Int32
            )
        )
        for order in _ORDERS
    )


def _side(jobs: pl.DataFrame, printed: str) -> pl.DataFrame:
    """One order's half of the pairs, its columns named after the order."""
    letter = (
        pl.when(pl.col("outcome") == "answered")
        .then(pl.col("slot").replace_strict({0: "A", 1: "B"}, default=None, return_dtype=pl.String))
        .when(pl.col("outcome").is_in(FINISHED))
        .then(pl.lit("N"))
    )
    return jobs.filter(pl.col("choices") == 2, pl.col("order") == printed).select(
        *(*_KEYS, "cluster", "target"),
        pl.col("outcome").alias(f"outcome_{printed}"),
        pl.col("slot").alias(f"slot_{printed}"),
        letter.alias(f"letter_{printed}"),
    )
