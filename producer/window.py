"""The dispatcher's SQL: recover what was lost, and choose what is queued next.

A queue's window is counted in Postgres, never by the length of a list in the broker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from contract.results import counted_attempt

LOSSES_ALONE = 2
"""From so many losses on, a job travels alone: it may be what kills its worker."""

LOSSES_POISON = 4
"""With more losses than this a job ends failed."""

REOPENED = """
    state = 'pending', losses = 0, not_before = NULL, finished_at = NULL, answer = NULL, counted_attempt = NULL
"""
"""What becomes of a finished job that is opened again; its attempts stay, and its round is the opener's to count."""

WORKER_SEEN_S = 30
"""A worker that was not seen for longer is taken for gone."""

# A job that ends as poison has the result of its attempts, if they left one.
_RECOVER = text(f"""
    WITH lost AS (
        SELECT id, calling AND losses >= :poison AS poison FROM job
        WHERE state IN ('queued', 'running') AND lease_until < now() ORDER BY id FOR UPDATE SKIP LOCKED
    )
    UPDATE job SET losses = losses + calling::int, calling = false, lease_until = NULL,
        state = CASE WHEN lost.poison THEN coalesce(counted.outcome, 'failed') ELSE 'pending' END,
        finished_at = CASE WHEN lost.poison THEN now() END,
        answer = CASE WHEN lost.poison THEN counted.answer END,
        counted_attempt = CASE WHEN lost.poison THEN counted.id END
    FROM lost LEFT JOIN LATERAL ({counted_attempt("lost.id")}) AS counted ON true
    WHERE job.id = lost.id
""")  # noqa: S608 - only a constant
# Rows are locked in one order everywhere, so that two that update many of them cannot wait for each other.
_UNQUEUE = text("""
    UPDATE job SET state = 'pending', lease_until = NULL WHERE id IN (
        SELECT id FROM job WHERE state = 'queued' AND (CAST(:ids AS bigint[]) IS NULL OR id = ANY(:ids))
        ORDER BY id FOR UPDATE)
""")

_ROOM = text("""
    SELECT served.queue, served.slots * :per_slot - (
        SELECT count(*) FROM job WHERE job.queue = served.queue AND job.state IN ('queued', 'running')
    ) AS room
    FROM (
        SELECT queue, sum(slots) AS slots
        FROM worker_heartbeat CROSS JOIN LATERAL jsonb_array_elements_text(queues) AS queue
        WHERE seen_at > now() - make_interval(secs => :seen) GROUP BY queue
    ) AS served ORDER BY served.queue
""")

# Studies take turns: the first due job of each, then the second of each, and so on.
_QUEUE_NEXT = text("""
    WITH due AS (
        SELECT job.id, job.study, job.losses, job.position, job.turn
        FROM study CROSS JOIN LATERAL (
            SELECT job.id, job.study, job.losses, job.position, row_number() OVER (ORDER BY job.position) AS turn
            FROM job JOIN condition ON condition.id = job.condition
            WHERE job.queue = :queue AND job.study = study.id AND job.state = 'pending' AND job.planned
              AND condition.state = 'active' AND (job.not_before IS NULL OR job.not_before <= now())
            ORDER BY job.position LIMIT :room
        ) AS job
        WHERE study.state = 'active'
          AND NOT EXISTS (SELECT FROM stop WHERE stop.study = study.id AND stop.queue = :queue)
        ORDER BY job.turn, job.study LIMIT :room
    ), taken AS (
        UPDATE job SET state = 'queued', not_before = NULL, lease_until = now() + make_interval(secs => :lease_s)
        FROM due WHERE job.id = due.id AND job.state = 'pending' RETURNING job.id, job.condition
    )
    SELECT due.id, study.name AS study, condition.model, condition.dataset, due.losses,
           (condition.rules -> 'bundles' ->> 'size')::int AS size
    FROM taken JOIN due USING (id) JOIN condition ON condition.id = taken.condition JOIN study ON study.id = due.study
    ORDER BY study.name, due.position
""")


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A job that was just marked queued, with what decides the bundle it travels in."""

    id: int
    study: str
    model: str
    dataset: str
    losses: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The jobs of one message: one queue, study, model and dataset."""

    job_ids: tuple[int, ...]
    study: str
    model: str
    dataset: str


def recover(connection: Connection) -> int:
    """The one recovery rule: queued or running with an expired lease goes back to pending, or fails as poison."""
    return connection.execute(_RECOVER, {"poison": LOSSES_POISON}).rowcount


def unqueue(connection: Connection, job_ids: Sequence[int] | None = None) -> int:
    """Put queued jobs back to pending: those named, or all when the broker has lost its messages."""
    return connection.execute(_UNQUEUE, {"ids": None if job_ids is None else list(job_ids)}).rowcount


def rooms(connection: Connection, *, per_slot: int) -> dict[str, int]:
    """How many more jobs each queue may hold that a living worker serves; a queue without a worker is not fed."""
    rows = connection.execute(_ROOM, {"per_slot": per_slot, "seen": WORKER_SEEN_S})
    return {queue: room for queue, room in rows if room > 0}


def queue_next(connection: Connection, queue: str, *, room: int, lease_s: float) -> list[QueuedJob]:
    """Mark up to `room` due jobs of `queue` as queued, studies taking turns; in the order of bundling."""
    rows = connection.execute(_QUEUE_NEXT, {"queue": queue, "room": room, "lease_s": lease_s}).mappings()
    return [QueuedJob(**row) for row in rows]


def cut_bundles(jobs: Sequence[QueuedJob]) -> list[Bundle]:
    """Consecutive jobs of one study, model and dataset, at most the study's bundle size; suspects travel alone."""
    bundles: list[list[QueuedJob]] = []
    for job in jobs:
        if bundles and _fits(bundles[-1], job):
            bundles[-1].append(job)
        else:
            bundles.append([job])
    return [_bundle(jobs) for jobs in bundles]


def _fits(bundle: list[QueuedJob], job: QueuedJob) -> bool:
    last = bundle[-1]
    together = (last.study, last.model, last.dataset) == (job.study, job.model, job.dataset)
    return together and len(bundle) < job.size and max(last.losses, job.losses) < LOSSES_ALONE


def _bundle(jobs: list[QueuedJob]) -> Bundle:
    first = jobs[0]
    return Bundle(job_ids=tuple(job.id for job in jobs), study=first.study, model=first.model, dataset=first.dataset)
