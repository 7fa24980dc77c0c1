"""The tables of studies and their results. Rows are dumb: they validate nothing, frozen records are read from them.

A test keeps `ops/migrations/` in step. What programs tell each other stands in `contract.service_tables`.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Index, Integer, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from contract.columns import big_column, one_of, text_column, time_column

JOB_STATES = ("pending", "queued", "running", "answered", "invalid", "refused", "failed")
FINISHED_STATES = ("answered", "invalid", "refused", "failed")
ATTEMPT_OUTCOMES = ("answered", "invalid", "refused", "no_completion")
DUE = "state = 'pending' AND planned AND not_before IS NULL"
"""What may be queued, as far as the job itself is concerned; exactly the predicate of its index."""
ACTIVITY = ("active", "paused", "cancelled")


class StudyRow(SQLModel, table=True):
    """A study by name; its resolved files are kept by revision."""

    __tablename__ = "study"
    __table_args__ = (UniqueConstraint("name"), one_of("state", ACTIVITY))

    id: int | None = big_column(default=None, primary_key=True)
    name: str = text_column()
    state: str = text_column(sa_column_kwargs={"server_default": "active"})
    revision: int = Field(sa_type=Integer)
    weight: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "1"})
    created_at: datetime = time_column()


class StudyRevisionRow(SQLModel, table=True):
    """The resolved study file as one `bothways run` used it."""

    __tablename__ = "study_revision"

    study: int = big_column(primary_key=True, foreign_key="study.id")
    revision: int = Field(primary_key=True, sa_type=Integer)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = time_column()


class ItemRow(SQLModel, table=True):
    """One item; equal content under two source ids is two items. Its cluster stands on the jobs of each study."""

    __tablename__ = "item"
    __table_args__ = (UniqueConstraint("dataset", "source_id", "digest"),)

    id: int | None = big_column(default=None, primary_key=True)
    dataset: str = text_column()
    source_id: str = text_column()
    digest: str = text_column()
    payload: dict[str, Any] = Field(sa_type=JSONB)


class ConditionRow(SQLModel, table=True):
    """One way of asking. `spec` is what the digest covers, `rules` what may change without new jobs."""

    __tablename__ = "condition"
    __table_args__ = (UniqueConstraint("study", "digest"), one_of("state", ACTIVITY))

    id: int | None = big_column(default=None, primary_key=True)
    study: int = big_column(foreign_key="study.id")
    digest: str = text_column()
    dataset: str = text_column()
    provider: str = text_column()
    model: str = text_column()
    format: str = text_column()
    variant: str = text_column()
    stage: str = text_column()
    queue: str = text_column()
    spec: dict[str, Any] = Field(sa_type=JSONB)
    rules: dict[str, Any] = Field(sa_type=JSONB)
    of_condition: int | None = big_column(default=None, foreign_key="condition.id")
    state: str = text_column(sa_column_kwargs={"server_default": "active"})


class JobRow(SQLModel, table=True):
    """One item (and part) under one condition, one repeat. One row, one result.

    `study` and `queue` are those of its condition.
    `claim` is the fencing token: who holds an older one can finish nothing. `calling` says that a provider call is in
    flight, so that an expired lease counts as a loss. `counted_attempt` is the attempt that the result was read from.
    `prefix`: jobs of one condition's model and dataset with equal numbers share the head of their prompts. `not_before`
    is the instant before which it is not asked, 'infinity' as long as its parent has no answer.
    """

    __tablename__ = "job"
    __table_args__ = (
        UniqueConstraint("condition", "item", "part", "repeat"),
        one_of("state", JOB_STATES),
        # What may be queued now is found without passing over what waits for an instant or for its parent.
        Index("ix_job_due", "queue", "study", "position", postgresql_where=DUE),
        Index("ix_job_waiting", "not_before", postgresql_where="state = 'pending' AND not_before IS NOT NULL"),
        # Not by lease_until: a renewal would then have to write every index of the table.
        Index("ix_job_held", "queue", "study", postgresql_where="state IN ('queued', 'running')"),
        Index("ix_job_study", "study"),
        Index("ix_job_parent", "parent", postgresql_where="parent IS NOT NULL"),
        # Every job is updated some times and the head of the queue is read all the time: room for updates in place, and
        # dead rows cleared early.
        {"postgresql_with": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.02}},
    )

    id: int | None = big_column(default=None, primary_key=True)
    condition: int = big_column(foreign_key="condition.id")
    item: int = big_column(foreign_key="item.id")
    part: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    repeat: int = Field(sa_type=Integer)
    study: int = big_column()
    queue: str = text_column()
    cluster: str = text_column()
    position: int = big_column()
    prefix: int | None = big_column(default=None)
    state: str = text_column(sa_column_kwargs={"server_default": "pending"})
    planned: bool = Field(sa_type=Boolean, sa_column_kwargs={"server_default": "true"})
    not_before: datetime | None = time_column(default=None)
    lease_until: datetime | None = time_column(default=None)
    claim: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    calling: bool = Field(sa_type=Boolean, sa_column_kwargs={"server_default": "false"})
    losses: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    round: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "1"})
    parent: int | None = big_column(default=None, foreign_key="job.id")
    answer: int | None = Field(default=None, sa_type=Integer)
    text: str | None = text_column(default=None)
    counted_attempt: UUID | None = Field(default=None)
    finished_at: datetime | None = time_column(default=None)


class PromptRow(SQLModel, table=True):
    """A prompt exactly as sent, once, whoever was asked it."""

    __tablename__ = "prompt"

    digest: str = text_column(primary_key=True)
    text: str = text_column()


class DeploymentRow(SQLModel, table=True):
    """What exactly answered. `digest` is the model's own (weights), `identity` a digest over all the columns here."""

    __tablename__ = "deployment"
    __table_args__ = (UniqueConstraint("identity"),)

    id: int | None = big_column(default=None, primary_key=True)
    identity: str = text_column()
    provider: str = text_column()
    model: str = text_column()
    endpoint: str | None = text_column(default=None)
    digest: str | None = text_column(default=None)
    quantisation: str | None = text_column(default=None)
    context_length: int | None = Field(default=None, sa_type=Integer)
    server_version: str | None = text_column(default=None)
    template_digest: str | None = text_column(default=None)
    first_seen: datetime = time_column()


