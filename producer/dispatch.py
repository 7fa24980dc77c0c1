"""The dispatcher: one leader keeps a window of queued jobs in every queue that a worker serves.

Everything it does may be done twice or be lost: a message is a hint, Postgres is the queue of record.
"""

import logging
import threading
import uuid

from celery import Celery
from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from contract.broker import EVALUATE, MARKER_KEY
from producer.window import Bundle, cut_bundles, queue_next, recover, rooms, unqueue

BUSY_PAUSE_S = 0.2
IDLE_PAUSE_S = 1.0
STANDBY_PAUSE_S = 5.0
JOBS_PER_SLOT = 64
QUEUED_LEASE_S = 300.0
_LEADER_LOCK = 7_401_002

log = logging.getLogger(__name__)


class Dispatcher:
    """Feeds the queues while it leads; a second one stands by and takes over."""

    def __init__(self, engine: Engine, app: Celery, broker: Redis) -> None:
        self._engine = engine
        self._app = app
        self._broker = broker
        self._marker = uuid.uuid4().hex

    def run(self, stopping: threading.Event) -> None:
        """Lead or stand by until told to stop; a service that is away is waited for."""
        while not stopping.is_set():
            try:
                self._stand_by_and_lead(stopping)
            except DBAPIError as error:
                log.warning("Postgres does not answer (%s); trying again", type(error.orig).__name__)
            except (RedisError, KombuError) as error:
                log.warning("the broker does not answer (%s); trying again", type(error).__name__)
            stopping.wait(IDLE_PAUSE_S)

    def _stand_by_and_lead(self, stopping: threading.Event) -> None:
        # The lock lives as long as this connection, which therefore never goes back to the pool: a leader that dies or
        # fails frees it.
        with self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()
            while not stopping.is_set():
                if _try_to_lead(connection):
                    self._lead(connection, stopping)
                stopping.wait(STANDBY_PAUSE_S)

    def _lead(self, lock: Connection, stopping: threading.Event) -> None:
        log.info("leading")
        while not stopping.is_set():
            lock.execute(text("SELECT 1"))
            stopping.wait(BUSY_PAUSE_S if self.tick() else IDLE_PAUSE_S)
        lock.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LEADER_LOCK})

    def tick(self) -> int:
        """One round: recover, notice lost messages, fill the windows. Returns how many jobs were queued."""
        with self._engine.begin() as connection:
            recovered = recover(connection)
            if self._messages_may_be_gone():
                recovered += unqueue(connection)
            space = rooms(connection, per_slot=JOBS_PER_SLOT)
        if recovered:
            log.info("%d jobs went back to pending", recovered)
        return sum(self._fill(queue, room) for queue, room in space.items())

    def _fill(self, queue: str, room: int) -> int:
        with self._engine.begin() as connection:
            jobs = queue_next(connection, queue, room=room, lease_s=QUEUED_LEASE_S)
        try:
            self._publish(queue, cut_bundles(jobs))
        except (RedisError, KombuError):
            with self._engine.begin() as connection:
                unqueue(connection, [job.id for job in jobs])
            raise
        return len(jobs)

    def _publish(self, queue: str, bundles: list[Bundle]) -> None:
        with self._app.producer_pool.acquire(block=True) as producer, producer.batch():  # type: ignore[attr-defined]  # newer than its stubs
            for bundle in bundles:
                shown = {"study": bundle.study, "model": bundle.model, "dataset": bundle.dataset}
                self._app.send_task(
                    EVALUATE,
                    kwargs={"job_ids": list(bundle.job_ids)},
                    queue=queue,
                    producer=producer,
                    argsrepr="()",
                    kwargsrepr=str({**shown, "jobs": len(bundle.job_ids)}),
                )

    def _messages_may_be_gone(self) -> bool:
        """Whether the marker that this leader left is missing: the broker was emptied or replaced, or another led.

        A leader that just began finds no marker of its own. It cannot know what the last one still published, and
        publishing again is harmless.
        """
        if self._broker.get(MARKER_KEY) == self._marker:
            return False
        self._broker.set(MARKER_KEY, self._marker)
        return True


def _try_to_lead(connection: Connection) -> bool:
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LEADER_LOCK}).scalar_one())
