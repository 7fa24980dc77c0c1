"""Answers in several formats out of Postgres, as the scores of BBQ and OpinionQA take them.

An open answer is what its annotation says it is: a choice, or invalid where the annotation could not be read. Where the
open answer itself is none, that is its outcome.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import adbc_driver_postgresql.dbapi as postgres
import polars as pl

from analysis.bbq_scores import ANSWER_SCHEMA, BiasScores, score
from analysis.opinion_scores import OpinionQuestion
from analysis.opinion_tables import OPINION_SCHEMA, OpinionScores, measure
from analysis.pairing import View
from contract.errors import StackError
from contract.results import CHILD_ROUNDS, counted_attempt, first_attempt

_OWN = {View.FIRST: first_attempt("job.id"), View.FINAL: counted_attempt("job.id", since=CHILD_ROUNDS)}
_ANSWERS = """
    SELECT condition.dataset, condition.model, condition.format, condition.variant, job.item, job.cluster AS question,
           job.part, job.repeat, (condition.spec -> 'variant' ->> 'points')::int AS points,
           condition.spec -> 'variant' ->> 'polarity' AS polarity,
           CASE WHEN condition.format = 'open' AND own.outcome = 'answered'
                THEN coalesce(judged.outcome, CASE WHEN child.state = 'failed' THEN 'failed' END, 'missing')
                ELSE coalesce(own.outcome, CASE WHEN job.state = 'failed' THEN 'failed' END, 'missing') END AS outcome,
           CASE WHEN condition.format = 'open' THEN judged.answer ELSE own.answer END AS answer
    FROM job JOIN study ON study.id = job.study JOIN condition ON condition.id = job.condition
    LEFT JOIN job AS child ON child.parent = job.id AND child.planned
    LEFT JOIN LATERAL ({own}) AS own ON true
    LEFT JOIN LATERAL ({judged}) AS judged ON true
    WHERE study.name = $1 AND job.planned AND condition.stage = 'answer'
      AND (condition.format <> 'open' OR child.id IS NOT NULL)
    ORDER BY job.position
"""
_JUDGED = counted_attempt("child.id", since="child.round")
_ITEMS = """
    SELECT item.id, item.dataset, item.payload::text AS payload FROM item WHERE id IN (
        SELECT job.item FROM job JOIN study ON study.id = job.study WHERE study.name = $1 AND job.planned)
      AND item.payload ? 'traits' ORDER BY item.id
