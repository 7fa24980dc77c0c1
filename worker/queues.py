"""What a worker listens to, looked up once a second and told with its heartbeat.

An API worker listens to the queues of active studies whose provider it serves; a GPU host to those of one model at a
time. A restarted worker finds its queues again by itself; nothing depends on a broadcast that could be lost.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from celery import bootsteps
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from worker.access import Access
from worker.pace import Pace
from worker.rest import Rest

LOOK_EVERY_S = 1.0

# A queue that is stopped for all its studies is left alone: its messages would only be put back.
_SERVED = text("""
    SELECT condition.queue, jsonb_agg(DISTINCT rules -> 'model' -> 'pools') AS pools
    FROM condition JOIN study ON study.id = condition.study
    WHERE study.state = 'active' AND condition.state = 'active' AND condition.provider = ANY(:providers)
      AND NOT EXISTS (SELECT FROM stop WHERE stop.study = study.id AND stop.queue = condition.queue
                      AND stop.endpoint IN ('', :endpoint))
    GROUP BY condition.queue ORDER BY condition.queue
""")
_HEARTBEAT = text("""
    INSERT INTO worker_heartbeat
        (worker, started_at, seen_at, slots, queues, version, pace, endpoint, models, resting, notes)
    VALUES (:worker, now(), now(), :slots, CAST(:queues AS jsonb), :version, CAST(:pace AS jsonb), :endpoint,
            CAST(:models AS jsonb), CAST(:resting AS jsonb), CAST(:notes AS jsonb))
    ON CONFLICT (worker) DO UPDATE SET seen_at = now(), slots = excluded.slots, queues = excluded.queues,
        pace = excluded.pace, models = excluded.models, resting = excluded.resting, notes = excluded.notes
""")
_GONE = text("DELETE FROM worker_heartbeat WHERE worker = :worker")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Station:
    """What a GPU host tells of itself; empty for a worker that is none."""

    endpoint: str | None = None
    models: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    slots: int | None = None


class Chooser(Protocol):
    """Which of the queues that it could serve a worker takes from now."""

    @property
    def station(self) -> Station:
        """What the worker tells of its host."""
        ...

    def choose(self, queues: list[str]) -> list[str]:
        """Some of `queues`."""
        ...


class AnyQueue:
    """Takes from all of them."""

    station = Station()

    def choose(self, queues: list[str]) -> list[str]:
        """All of them."""
        return queues


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The worker's entry in Postgres and the queues that it should serve."""

    engine: Engine
    worker: str
    providers: tuple[str, ...]
    slots: int
    version: str
    pace: Pace
    access: Access
    chooser: Chooser

    def look(self) -> list[str]:
        """Write the heartbeat and return the queues to serve now."""
        with self.engine.connect() as connection:
            values = {"providers": list(self.providers), "endpoint": self.chooser.station.endpoint or ""}
            served = connection.execute(_SERVED, values).all()
        # A queue that some of its studies ask without a pool is never held up by one.
        self.access.rest_where_paused({row.queue: _pools(row.pools) for row in served if None not in row.pools})
        resting = self.access.rests.now()
        queues = self.chooser.choose([row.queue for row in served if row.queue not in resting])
        with self.engine.begin() as connection:
            connection.execute(_HEARTBEAT, self._beat(queues, resting))
        return queues

    @property
    def slots_now(self) -> int:
        """How many bundles at once: what was asked for, or what the host runs in parallel if that is less."""
        measured = self.chooser.station.slots
        return self.slots if measured is None else min(self.slots, measured)

    def leave(self) -> None:
        """Take the worker's entry away: it left in good order."""
        with self.engine.begin() as connection:
            connection.execute(_GONE, {"worker": self.worker})

    def _beat(self, queues: list[str], resting: dict[str, tuple[float, Rest]]) -> dict[str, Any]:
        now, station = datetime.now(UTC), self.chooser.station
        told = {
            queue: {
                "until": (now + timedelta(seconds=left_s)).isoformat(),
                "reason": rest.reason,
                "quota": rest.quota,
            }
            for queue, (left_s, rest) in resting.items()
        }
        return {
            "worker": self.worker,
            "slots": self.slots_now,
            "queues": json.dumps(queues),
            "version": self.version,
            "pace": json.dumps(self.pace.now()),
            "endpoint": station.endpoint,
            "models": None if station.models is None else json.dumps(station.models),
            "resting": json.dumps(told),
            "notes": json.dumps(station.notes),
        }


def _pools(lists: list[list[str]]) -> list[str]:
    return sorted({name for names in lists for name in names})


def watching(registry: Registry) -> type[bootsteps.StartStopStep]:
    """A Celery consumer step that keeps the consumer on the queues that `registry` names."""

    class QueueWatch(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, parent: Any, **options: Any) -> None:  # noqa: ANN401 - Celery's own untyped interface
            super().__init__(parent, **options)
            self._stopped = threading.Event()

        def start(self, parent: Any) -> None:  # noqa: ANN401
            self._stopped = threading.Event()
            threading.Thread(target=_watch, args=(registry, parent, self._stopped), daemon=True).start()

        def stop(self, parent: Any) -> None:  # noqa: ANN401, ARG002
            self._stopped.set()

    return QueueWatch


def _watch(registry: Registry, consumer: Any, stopped: threading.Event) -> None:  # noqa: ANN401
    served: set[str] = set()
    slots = registry.slots
    while not stopped.wait(LOOK_EVERY_S):
        try:
            wanted = set(registry.look())
        except SQLAlchemyError as error:
            log.warning("Postgres does not answer; still serving %d queues: %s", len(served), type(error).__name__)
            continue
        _change(consumer.call_soon, consumer.cancel_task_queue, served - wanted)
        _change(consumer.call_soon, consumer.add_task_queue, wanted - served)
        served = wanted
        slots = _set_slots(consumer, slots, registry.slots_now)


def _change(call_soon: Callable[..., object], change: Callable[[str], object], queues: set[str]) -> None:
    """Let the consumer's own thread do it: its broker channel belongs to that thread."""
    for queue in sorted(queues):
        call_soon(change, queue)


def _set_slots(consumer: Any, slots: int, wanted: int) -> int:  # noqa: ANN401
    """Take no more bundles at once than the host runs in parallel: the others would lie here instead of elsewhere.

    Messages are acknowledged late, one a slot, so the prefetch count is the number of bundles in hand.
    """
    if wanted < slots:
        consumer.call_soon(consumer.qos.decrement_eventually, slots - wanted)
    elif wanted > slots:
        consumer.call_soon(consumer.qos.increment_eventually, wanted - slots)
    return wanted
