"""The OpinionQA distances of all answers, by model, format and variant: question by question, and on average."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from analysis.answer_rows import ALL, ANSWERED, LIKERT, agreement, refuse_incomplete
from analysis.estimates import share
from analysis.opinion_scores import Distances, OpinionQuestion, Shares, distances, shares_of_choices, shares_of_ratings
from analysis.statistics import seed_for
from analysis.tables import OUTCOMES, Estimate, JobCounts

OPINION_SCHEMA = pl.Schema(
    {
        "model": pl.String,
        "format": pl.String,  # closed, likert or open
        "variant": pl.String,
        "question": pl.String,  # its key
        "part": pl.Int32,  # which statement of the question, where it has several
        "repeat": pl.Int32,
        "outcome": pl.String,  # answered, invalid, refused, failed or missing
        "choice": pl.Int32,  # index of the choice that was chosen, or that the statement speaks of
        "rating": pl.Int32,  # from 1; null where none was read
        "points": pl.Int32,  # of the scale, 2 or more
        "polarity": pl.String,  # positive: the highest number is the strongest agreement; negative: 1 is
    }
)
"""One row a planned job. A refusal in words is the answer "Refused"; the outcome refused is a provider's block."""


@dataclass(frozen=True, kw_only=True)
class QuestionDistances:
    """One question: `n` answers gave the model's `shares`; shares and distances are None where those are undefined."""

    key: str
    n: int
    shares: Shares | None
    distances: Distances | None


@dataclass(frozen=True, kw_only=True)
class OpinionScores:
    """The distances of one model, format and variant: unweighted means over the questions that have them.

    Variant "all" is the paper's "overall": the answers of all variants of a question are pooled first, and then it has
    one distance. Each estimate's n is a number of questions, and its interval resamples questions. Only answered jobs
    are in the shares; `jobs` has them all.
    """

    model: str
    format: str
    variant: str
    jobs: JobCounts
    w_dist: Estimate
    js_dist: Estimate
    composite: Estimate
    questions: tuple[QuestionDistances, ...]


def measure(answers: pl.DataFrame, questions: Iterable[OpinionQuestion]) -> list[OpinionScores]:
    """The distances of `answers` (OPINION_SCHEMA): each model and format, its variants and then all of them pooled.

    ValueError for an answer that is none: to a question not given, without a choice of it, with a rating off its scale,
    or with an outcome that is not ours.
    """
    by_key = {question.key: question for question in questions}
    _refuse_incomplete(answers, by_key)
    parts = answers.partition_by("model", "format", maintain_order=True)
    return [_scores(rows, variant, by_key) for part in parts for variant, rows in _variants(part)]


def _variants(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    for variant in part["variant"].unique(maintain_order=True):
        yield variant, part.filter(variant=variant)
    yield ALL, part


def _scores(rows: pl.DataFrame, variant: str, by_key: Mapping[str, OpinionQuestion]) -> OpinionScores:
    model, made = str(rows["model"][0]), str(rows["format"][0])
    tally = dict.fromkeys(OUTCOMES, 0) | dict(rows["outcome"].value_counts().iter_rows())
    measured = _measured(rows, by_key)
    found = [each.distances for each in measured if each.distances is not None]
    ones = np.ones(len(found), dtype=np.int64)

    def mean(figure: str) -> Estimate:
        values = np.array([getattr(each, figure) for each in found], dtype=np.float64)
        return share(values, ones, seed=seed_for(model, made, variant, figure))

    return OpinionScores(
        model=model,
        format=made,
        variant=variant,
        jobs=JobCounts(**tally),
        w_dist=mean("w_dist"),
        js_dist=mean("js_dist"),
        composite=mean("composite"),
        questions=measured,
    )


def _measured(rows: pl.DataFrame, by_key: Mapping[str, OpinionQuestion]) -> tuple[QuestionDistances, ...]:
    """Every question of `rows`, in their order, also those that nothing was answered to."""
    sums = (
        rows.filter(ANSWERED)
        .group_by("question", "choice", maintain_order=True)
        .agg(pl.len().alias("count"), agreement().sum().alias("agreement"))
    )
    rated = rows["format"][0] == LIKERT
    of_question = {str(name): part for (name,), part in sums.partition_by("question", as_dict=True).items()}
    keys = rows["question"].unique(maintain_order=True)
    return tuple(_question(by_key[key], of_question.get(key, sums.clear()), rated=rated) for key in keys)


def _question(question: OpinionQuestion, sums: pl.DataFrame, *, rated: bool) -> QuestionDistances:
    counts, agreements = [0] * len(question.choices), [0.0] * len(question.choices)
    for choice, count, agreed in sums.select("choice", "count", "agreement").iter_rows():
        counts[choice], agreements[choice] = count, agreed
    shares = shares_of_ratings(agreements, counts, refused=question.refused) if rated else shares_of_choices(counts)
    return QuestionDistances(
        key=question.key,
        n=sum(counts),
        shares=shares,
        distances=None if shares is None else distances(question, shares),
    )


def _refuse_incomplete(answers: pl.DataFrame, by_key: Mapping[str, OpinionQuestion]) -> None:
    """ValueError for what would go uncounted or be guessed, an answer to a question that was not given among it."""
    choices, refused = (
        pl.col("question").replace_strict(values, default=None, return_dtype=pl.Int32)
        for values in (
            {key: len(question.choices) for key, question in by_key.items()},
            {key: -1 if question.refused is None else question.refused for key, question in by_key.items()},
        )
    )
    chosen = pl.col("choice").is_between(0, choices - 1)
    refuse_incomplete(answers, asked=choices.is_not_null(), choice=chosen, rating=pl.col("choice") != refused)
