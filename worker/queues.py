"""What a worker listens to: the queues of active studies whose provider it serves, looked up once a second.

The same look-up writes the worker's heartbeat. A restarted worker finds its queues again by itself; nothing depends on
a broadcast that could be lost.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery import bootsteps
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from worker.pace import Pace

LOOK_EVERY_S = 1.0

_SERVED = text("""
    SELECT DISTINCT condition.queue FROM condition JOIN study ON study.id = condition.study
    WHERE study.state = 'active' AND condition.state = 'active' AND condition.provider = ANY(:providers)
    ORDER BY condition.queue
""")
_HEARTBEAT = text("""
    INSERT INTO worker_heartbeat (worker, started_at, seen_at, slots, queues, version, pace)
    VALUES (:worker, now(), now(), :slots, to_jsonb(CAST(:queues AS text[])), :version, CAST(:pace AS jsonb))
    ON CONFLICT (worker) DO UPDATE SET seen_at = now(), queues = excluded.queues, pace = excluded.pace
""")
_GONE = text("DELETE FROM worker_heartbeat WHERE worker = :worker")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The worker's entry in Postgres and the queues that it should serve."""

    engine: Engine
    worker: str
    providers: tuple[str, ...]
    slots: int
    version: str
    pace: Pace

    def look(self) -> list[str]:
        """Write the heartbeat and return the queues to serve now."""
        with self.engine.begin() as connection:
            queues = list(connection.execute(_SERVED, {"providers": list(self.providers)}).scalars())
            beat = {"worker": self.worker, "slots": self.slots, "queues": queues, "version": self.version}
            connection.execute(_HEARTBEAT, beat | {"pace": json.dumps(self.pace.now())})
        return queues

    def leave(self) -> None:
        """Take the worker's entry away: it left in good order."""
        with self.engine.begin() as connection:
            connection.execute(_GONE, {"worker": self.worker})


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
    while not stopped.wait(LOOK_EVERY_S):
        try:
            wanted = set(registry.look())
        except SQLAlchemyError as error:
            log.warning("Postgres does not answer; still serving %d queues: %s", len(served), type(error).__name__)
            continue
        _change(consumer.call_soon, consumer.add_task_queue, wanted - served)
        _change(consumer.call_soon, consumer.cancel_task_queue, served - wanted)
        served = wanted


def _change(call_soon: Callable[..., object], change: Callable[[str], object], queues: set[str]) -> None:
    """Let the consumer's own thread do it: its broker channel belongs to that thread."""
    for queue in sorted(queues):
        call_soon(change, queue)