class AttemptRow(SQLModel, table=True):
    """One provider call, whatever came of it. The id is made by the worker before the call; rows only ever grow.

    `answer` or `text` is what was read in the completion.
    """

    __tablename__ = "attempt"
    __table_args__ = (
        one_of("outcome", ATTEMPT_OUTCOMES),
        Index("ix_attempt_job_claim", "job", "claim", "started_at"),
        Index("ix_attempt_pool", "pool", "started_at", postgresql_where="pool IS NOT NULL"),
    )

    id: UUID = Field(primary_key=True)
    job: int = big_column(foreign_key="job.id")
    round: int = Field(sa_type=Integer)
    claim: int = Field(sa_type=Integer)
    started_at: datetime = time_column()
    latency_ms: int = big_column()
    prompt: str | None = text_column(default=None, foreign_key="prompt.digest")
    seed: int | None = big_column(default=None)
    completion: str | None = text_column(default=None)
    completion_length: int | None = big_column(default=None)
    text: str | None = text_column(default=None)
    thinking: str | None = text_column(default=None)
    finish_reason: str | None = text_column(default=None)
    tokens_in: int | None = Field(default=None, sa_type=Integer)
    tokens_out: int | None = Field(default=None, sa_type=Integer)
    tokens_cached: int | None = Field(default=None, sa_type=Integer)
    logprobs: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    outcome: str = text_column()
    answer: int | None = Field(default=None, sa_type=Integer)
    tier: str | None = text_column(default=None)
    reason: str | None = text_column(default=None)
    reading: str | None = text_column(default=None)
    reading_version: int | None = Field(default=None, sa_type=Integer)
    error_kind: str | None = text_column(default=None)
    error_message: str | None = text_column(default=None)
    deployment: int | None = big_column(default=None, foreign_key="deployment.id")
    pool: str | None = text_column(default=None)
    worker: str = text_column()
