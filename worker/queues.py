"""What a worker listens to, looked up once a second and told with its heartbeat.

An API worker listens to the queues of active studies whose provider it serves; a GPU host to those of one model at a
time. A restarted worker finds its queues again by itself; nothing depends on a broadcast that could be lost.
"""

import json
import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from celery import bootsteps
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from contract.broker import IDLE_QUEUE
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
        (worker, started_at, seen_at, slots, queues, version, pace, endpoint, models, resting, notes,
         wants)
    VALUES (:worker, now(), now(), :slots, CAST(:queues AS jsonb), :version, CAST(:pace AS jsonb), :endpoint,
            CAST(:models AS jsonb), CAST(:resting AS jsonb), CAST(:notes AS jsonb), CAST(:wants AS jsonb))
    ON CONFLICT (worker) DO UPDATE SET seen_at = now(), slots = excluded.slots, queues = excluded.queues,
        pace = excluded.pace, models = excluded.models, resting = excluded.resting, notes = excluded.notes,
        wants = excluded.wants
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

    def serves(self, queue: str) -> bool:
        """Whether jobs of `queue` may be taken at this moment; asked by every thread."""
        ...


class AnyQueue:
    """Takes from all of them."""

    station = Station()

    def choose(self, queues: list[str]) -> list[str]:
        """All of them."""
        return queues

    def serves(self, queue: str) -> bool:  # noqa: ARG002
        """Any."""
        return True


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
        pooled = {row.queue: _pools(row.pools) for row in served if None not in row.pools}
        self.access.rest_where_paused(pooled)
        resting = self.access.rests.now()
        queues = self.chooser.choose([row.queue for row in served if row.queue not in resting])
        with self.engine.begin() as connection:
            wants = self.access.wants.now([queue for queue in queues if queue in pooled])
            connection.execute(_HEARTBEAT, self._beat(queues, resting) | {"wants": json.dumps(wants)})
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
    looking = threading.Lock()  # a look that hangs outlives its consumer, and must not run beside that of the next one

    class QueueWatch(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, parent: Any, **options: Any) -> None:  # noqa: ANN401 - Celery's own untyped interface
            super().__init__(parent, **options)
            self._stopped = threading.Event()

        def start(self, parent: Any) -> None:  # noqa: ANN401
            self._stopped = threading.Event()
            threading.Thread(target=_watch, args=(registry, parent, self._stopped, looking), daemon=True).start()

        def stop(self, parent: Any) -> None:  # noqa: ANN401, ARG002
            self._stopped.set()

    return QueueWatch


def _watch(registry: Registry, consumer: Any, stopped: threading.Event, looking: threading.Lock) -> None:  # noqa: ANN401
    while not stopped.is_set():
        try:
            with looking:
                wanted = set(registry.look())
            if not stopped.is_set():
                _serve(consumer, wanted, registry.slots_now)
        except SQLAlchemyError as error:
            log.warning("Postgres does not answer; the queues stay as they are: %s", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - without this thread a worker is taken for dead
            log.warning("the queues could not be looked at: %s", type(error).__name__)
        stopped.wait(LOOK_EVERY_S)


def _serve(consumer: Any, wanted: set[str], slots: int) -> None:  # noqa: ANN401
    """Let the consumer take from these queues, so many bundles at once.

    What it takes from now is asked of it and not remembered here: after the broker was away it goes on with the queues
    that it had. Its own thread makes the change, because its broker channel belongs to that thread.
    """
    # With prefetching disabled this is how many messages Celery has in hand at most, whatever connection they came by.
    consumer.controller.max_concurrency = slots
    served = set(consumer.app.amqp.queues.consume_from) - {IDLE_QUEUE}
    for queue in sorted(served - wanted):
        consumer.call_soon(consumer.cancel_task_queue, queue)
    for queue in sorted(wanted - served):
        consumer.call_soon(consumer.add_task_queue, queue)
