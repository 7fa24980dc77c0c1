"""Who is at work: workers as their heartbeats tell, what they serve, since when, how fast, what they leave alone."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Row, text

from contract.database import postgres_errors
from producer.window import WORKER_SEEN_S

FORGOTTEN_AFTER_S = 3600.0
"""A worker that left without a word is named for so long."""

_WORKERS = text("""
    SELECT worker, started_at, extract(epoch FROM now() - seen_at)::float AS age_s, slots, queues, version, pace,
           endpoint, models, resting, notes
    FROM worker_heartbeat WHERE seen_at > now() - make_interval(secs => :forgotten) ORDER BY endpoint NULLS LAST, worker
""")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A queue that a worker takes from: jobs a minute at its present pace, None until it has finished one."""

    queue: str
    jobs_a_minute: float | None


@dataclass(frozen=True, kw_only=True)
class Resting:
    """A queue that a worker leaves alone until an instant, and why."""

    queue: str
    until: datetime
    reason: str


@dataclass(frozen=True, kw_only=True)
class WorkerSeen:
    """One worker process. `endpoint` and `models` are those of a GPU host, None for other workers.

    `age_s`: seconds since it was heard of; `gone` when that is too long.
    """

    worker: str
    endpoint: str | None
    since: datetime
    age_s: float
    slots: int
    version: str
    serves: tuple[Served, ...]
    resting: tuple[Resting, ...]
    models: tuple[str, ...] | None
    notes: tuple[str, ...]

    @property
    def gone(self) -> bool:
        """Whether nothing was heard of it for so long that its work goes to others."""
        return self.age_s > WORKER_SEEN_S


def read_workers(engine: Engine) -> list[WorkerSeen]:
    """The workers that were seen lately, GPU hosts first."""
    with postgres_errors(engine), engine.connect() as connection:
        rows = connection.execute(_WORKERS, {"forgotten": FORGOTTEN_AFTER_S}).all()
    return [_seen(row) for row in rows]


def _seen(row: Row[Any]) -> WorkerSeen:
    return WorkerSeen(
        worker=row.worker,
        endpoint=row.endpoint,
        since=row.started_at,
        age_s=row.age_s,
        slots=row.slots,
        version=row.version,
        serves=tuple(Served(queue=queue, jobs_a_minute=_rate(row, queue)) for queue in row.queues),
        resting=tuple(
            Resting(queue=queue, until=datetime.fromisoformat(rest["until"]), reason=rest["reason"])
            for queue, rest in row.resting.items()
        ),
        models=None if row.models is None else tuple(row.models),
        notes=tuple(row.notes),
    )


def _rate(row: Row[Any], queue: str) -> float | None:
    """Jobs a minute of all its slots together, if they all worked on this queue."""
    pace_s = row.pace.get(queue)
    return None if not pace_s else 60 * row.slots / pace_s