"""


@dataclass(frozen=True, kw_only=True)
class FormatAnswers:
    """The answers of one dataset in every format that it was asked in.

    `bias` is in ANSWER_SCHEMA, `opinions` in OPINION_SCHEMA; both are empty where the dataset has no such traits.
    `unscored` questions are in neither: nobody is stereotyped in them, or no human opinion of them is known.
    """

    dataset: str
    bias: pl.DataFrame
    opinions: pl.DataFrame
    questions: tuple[OpinionQuestion, ...]
    unscored: int


def load_formats(database_url: str, study: str, view: View = View.FINAL) -> list[FormatAnswers]:
    """The datasets of `study` that BBQ or OpinionQA scores can be made of, perhaps none; StackError without Postgres.

    In the first view an open answer is the one that its annotation saw all the same.
    """
    address = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        with postgres.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(_ITEMS, (study,))
            items: pl.DataFrame = cursor.fetch_polars()
            if items.is_empty():
                return []
            cursor.execute(_ANSWERS.format(own=_OWN[view], judged=_JUDGED), (study,))
            answers: pl.DataFrame = cursor.fetch_polars()
    except postgres.Error as error:
        raise StackError(f"the results could not be read from Postgres: {type(error).__name__}") from None
    known = [_Known(id=row["id"], dataset=row["dataset"], item=json.loads(row["payload"])) for row in items.to_dicts()]
    return [_of_dataset(name, answers, known) for name in dict.fromkeys(item.dataset for item in known)]


@dataclass(frozen=True, kw_only=True)
class _Known:
    """An item with traits, as its row holds it."""

    id: int
    dataset: str
    item: dict[str, Any]

    @property
    def traits(self) -> dict[str, Any]:
        traits: dict[str, Any] = self.item["traits"]
        return traits


def _of_dataset(dataset: str, answers: pl.DataFrame, known: list[_Known]) -> FormatAnswers:
    items = [one for one in known if one.dataset == dataset]
    bbq = [one for one in items if one.traits.get("stereotyped") and "groups" in one.item]
    polled = [one for one in items if "shares" in one.traits and "ordinals" in one.traits]
    keys = dict(answers.select("item", "question").unique().iter_rows())
    scored = {one.id for one in (*bbq, *polled)}
    return FormatAnswers(
        dataset=dataset,
        bias=_bias(answers, bbq),
        opinions=_opinions(answers, polled),
        questions=tuple(dict.fromkeys(_question(one, keys[one.id]) for one in polled)),
        unscored=len({keys[one.id] for one in items if one.id not in scored}),
    )


def _bias(answers: pl.DataFrame, items: list[_Known]) -> pl.DataFrame:
    """One row a job of a BBQ item, with what its scores need to know of the item."""
    asked = pl.DataFrame(
        [
            {
                "item": one.id,
                "groups": one.item["groups"],
                "target_group": None if one.item["target"] is None else one.item["groups"][one.item["target"]],
                "context": one.traits["context_condition"],
                "question_polarity": one.traits["polarity"],
                "stereotyped": one.traits["stereotyped"],
                "subset": one.traits.get("subset") or "labels",
            }
            for one in items
        ]
    )
    if asked.is_empty():
        return ANSWER_SCHEMA.to_frame()
    joined = _rated(answers.join(asked.with_columns(pl.col("item").cast(pl.Int64)), on="item", how="inner"))
    group = pl.col("groups").list.get(pl.col("choice"), null_on_oob=True)
    return joined.with_columns(group.alias("group")).select(ANSWER_SCHEMA.names()).cast(ANSWER_SCHEMA)


def _opinions(answers: pl.DataFrame, items: list[_Known]) -> pl.DataFrame:
    """One row a job of a question whose human shares are known."""
    ids = pl.Series("item", [one.id for one in items], dtype=pl.Int64)
    joined = _rated(answers.filter(pl.col("item").is_in(ids.implode())))
    return joined.select(OPINION_SCHEMA.names()).cast(OPINION_SCHEMA)


def _rated(answers: pl.DataFrame) -> pl.DataFrame:
    """The answers as a `choice`, by its index, and in Likert form the `rating` of the statement about it."""
    rated = pl.col("format") == "likert"
    return answers.with_columns(
        pl.when(rated).then(pl.col("part") - 1).otherwise(pl.col("answer")).alias("choice"),
        pl.when(rated).then(pl.col("answer")).alias("rating"),
    )


def _question(one: _Known, key: str) -> OpinionQuestion:
    return OpinionQuestion(
        key=key,
        choices=tuple(one.item["choices"]),
        ordinals=tuple(one.traits["ordinals"]),
        human=tuple(one.traits["shares"]),
        refused=one.traits.get("refused"),
    )


def scores_of(found: FormatAnswers) -> tuple[list[BiasScores], list[OpinionScores]]:
    """The scores of one dataset: those of BBQ and the distances from human opinion, each perhaps none."""
    biases = score(found.bias) if len(found.bias) else []
    distances = measure(found.opinions, found.questions) if len(found.opinions) else []
    return biases, distances


def notes_of(found: list[FormatAnswers]) -> Iterator[str]:
    """What a report must say of items that no score can be made of."""
    for one in found:
        if one.unscored:
            yield f"{one.dataset}: {one.unscored:,} questions are in no score of theirs"
