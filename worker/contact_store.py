"""What a worker keeps of first contacts in Postgres: canaries, pins, stops, and what a pool has used of its day."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, text

from contract.conditions import Rules
from worker.pools import Used
from worker.records import Canary

MET_FOR_S = 86_400.0
"""A passed canary is good for so long, whoever made it."""

TRIED_AGAIN_AFTER_S = 600.0
TRIED_AGAIN_AT_LEAST_EVERY_S = 3600.0
"""A stop is looked at again after ten minutes; the longer it stands, the more seldom, but once an hour at least."""

CLOCKS_DIFFER_S = 120.0
"""What a provider says of its day in the first two minutes of ours may be about the day before."""

_PASSED = text("""
    SELECT passed FROM canary WHERE contact = :contact AND started_at > now() - make_interval(secs => :within_s)
    ORDER BY started_at DESC LIMIT 1
""")
_KEEP = text("""
    INSERT INTO canary (id, contact, started_at, passed, pool, completion, tokens_in, tokens_out, error_kind,
                        error_message, deployment, worker)
    VALUES (:id, :contact, :started_at, :passed, :pool, :completion, :tokens_in, :tokens_out, :error_kind,
            :error_message, :deployment, :worker) ON CONFLICT (id) DO NOTHING
""")
# Two first answers at the same moment: one is the first, and the other must see it.
_LOCK_PINS = text("SELECT pg_advisory_xact_lock(hashtextextended(:queue, :study))")
_PIN = text("""
    INSERT INTO pin (study, queue, digest, accepted_at) SELECT :study, :queue, :digest, now()
    WHERE NOT EXISTS (SELECT FROM pin WHERE study = :study AND queue = :queue)
""")
_PINNED = text("SELECT digest FROM pin WHERE study = :study AND queue = :queue ORDER BY accepted_at, digest")
_STOP = text("""
    INSERT INTO stop (study, queue, endpoint, reason, digest, since)
    VALUES (:study, :queue, :endpoint, :reason, :digest, now()) ON CONFLICT (study, queue, endpoint) DO NOTHING
""")
# Whoever is first to say that it tries keeps the others from it.
_TO_TRY = text("""
    UPDATE stop SET tried_at = now() FROM (
        SELECT stop.id, condition.rules, condition.model FROM stop JOIN study ON study.id = stop.study
        JOIN LATERAL (
            SELECT rules, model FROM condition
            WHERE condition.study = stop.study AND condition.queue = stop.queue AND condition.state = 'active'
              AND condition.provider = ANY(:providers) ORDER BY condition.id LIMIT 1
        ) AS condition ON true
        WHERE study.state = 'active' AND stop.endpoint = :endpoint AND stop.tried_at < now()
            - greatest(make_interval(secs => :after_s), least(now() - since, make_interval(secs => :at_least_every_s)))
        FOR UPDATE OF stop SKIP LOCKED
    ) AS old WHERE stop.id = old.id RETURNING stop.id, stop.study, stop.queue, old.rules
""")
_CLEAR = text("DELETE FROM stop WHERE id = :id")
_ASKS_BY = text("""
    SELECT count(*) > 0 AND bool_and(rules @> CAST(:rules AS jsonb)) FROM condition
    WHERE study = :study AND queue = :queue AND state = 'active'
""")
_CLEAR_QUEUE = text("DELETE FROM stop WHERE study = :study AND queue = :queue AND endpoint = ''")
# Calls in flight count, whichever pool of their model they go through: a day must not be granted twice.
_USED = text("""
    SELECT (SELECT count(*) FROM attempt WHERE pool = :pool AND started_at >= :since)
         + (SELECT count(*) FROM canary WHERE pool = :pool AND started_at >= :since)
         + (SELECT count(*) FROM job JOIN condition ON condition.id = job.condition
            WHERE job.state = 'running' AND job.calling AND condition.rules -> 'model' -> 'pools' ? :pool) AS requests,
           EXISTS (SELECT FROM attempt
                   WHERE pool = :pool AND error_kind = 'exhausted'
                     AND started_at >= :since + make_interval(secs => :clocks_differ_s)) AS exhausted
