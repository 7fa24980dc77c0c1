"""The tables. Rows are dumb: they validate nothing and are turned into frozen records where they are read.

States are text with a CHECK, times have a zone, ids and durations are BIGINT. A test keeps `ops/migrations/` in step.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Boolean, CheckConstraint, DateTime, Index, Integer, MetaData, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA: MetaData = SQLModel.metadata

JOB_STATES = ("pending", "queued", "running", "answered", "invalid", "refused", "failed")
FINISHED_STATES = ("answered", "invalid", "refused", "failed")
ATTEMPT_OUTCOMES = ("answered", "invalid", "refused", "no_completion")
ACTIVITY = ("active", "paused", "cancelled")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _big(**options: Any) -> Any:  # noqa: ANN401 - SQLModel's Field is untyped by design
    return Field(sa_type=BigInteger, **options)


def _text(**options: Any) -> Any:  # noqa: ANN401
    return Field(sa_type=Text, **options)


def _time(**options: Any) -> Any:  # noqa: ANN401
    return Field(sa_type=DateTime(timezone=True), **options)


class StudyRow(SQLModel, table=True):
    """A study by name; its resolved files are kept by revision."""

    __tablename__ = "study"
    __table_args__ = (UniqueConstraint("name"), _one_of("state", ACTIVITY))

    id: int | None = _big(default=None, primary_key=True)
    name: str = _text()
    state: str = _text(sa_column_kwargs={"server_default": "active"})
    revision: int = Field(sa_type=Integer)
    created_at: datetime = _time()


class StudyRevisionRow(SQLModel, table=True):
    """The resolved study file as one `bothways run` used it."""

    __tablename__ = "study_revision"

    study: int = _big(primary_key=True, foreign_key="study.id")
    revision: int = Field(primary_key=True, sa_type=Integer)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = _time()


class ItemRow(SQLModel, table=True):
    """One item; equal content under two source ids is two items. Its cluster stands on the jobs of each study."""

    __tablename__ = "item"
    __table_args__ = (UniqueConstraint("dataset", "source_id", "digest"),)

    id: int | None = _big(default=None, primary_key=True)
    dataset: str = _text()
    source_id: str = _text()
    digest: str = _text()
    payload: dict[str, Any] = Field(sa_type=JSONB)


class ConditionRow(SQLModel, table=True):
    """One way of asking. `spec` is what the digest covers, `rules` what may change without new jobs."""

    __tablename__ = "condition"
    __table_args__ = (UniqueConstraint("study", "digest"), _one_of("state", ACTIVITY))

    id: int | None = _big(default=None, primary_key=True)
    study: int = _big(foreign_key="study.id")
    digest: str = _text()
    dataset: str = _text()
    provider: str = _text()
    model: str = _text()
    format: str = _text()
    variant: str = _text()
    stage: str = _text()
    queue: str = _text()
    spec: dict[str, Any] = Field(sa_type=JSONB)
    rules: dict[str, Any] = Field(sa_type=JSONB)
    of_condition: int | None = _big(default=None, foreign_key="condition.id")
    state: str = _text(sa_column_kwargs={"server_default": "active"})


class JobRow(SQLModel, table=True):
    """One item (and part) under one condition, one repeat. One row, one result.

    `claim` is the fencing token: who holds an older one can finish nothing. `calling` says that a provider call is in
    flight, so that an expired lease counts as a loss. `counted_attempt` is the attempt that the result was read from.
    """

    __tablename__ = "job"
    __table_args__ = (
        UniqueConstraint("condition", "item", "part", "repeat"),
        _one_of("state", JOB_STATES),
        Index("ix_job_pending", "queue", "study", "position", postgresql_where="state = 'pending'"),
        Index("ix_job_leased", "lease_until", postgresql_where="state IN ('queued', 'running')"),
        Index("ix_job_study_state", "study", "state"),
        Index("ix_job_parent", "parent", postgresql_where="parent IS NOT NULL"),
    )

    id: int | None = _big(default=None, primary_key=True)
    condition: int = _big(foreign_key="condition.id")
    item: int = _big(foreign_key="item.id")
    part: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    repeat: int = Field(sa_type=Integer)
    study: int = _big(foreign_key="study.id")
    queue: str = _text()
    cluster: str = _text()
    position: int = _big()
    state: str = _text(sa_column_kwargs={"server_default": "pending"})
    planned: bool = Field(sa_type=Boolean, sa_column_kwargs={"server_default": "true"})
    not_before: datetime | None = _time(default=None)
    lease_until: datetime | None = _time(default=None)
    claim: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    calling: bool = Field(sa_type=Boolean, sa_column_kwargs={"server_default": "false"})
    losses: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    round: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "1"})
    parent: int | None = _big(default=None, foreign_key="job.id")
    answer: int | None = Field(default=None, sa_type=Integer)
    text: str | None = _text(default=None)
    counted_attempt: UUID | None = Field(default=None)
    finished_at: datetime | None = _time(default=None)


class PromptRow(SQLModel, table=True):
    """A prompt exactly as sent, once, whoever was asked it."""

    __tablename__ = "prompt"

    digest: str = _text(primary_key=True)
    text: str = _text()


class DeploymentRow(SQLModel, table=True):
    """What exactly answered. `digest` is the model's own (weights), `identity` a digest over all the columns here."""

    __tablename__ = "deployment"
    __table_args__ = (UniqueConstraint("identity"),)

    id: int | None = _big(default=None, primary_key=True)
    identity: str = _text()
    provider: str = _text()
    model: str = _text()
    endpoint: str | None = _text(default=None)
    digest: str | None = _text(default=None)
    quantisation: str | None = _text(default=None)
    context_length: int | None = Field(default=None, sa_type=Integer)
    server_version: str | None = _text(default=None)
    template_digest: str | None = _text(default=None)
    first_seen: datetime = _time()


