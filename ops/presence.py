"""Who was heard of: whether somebody dispatches and what keeps them from it, and which programs of a machine live."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from contract.database import postgres_errors
from producer.window import WORKER_SEEN_S

_DISPATCHERS = text("""
    SELECT leads, fault, extract(epoch FROM now() - seen_at)::float AS age_s FROM dispatcher_heartbeat
    ORDER BY seen_at DESC
""")

# A worker is called NAME.MACHINE.TOKEN, a dispatcher MACHINE.PROCESS.TOKEN; neither of the last ones has a dot.
_OF_MACHINE = text(r"""
    SELECT name, age_s FROM (
        SELECT worker AS name, regexp_replace(worker, '\.[^.]+$', '') AS stem,
               extract(epoch FROM now() - seen_at)::float AS age_s FROM worker_heartbeat
        UNION ALL
        SELECT 'dispatcher.' || dispatcher, 'dispatcher.' || regexp_replace(dispatcher, '\.[^.]+\.[^.]+$', ''),
               extract(epoch FROM now() - seen_at)::float FROM dispatcher_heartbeat
    ) AS program
    WHERE age_s <= :seen
          AND (stem = :name || '.' || :machine
               OR (CAST(:name AS text) IS NULL AND right(stem, length(:machine) + 1) = '.' || :machine))
    ORDER BY name
""")


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A worker or dispatcher, and how many seconds ago it was heard of."""

    name: str
    age_s: float


def heard_of(engine: Engine, machine: str, name: str | None = None) -> list[Heard]:
    """The programs of `machine` that were heard of lately: all of them, or only workers of this name.

    Dispatchers go by the name "dispatcher".
    """
    scope = {"machine": machine, "name": name, "seen": WORKER_SEEN_S}
    with postgres_errors(engine), engine.connect() as connection:
        rows = connection.execute(_OF_MACHINE, scope).all()
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
