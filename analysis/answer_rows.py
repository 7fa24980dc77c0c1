"""What the rows of answers in several formats share: their words, how a rating is read, and what cannot be scored."""

import polars as pl

from analysis.tables import OUTCOMES

LIKERT = "likert"
ALL = "all"
"""The variant that stands for all of them pooled."""

RATED, ANSWERED = pl.col("format") == LIKERT, pl.col("outcome") == "answered"


def agreement() -> pl.Expr:
    """A rating x of k points as agreement, 0 to 1: (x - 1)/(k - 1), and 1 minus that where 1 is the strongest."""
    agreed = (pl.col("rating").cast(pl.Float64) - 1) / (pl.col("points").cast(pl.Float64) - 1)
    return pl.when(pl.col("polarity") == "negative").then(1 - agreed).otherwise(agreed)


def refuse_incomplete(answers: pl.DataFrame, *, asked: pl.Expr, choice: pl.Expr, rating: pl.Expr) -> None:
    """ValueError for jobs that would go uncounted or be guessed: an outcome not ours, an answer that is none.

    Every job needs what `asked` says, an answered one also what `choice` says, and one that was rated a rating on its
    scale, the scale's polarity and what `rating` says.
    """
    on_scale = pl.col("rating").is_between(1, pl.col("points")) & (pl.col("points") >= 2)
    rated = on_scale & pl.col("polarity").is_in(("positive", "negative")) & rating
    whole = pl.col("outcome").is_in(OUTCOMES) & asked & (~ANSWERED | (choice & (~RATED | rated)))
    lacking = answers.filter(~whole.fill_null(value=False))
    if not lacking.is_empty():
        job = {name: value for name, value in lacking.row(0, named=True).items() if value is not None}
        raise ValueError(f"{lacking.height} jobs lack a value that scores need, or have one unknown; the first: {job}")