class AttemptRow(SQLModel, table=True):
    """One provider call, whatever came of it. The id is made by the worker before the call; rows only ever grow."""

    __tablename__ = "attempt"
    __table_args__ = (_one_of("outcome", ATTEMPT_OUTCOMES), Index("ix_attempt_job_claim", "job", "claim", "started_at"))

    id: UUID = Field(primary_key=True)
    job: int = _big(foreign_key="job.id")
    round: int = Field(sa_type=Integer)
    claim: int = Field(sa_type=Integer)
    started_at: datetime = _time()
    latency_ms: int = _big()
    prompt: str | None = _text(default=None, foreign_key="prompt.digest")
    seed: int | None = _big(default=None)
    completion: str | None = _text(default=None)
    completion_length: int | None = _big(default=None)
    thinking: str | None = _text(default=None)
    finish_reason: str | None = _text(default=None)
    tokens_in: int | None = Field(default=None, sa_type=Integer)
    tokens_out: int | None = Field(default=None, sa_type=Integer)
    tokens_cached: int | None = Field(default=None, sa_type=Integer)
    logprobs: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    outcome: str = _text()
    answer: int | None = Field(default=None, sa_type=Integer)
    tier: str | None = _text(default=None)
    reason: str | None = _text(default=None)
    reading: str | None = _text(default=None)
    reading_version: int | None = Field(default=None, sa_type=Integer)
    error_kind: str | None = _text(default=None)
    error_message: str | None = _text(default=None)
    deployment: int | None = _big(default=None, foreign_key="deployment.id")
    pool: str | None = _text(default=None)
    worker: str = _text()


class CanaryRow(SQLModel, table=True):
    """A first-contact call, kept like an attempt because it was paid for like one."""

    __tablename__ = "canary"

    id: UUID = Field(primary_key=True)
    deployment: int | None = _big(default=None, foreign_key="deployment.id")
    pool: str | None = _text(default=None)
    started_at: datetime = _time()
    tokens_in: int | None = Field(default=None, sa_type=Integer)
    tokens_out: int | None = Field(default=None, sa_type=Integer)
    completion: str | None = _text(default=None)
    passed: bool = Field(sa_type=Boolean)
    error_kind: str | None = _text(default=None)
    error_message: str | None = _text(default=None)
    worker: str = _text()


class StopRow(SQLModel, table=True):
    """What a person or a fault stopped: a queue of a study, with the reason in one sentence."""

    __tablename__ = "stop"
    __table_args__ = (UniqueConstraint("study", "queue"),)

    id: int | None = _big(default=None, primary_key=True)
    study: int = _big(foreign_key="study.id")
    queue: str = _text()
    reason: str = _text()
    since: datetime = _time()


class WorkerHeartbeatRow(SQLModel, table=True):
    """A worker process that was seen, and what it listens to."""

    __tablename__ = "worker_heartbeat"

    worker: str = _text(primary_key=True)
    started_at: datetime = _time()
    seen_at: datetime = _time()
    slots: int = Field(sa_type=Integer)
    queues: list[str] = Field(sa_type=JSONB)
    version: str = _text()
