"""The tables in which programs tell each other and people how they are: canaries, pins, stops, heartbeats."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Index, Integer, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from contract.columns import big_column, text_column, time_column


class CanaryRow(SQLModel, table=True):
    """A first-contact call, kept like an attempt because it was paid for like one.

    `contact` is the digest of what was met: model, options, address, sampling, and the model's own digest where known.
    """

    __tablename__ = "canary"
    __table_args__ = (
        Index("ix_canary_contact", "contact", "started_at"),
        Index("ix_canary_pool", "pool", "started_at", postgresql_where="pool IS NOT NULL"),
    )

    id: UUID = Field(primary_key=True)
    contact: str = text_column(sa_column_kwargs={"server_default": ""})
    deployment: int | None = big_column(default=None, foreign_key="deployment.id")
    pool: str | None = text_column(default=None)
    started_at: datetime = time_column()
    tokens_in: int | None = Field(default=None, sa_type=Integer)
    tokens_out: int | None = Field(default=None, sa_type=Integer)
    completion: str | None = text_column(default=None)
    passed: bool = Field(sa_type=Boolean)
    error_kind: str | None = text_column(default=None)
    error_message: str | None = text_column(default=None)
    worker: str = text_column()


class PinRow(SQLModel, table=True):
    """A digest or model version that may answer a queue of a study: the first one, and those that a person accepted."""

    __tablename__ = "pin"

    study: int = big_column(primary_key=True, foreign_key="study.id")
    queue: str = text_column(primary_key=True)
    digest: str = text_column(primary_key=True)
    accepted_at: datetime = time_column()


class StopRow(SQLModel, table=True):
    """A queue of a study that a fault stopped, with the reason in one sentence.

    `endpoint`: only workers of this host stand still, all where it is empty. `digest`: what answered and is not pinned.
    `tried_at`: when a worker last looked whether the fault has gone.
    """

    __tablename__ = "stop"
    __table_args__ = (UniqueConstraint("study", "queue", "endpoint"),)

    id: int | None = big_column(default=None, primary_key=True)
    study: int = big_column(foreign_key="study.id")
    queue: str = text_column()
    endpoint: str = text_column(sa_column_kwargs={"server_default": ""})
    reason: str = text_column()
    digest: str | None = text_column(default=None)
    since: datetime = time_column()
    tried_at: datetime = time_column(sa_column_kwargs={"server_default": func.now()})


class WorkerHeartbeatRow(SQLModel, table=True):
    """A worker process that was seen, what it listens to, and its pace there: seconds a job by queue.

    `endpoint` is the GPU host that it serves and `models` what that host has, both null for other workers. `resting`:
    the queues that it leaves alone for a while, each with a reason and the instant until when. `wants`: how many more
    bundles it can use at once of a queue with pools. `notes`: what a person should know of its host.
    """

    __tablename__ = "worker_heartbeat"

    worker: str = text_column(primary_key=True)
    started_at: datetime = time_column()
    seen_at: datetime = time_column()
    slots: int = Field(sa_type=Integer)
    queues: list[str] = Field(sa_type=JSONB)
    version: str = text_column()
    pace: dict[str, float] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})
    endpoint: str | None = text_column(default=None)
    models: list[str] | None = Field(default=None, sa_type=JSONB)
    resting: dict[str, Any] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})
    notes: list[str] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": "[]"})
    wants: dict[str, int] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})


class DispatcherHeartbeatRow(SQLModel, table=True):
    """A dispatcher that was seen, whether it led then, and what kept it from its work, if anything did."""

    __tablename__ = "dispatcher_heartbeat"

    dispatcher: str = text_column(primary_key=True)
    started_at: datetime = time_column()
    seen_at: datetime = time_column()
    leads: bool = Field(sa_type=Boolean)
    fault: str | None = text_column(default=None)
