"""The dispatcher's SQL: recover what was lost, and choose what is queued next.

A queue's window is counted in Postgres, never by the length of a list in the broker. Rows are locked in the order of
their ids everywhere, so that two that update many of them cannot wait for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from contract.results import CHILD_ROUNDS, children_follow, counted_attempt
from contract.tables import DUE
from producer.bundles import Claimant, DueJob

LOSSES_POISON = 4
"""With more losses than this a job ends failed."""

REOPENED = """
    state = 'pending', losses = 0, not_before = NULL, finished_at = NULL, answer = NULL, text = NULL,
    counted_attempt = NULL
"""
"""What becomes of a finished job that is opened again; its attempts stay, and its round is the opener's to count."""

WORKER_SEEN_S = 30
"""A worker or dispatcher that was not seen for longer is taken for gone."""

WINDOW_S = 120.0
"""A window holds about so many seconds of work, as far as the workers have told their pace."""
FIRST_JOBS_PER_SLOT = 32
MOST_JOBS_PER_SLOT = 128
WAKE_AT_ONCE = 10_000

# A job that ends as poison has the result of its attempts, if they left one.
_RECOVER = text(f"""
    WITH lost AS (
        SELECT id, calling AND losses >= :poison AS poison, {CHILD_ROUNDS} AS since FROM job
        WHERE state IN ('queued', 'running') AND lease_until < now() ORDER BY id FOR UPDATE SKIP LOCKED
    ), recovered AS (
        UPDATE job SET losses = losses + calling::int, calling = false, lease_until = NULL,
            state = CASE WHEN lost.poison THEN coalesce(counted.outcome, 'failed') ELSE 'pending' END,
            finished_at = CASE WHEN lost.poison THEN now() END,
            answer = CASE WHEN lost.poison THEN counted.answer END,
            text = CASE WHEN lost.poison THEN counted.text END,
            counted_attempt = CASE WHEN lost.poison THEN counted.id END
        FROM lost LEFT JOIN LATERAL ({counted_attempt("lost.id", since="lost.since")}) AS counted ON true
        WHERE job.id = lost.id RETURNING job.id, job.state
    ), followed AS (
        {children_follow("(SELECT id, state FROM recovered WHERE state <> 'pending')")}
    ) SELECT count(*) FROM recovered
""")  # noqa: S608 - only constants
# A child that is inserted, or put back to wait, while its parent ends sees nothing of that end, and is not seen by it.
_SETTLE = text("""
    WITH waiting AS MATERIALIZED (
        SELECT job.id, parent.state FROM job JOIN job AS parent ON parent.id = job.parent
        WHERE job.state = 'pending' AND job.not_before = 'infinity' AND parent.finished_at IS NOT NULL
        ORDER BY job.id LIMIT :most FOR NO KEY UPDATE OF job SKIP LOCKED
    ) UPDATE job SET not_before = NULL,
        state = CASE WHEN waiting.state = 'answered' THEN 'pending' ELSE 'failed' END,
        finished_at = CASE WHEN waiting.state = 'answered' THEN NULL ELSE now() END
    FROM waiting WHERE job.id = waiting.id
""")
_WAKE = text(f"""
    UPDATE job SET not_before = NULL WHERE id IN (
        SELECT id FROM job WHERE state = 'pending' AND not_before <= now() ORDER BY id
        FOR UPDATE SKIP LOCKED LIMIT {WAKE_AT_ONCE})
""")  # noqa: S608
_UNQUEUE = text("""
    UPDATE job SET state = 'pending', lease_until = NULL WHERE id IN (
        SELECT id FROM job WHERE state = 'queued' AND (CAST(:ids AS bigint[]) IS NULL OR id = ANY(:ids))
        ORDER BY id FOR UPDATE)
""")
_UNQUEUE_OLD = text("""
    UPDATE job SET state = 'pending', lease_until = NULL WHERE id IN (
        SELECT id FROM job WHERE state = 'queued' AND queue = ANY(:queues)
          AND lease_until < now() + make_interval(secs => :left_s)
        ORDER BY id FOR UPDATE SKIP LOCKED)
""")

