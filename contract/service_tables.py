"""The tables in which programs tell each other and people how they are: canaries, stops, heartbeats."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Boolean, Integer, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from contract.columns import big_column, text_column, time_column


class CanaryRow(SQLModel, table=True):
    """A first-contact call, kept like an attempt because it was paid for like one."""

    __tablename__ = "canary"

    id: UUID = Field(primary_key=True)
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


class StopRow(SQLModel, table=True):
    """What a person or a fault stopped: a queue of a study, with the reason in one sentence."""

    __tablename__ = "stop"
    __table_args__ = (UniqueConstraint("study", "queue"),)

    id: int | None = big_column(default=None, primary_key=True)
    study: int = big_column(foreign_key="study.id")
    queue: str = text_column()
    reason: str = text_column()
    since: datetime = time_column()


class WorkerHeartbeatRow(SQLModel, table=True):
    """A worker process that was seen, what it listens to, and its pace there: seconds a job by queue."""

    __tablename__ = "worker_heartbeat"

    worker: str = text_column(primary_key=True)
    started_at: datetime = time_column()
    seen_at: datetime = time_column()
    slots: int = Field(sa_type=Integer)
    queues: list[str] = Field(sa_type=JSONB)
    version: str = text_column()
    pace: dict[str, float] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})


class DispatcherHeartbeatRow(SQLModel, table=True):
    """A dispatcher that was seen, whether it led then, and what kept it from its work, if anything did."""

    __tablename__ = "dispatcher_heartbeat"

    dispatcher: str = text_column(primary_key=True)
    started_at: datetime = time_column()
    seen_at: datetime = time_column()
    leads: bool = Field(sa_type=Boolean)
    fault: str | None = text_column(default=None)
