"""One item of a study, whole: what was shown in which order, every attempt, what was read and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, text

from contract.database import postgres_errors
from contract.errors import UsageError
from contract.formats import Variant
from producer.studies import find_study

_JOBS = text("""
    SELECT job.id, condition.model, condition.dataset, condition.format, condition.stage, condition.variant,
           condition.spec, job.part, job.repeat, job.state,
           job.planned, job.round, job.answer, job.text, job.counted_attempt, item.source_id, job.cluster, item.payload
    FROM job JOIN study ON study.id = job.study JOIN condition ON condition.id = job.condition
    JOIN item ON item.id = job.item
    WHERE study.name = :study AND item.source_id = :item
      AND (CAST(:model AS text) IS NULL OR condition.model = :model)
    ORDER BY condition.dataset, condition.model, item.id, job.repeat, condition.id, job.part, job.id
""")
_ATTEMPTS = text("""
    SELECT attempt.job, attempt.id, attempt.round, attempt.started_at, attempt.latency_ms, attempt.seed,
           attempt.outcome, attempt.completion, attempt.completion_length, attempt.thinking, attempt.finish_reason,
           attempt.tokens_in, attempt.tokens_out, attempt.tokens_cached, attempt.answer, attempt.text, attempt.tier,
           attempt.reason,
           attempt.reading, attempt.reading_version, attempt.error_kind, attempt.error_message, attempt.worker,
           attempt.pool, attempt.logprobs, prompt.text AS prompt, deployment.model AS answered_by, deployment.endpoint,
           deployment.server_version, deployment.digest, deployment.quantisation
    FROM attempt LEFT JOIN prompt ON prompt.digest = attempt.prompt
    LEFT JOIN deployment ON deployment.id = attempt.deployment
    WHERE attempt.job = ANY(:jobs) ORDER BY attempt.job, attempt.claim, attempt.started_at
""")
_MODELS = text("""
    SELECT DISTINCT model FROM condition JOIN study ON study.id = condition.study
    WHERE study.name = :study ORDER BY model
""")
_SOME_ITEMS = text("""
    SELECT DISTINCT item.source_id FROM job JOIN study ON study.id = job.study JOIN item ON item.id = job.item
    WHERE study.name = :study ORDER BY item.source_id LIMIT 5
""")


@dataclass(frozen=True, kw_only=True)
class AttemptSeen:
    """One attempt as its row holds it; `prompt` is the exact text that was sent."""

    id: str
    round: int
    started_at: datetime
    latency_ms: int
    seed: int | None
    prompt: str | None
    outcome: str
    completion: str | None
    completion_length: int | None
    thinking: str | None
    finish_reason: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    answer: int | None
    text: str | None
    tier: str | None
    reason: str | None
    reading: str | None
    reading_version: int | None
    error_kind: str | None
    error_message: str | None
    answered_by: str | None
    endpoint: str | None
    server_version: str | None
    digest: str | None
    quantisation: str | None
    pool: str | None
    logprobs: dict[str, float] | None
    worker: str


@dataclass(frozen=True, kw_only=True)
class JobSeen:
    """One job of the item: how it was asked, its result, its attempts.

    `order` holds choice indexes as shown, in closed answers; `answer` is a choice index, or the rating of a statement
    about choice number `part`.
    """

    id: int
    model: str
    dataset: str
    format: str
    stage: str
    variant: str
    order: tuple[int, ...]
    part: int
    repeat: int
    state: str
    planned: bool
    round: int
    answer: int | None
    text: str | None
    counted_attempt: str | None
    source_id: str
    cluster: str
    item: dict[str, Any]
    attempts: tuple[AttemptSeen, ...]


def read_item(engine: Engine, study: str, item: str, *, model: str | None = None) -> list[JobSeen]:
    """The jobs of the item `item` (its id in the data file), each with every attempt; UsageError if there is none."""
    with postgres_errors(engine), engine.connect() as connection:
        find_study(connection, study)
        models = list(connection.execute(_MODELS, {"study": study}).scalars())
        if model is not None and model not in models:
            raise UsageError(f"{study} has no model {model!r}; it has: {', '.join(models)}")
        rows = connection.execute(_JOBS, {"study": study, "item": item, "model": model}).mappings().all()
        if not rows:
            some = ", ".join(connection.execute(_SOME_ITEMS, {"study": study}).scalars()) or "none"
            raise UsageError(f"no item {item!r} in {study}; items are: {some} ...")
        found = connection.execute(_ATTEMPTS, {"jobs": [row["id"] for row in rows]}).mappings()
        attempts: dict[int, list[AttemptSeen]] = {}
        for row in found:
            values = {name: value for name, value in row.items() if name != "job"}
            attempts.setdefault(row["job"], []).append(AttemptSeen(**values | {"id": str(row["id"])}))
    return [
        JobSeen(
            **{name: row[name] for name in ("id", "model", "dataset", "format", "stage", "variant", "part", "repeat")},
            **{name: row[name] for name in ("state", "planned")},
            **{name: row[name] for name in ("round", "answer", "text", "source_id", "cluster")},
            order=Variant.from_spec(row["spec"]["variant"]).order,
            counted_attempt=None if row["counted_attempt"] is None else str(row["counted_attempt"]),
            item=row["payload"],
            attempts=tuple(attempts.get(row["id"], ())),
        )
        for row in rows
    ]
