"""Who was heard of: whether somebody dispatches and what keeps them from it, and which programs of a machine live."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from contract.database import postgres_errors
from producer.window import WORKER_SEEN_S

_DISPATCHERS = text("""
    SELECT leads, fault, extract(epoch FROM now() - seen_at)::float AS age_s FROM dispatcher_heartbeat
    ORDER BY seen_at DESC
""")

# A worker's name ends with its machine and process id; a dispatcher's has only its machine before two numbers.
_OF_MACHINE = text(r"""
    SELECT worker AS name, extract(epoch FROM now() - seen_at)::float AS age_s FROM worker_heartbeat
    WHERE right(regexp_replace(worker, '\.[0-9]+$', ''), length(:machine) + 1) = '.' || :machine
          AND seen_at > now() - make_interval(secs => :seen)
    UNION ALL
    SELECT 'dispatcher.' || dispatcher, extract(epoch FROM now() - seen_at)::float FROM dispatcher_heartbeat
    WHERE regexp_replace(dispatcher, '\.[0-9]+\.[0-9a-f]+$', '') = :machine
          AND seen_at > now() - make_interval(secs => :seen)
    ORDER BY name
""")


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A worker or dispatcher, and how many seconds ago it was heard of."""

    name: str
    age_s: float


def heard_of(engine: Engine, machine: str) -> list[Heard]:
    """The workers and dispatchers of `machine` that were heard of lately."""
    with postgres_errors(engine), engine.connect() as connection:
        rows = connection.execute(_OF_MACHINE, {"machine": machine, "seen": WORKER_SEEN_S}).all()
    return [Heard(name=row.name, age_s=row.age_s) for row in rows]


def why_nobody_dispatches(connection: Connection) -> str | None:
    """Why no job is being queued at all; None if a dispatcher leads, or if one is just about to."""
    seen = connection.execute(_DISPATCHERS).all()
    fresh = [each for each in seen if each.age_s <= WORKER_SEEN_S]
    if any(each.leads and each.fault is None for each in fresh):
        return None
    if fresh:
        return next((each.fault for each in fresh if each.fault is not None), None)
    if seen:
        return f"no dispatcher is at work; the last one was heard of {seen[0].age_s:.0f} s ago"
    return "no dispatcher is at work"