""")


@dataclass(frozen=True, kw_only=True)
class StoppedQueue:
    """A stop that may have lost its reason, with the rules by which its queue asks."""

    id: int
    study: int
    queue: str
    rules: Rules


class ContactStore:
    """First contacts, pins and stops in Postgres, as one worker process sees them."""

    def __init__(self, engine: Engine, *, worker: str) -> None:
        self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        self._worker = worker

    def passed(self, contact: str) -> bool:
        """Whether somebody met this lately, and it went well."""
        with self._engine.begin() as connection:
            values = {"contact": contact, "within_s": MET_FOR_S}
            return bool(connection.execute(_PASSED, values).scalar_one_or_none())

    def keep(self, canary: Canary) -> None:
        """Keep a first-contact call."""
        with self._engine.begin() as connection:
            connection.execute(_KEEP, asdict(canary) | {"worker": self._worker})

    def pin(self, study: int, queue: str, digest: str) -> frozenset[str]:
        """The digests that may answer; `digest` becomes the first of them if there is none."""
        values = {"study": study, "queue": queue, "digest": digest}
        with self._engine.begin() as connection:
            connection.execute(_LOCK_PINS, values)
            connection.execute(_PIN, values)
            return frozenset(connection.execute(_PINNED, values).scalars())

    def pins(self, study: int, queue: str) -> frozenset[str]:
        """The digests that may answer; empty as long as nothing has."""
        with self._engine.begin() as connection:
            return frozenset(connection.execute(_PINNED, {"study": study, "queue": queue}).scalars())

    def stop(self, study: int, queue: str, *, endpoint: str, reason: str, digest: str | None = None) -> None:
        """Let nobody ask, or only workers of `endpoint` not if it is named, until that is cleared."""
        values = {"study": study, "queue": queue, "endpoint": endpoint, "reason": reason, "digest": digest}
        with self._engine.begin() as connection:
            connection.execute(_STOP, values)

    def to_try_again(
        self, providers: Sequence[str], endpoint: str, *, after_s: float = TRIED_AGAIN_AFTER_S
    ) -> list[StoppedQueue]:
        """The stops that nobody looked at for a while; from now on it is this process that looks."""
        values = {
            "providers": list(providers),
            "endpoint": endpoint,
            "after_s": after_s,
            "at_least_every_s": max(after_s, TRIED_AGAIN_AT_LEAST_EVERY_S),
        }
        with self._engine.begin() as connection:
            rows = connection.execute(_TO_TRY, values).all()
        return [
            StoppedQueue(id=row.id, study=row.study, queue=row.queue, rules=Rules.from_stored(row.rules))
            for row in rows
        ]

    def clear(self, stop: StoppedQueue) -> None:
        """The fault has gone."""
        with self._engine.begin() as connection:
            connection.execute(_CLEAR, {"id": stop.id})

    def asks_by(self, study: int, queue: str, rules: dict[str, Any]) -> bool:
        """Whether the study's jobs of `queue` are asked of this model in this form, not as they were before an edit."""
        with self._engine.begin() as connection:
            values = {"study": study, "queue": queue, "rules": json.dumps(rules)}
            return bool(connection.execute(_ASKS_BY, values).scalar_one())

    def clear_queue(self, study: int, queue: str) -> int:
        """Clear what stopped a queue of a study everywhere; how many stops that were."""
        with self._engine.begin() as connection:
            return connection.execute(_CLEAR_QUEUE, {"study": study, "queue": queue}).rowcount

    def used(self, pool: str, since: datetime) -> Used:
        """What calls through `pool` came to since its day began."""
        values = {"pool": pool, "since": since, "clocks_differ_s": CLOCKS_DIFFER_S}
        with self._engine.begin() as connection:
            row = connection.execute(_USED, values).one()
        return Used(requests=row.requests, exhausted=row.exhausted)