_SERVED = text("""
    SELECT served.*, held.jobs AS held, held.queued
    FROM (
        SELECT queue, sum(slots) AS slots, avg((pace ->> queue)::float) AS pace_s,
               least(max(seen_at), now()) AS told_at,
               CASE WHEN bool_or(wants ? queue) THEN sum(
                   CASE WHEN NOT wants ? queue THEN slots
                        WHEN seen_at > coalesce(CAST(:told_at AS timestamptz), '-infinity')
                        THEN (wants ->> queue)::int ELSE 0 END
               ) END AS wanted
        FROM worker_heartbeat CROSS JOIN LATERAL jsonb_array_elements_text(queues) AS queue
        WHERE seen_at > now() - make_interval(secs => :seen) GROUP BY queue
    ) AS served CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, count(*) FILTER (WHERE state = 'queued') AS queued FROM job
        WHERE job.queue = served.queue AND job.state IN ('queued', 'running')
    ) AS held ORDER BY served.queue
""")
_KNOWN = text("SELECT DISTINCT queue FROM condition")
# That a study has due jobs is asked with a limit: for EXISTS Postgres counts through all of them.
_CLAIMANTS = text(f"""
    SELECT study.id, study.name, study.weight, bundles.size, bundles.budget_s, coalesce(held.jobs, 0) AS held
    FROM study CROSS JOIN LATERAL (
        SELECT (rules -> 'bundles' ->> 'size')::int AS size, (rules -> 'bundles' ->> 'budget_s')::float AS budget_s
        FROM condition WHERE study = study.id AND queue = :queue AND condition.state = 'active' LIMIT 1
    ) AS bundles CROSS JOIN LATERAL (
        SELECT FROM job WHERE job.queue = :queue AND job.study = study.id AND {DUE} ORDER BY position LIMIT 1
    ) AS due LEFT JOIN (
        SELECT study, count(*) AS jobs FROM job
        WHERE queue = :queue AND state IN ('queued', 'running') GROUP BY study
    ) AS held ON held.study = study.id
    WHERE study.state = 'active'
      AND NOT EXISTS (SELECT FROM stop WHERE stop.study = study.id AND stop.queue = :queue AND stop.endpoint = '')
    ORDER BY study.id
""")  # noqa: S608
_DUE_JOBS = text(f"""
    SELECT job.id, condition.model, condition.dataset, job.prefix, job.losses
    FROM job JOIN condition ON condition.id = job.condition
    WHERE job.queue = :queue AND job.study = :study AND {DUE.replace("state", "job.state")}
      AND condition.state = 'active'
    ORDER BY job.position LIMIT :limit
""")  # noqa: S608
_QUEUE = text("""
    WITH due AS (
        SELECT id FROM job WHERE id = ANY(:ids) AND state = 'pending' ORDER BY id FOR UPDATE SKIP LOCKED
    ) UPDATE job SET state = 'queued', lease_until = now() + make_interval(secs => :lease_s)
    FROM due WHERE job.id = due.id RETURNING job.id
""")


@dataclass(frozen=True, kw_only=True)
class ServedQueue:
    """A queue that living workers serve: their slots, their seconds a job (None if none told), jobs in its window.

    Of the jobs that are `held`, `queued` are not claimed yet. `wanted`: how many more bundles its workers can use where
    a quota decides how fast they go, None where none does; they told that at `told_at`.
    """

    queue: str
    slots: int
    pace_s: float | None
    held: int
    queued: int
    wanted: int | None
    told_at: datetime

    def room(self, largest_bundle: int) -> int:
        """How many more jobs its window has room for: some minutes of work, and two bundles for each slot at least, but
        no more bundles than are wanted."""
        per_slot = FIRST_JOBS_PER_SLOT
        if self.pace_s is not None:
            per_slot = min(MOST_JOBS_PER_SLOT, int(WINDOW_S / max(self.pace_s, 1e-3)))
        room = self.slots * max(per_slot, 2 * largest_bundle) - self.held
        if self.wanted is not None:
            room = min(room, self.wanted * largest_bundle - self.queued)
        return max(0, room)


def recover(connection: Connection) -> int:
    """The one recovery rule: queued or running with an expired lease goes back to pending, or fails as poison."""
    found: int = connection.execute(_RECOVER, {"poison": LOSSES_POISON}).scalar_one()
    return found


def settle_children(connection: Connection, *, most: int | None = None) -> int:
    """Make children due, or end them, that still wait for parents which have ended; returns how many."""
    return connection.execute(_SETTLE, {"most": most}).rowcount


def wake(connection: Connection) -> int:
    """Make jobs due whose instant has come."""
    return connection.execute(_WAKE).rowcount


def unqueue(connection: Connection, job_ids: Sequence[int] | None = None) -> int:
    """Put queued jobs back to pending: those named, or all when the broker has lost its messages."""
    return connection.execute(_UNQUEUE, {"ids": None if job_ids is None else list(job_ids)}).rowcount


def unqueue_old(connection: Connection, queues: Sequence[str], *, left_s: float) -> int:
    """Put jobs of `queues` back whose queued lease has less than `left_s` seconds left: their messages are gone."""
    return connection.execute(_UNQUEUE_OLD, {"queues": list(queues), "left_s": left_s}).rowcount


def served_queues(connection: Connection, told_at: datetime | None = None) -> list[ServedQueue]:
    """The queues that living workers serve; a queue without a worker is not fed.

    What workers wanted at `told_at` or before was given to them already.
    """
    rows = connection.execute(_SERVED, {"seen": WORKER_SEEN_S, "told_at": told_at}).mappings()
    return [ServedQueue(**row) for row in rows]


def known_queues(connection: Connection) -> list[str]:
    """The queues of which the broker may hold messages, served or not."""
    return list(connection.execute(_KNOWN).scalars())


def claimants(connection: Connection, queue: str) -> list[Claimant]:
    """The active studies with due jobs in `queue`."""
    return [Claimant(**row) for row in connection.execute(_CLAIMANTS, {"queue": queue}).mappings()]


def due_jobs(connection: Connection, queue: str, study: int, *, limit: int) -> list[DueJob]:
    """The first due jobs of a study in plan order."""
    values = {"queue": queue, "study": study, "limit": limit}
    return [DueJob(**row) for row in connection.execute(_DUE_JOBS, values).mappings()]


def mark_queued(connection: Connection, job_ids: Sequence[int], *, lease_s: float) -> set[int]:
    """Mark those of `job_ids` queued that are still pending; which they were."""
    return set(connection.execute(_QUEUE, {"ids": list(job_ids), "lease_s": lease_s}).scalars())
