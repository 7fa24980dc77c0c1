"""The dispatcher: one leader keeps a window of queued jobs in every queue that a worker serves.

Everything it does may be done twice or be lost: a message is a hint, Postgres is the queue of record.
"""

import logging
import random
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from celery import Celery
from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from contract.broker import EVALUATE, MARKER_KEY, list_key
from producer.bundles import Bundle, Claimant, cut_bundles, share
from producer.leadership import Presence, candidacy, resign, still_leads, try_to_lead
from producer.window import (
    ServedQueue,
    claimants,
    due_jobs,
    known_queues,
    mark_queued,
    recover,
    served_queues,
    settle_children,
    unqueue,
    unqueue_old,
    wake,
)

BUSY_PAUSE_S = 0.1
IDLE_PAUSE_S = 1.0
STANDBY_PAUSE_S = 2.0
FAULT_PAUSE_S = 3.0
"""After a fault a leader waits longer than a stand-by does: the other may reach what this one cannot."""
BEAT_EVERY_S = 2.0

QUEUED_LEASE_S = 300.0
LOST_AFTER_S = 30.0
"""Jobs that are queued for longer while their queue is empty in the broker have lost their message."""

MOST_MESSAGES = 20_000
"""Messages that may lie in the broker at all, some 25 MB, whatever became of leases."""
FEWEST_MESSAGES = 100
"""Messages that a served queue may have all the same, so that one that stands still and is full stops no other."""

SETTLE_EVERY_S = 30.0
"""How often it is looked for children that missed their parent's end."""
SETTLE_SHARE = 100
MOST_SETTLED = 10_000

LATE_S = 10.0
"""Nothing is recovered for so long after Postgres was away: workers come to store first what they hold in hand."""

log = logging.getLogger(__name__)


class Dispatcher:
    """Feeds the queues while it leads; a second one stands by and takes over."""

    def __init__(self, engine: Engine, app: Celery, broker: Redis) -> None:
        self._engine = engine
        self._app = app
        self._broker = broker
        self._marker = uuid.uuid4().hex
        self._presence = Presence(engine)
        self._draw = random.Random()
        self._recover_from = float("-inf")
        self._settle_from = float("-inf")
        self._told_at: datetime | None = None

    def run(self, stopping: threading.Event) -> None:
        """Lead or stand by until told to stop; a service that is away is waited for."""
        while not stopping.is_set():
            try:
                self._stand_by_and_lead(stopping)
            except SQLAlchemyError as error:
                log.warning("Postgres does not answer (%s); trying again", type(error).__name__)
                self._recover_from = time.monotonic() + LATE_S
            except (RedisError, KombuError) as error:
                self._tell(f"the broker does not answer ({type(error).__name__})")
            except Exception as error:  # a fault of ours must not end all dispatching
                log.exception("dispatching failed; trying again")
                self._tell(f"dispatching failed ({type(error).__name__}); the dispatcher's log tells more")
            stopping.wait(FAULT_PAUSE_S)
        with suppress(SQLAlchemyError):
            self._presence.leave()

    def _tell(self, fault: str) -> None:
        """Say in the log and in Postgres what keeps this dispatcher from its work."""
        log.warning("%s; trying again", fault)
        with suppress(SQLAlchemyError):
            self._presence.beat(leads=False, fault=fault)

    def _stand_by_and_lead(self, stopping: threading.Event) -> None:
        with candidacy(self._engine) as connection:
            while not stopping.is_set():
                if try_to_lead(connection):
                    self._lead(connection, stopping)
                else:
                    self._presence.beat(leads=False)
                stopping.wait(STANDBY_PAUSE_S)

    def _lead(self, lock: Connection, stopping: threading.Event) -> None:
        log.info("leading")
        last_beat = float("-inf")
        while not stopping.is_set():
            still_leads(lock)
            queued = self.tick()
            if time.monotonic() - last_beat > BEAT_EVERY_S:
                self._presence.beat(leads=True)
                last_beat = time.monotonic()
            stopping.wait(BUSY_PAUSE_S if queued else IDLE_PAUSE_S)
        resign(lock)

    def tick(self) -> int:
        """One round: recover, notice lost messages, fill the windows. Returns how many jobs were queued."""
        with self._engine.begin() as connection:
            recovered = recover(connection) if time.monotonic() >= self._recover_from else 0
            wake(connection)
            self._settle(connection)
            queues = served_queues(connection, self._told_at)
            known = known_queues(connection)
        self._told_at = max((queue.told_at for queue in queues), default=self._told_at)
        lengths = self._lengths(known)
        recovered += self._take_back_lost([queue.queue for queue in queues if not lengths.get(queue.queue)])
        if recovered:
            log.info("%d jobs went back to pending", recovered)
        part = (MOST_MESSAGES - sum(lengths.values())) // max(1, len(queues))
        return sum(
            self._fill(queue, messages=max(0, part, FEWEST_MESSAGES - lengths.get(queue.queue, 0))) for queue in queues
        )

    def _settle(self, connection: Connection) -> None:
        """Now and then, and seldom where many jobs wait, look for children that missed their parent's end."""
        began = time.monotonic()
        if began < self._settle_from:
            return
        settled = settle_children(connection, most=MOST_SETTLED)
        ended = time.monotonic()
        pause = max(SETTLE_EVERY_S, SETTLE_SHARE * (ended - began))
        self._settle_from = ended if settled == MOST_SETTLED else ended + pause

    def _take_back_lost(self, empty: Sequence[str]) -> int:
        """Put back what is queued without a message: all of it if the broker was emptied, else what waits too long."""
        with self._engine.begin() as connection:
            if self._messages_may_be_gone():
                return unqueue(connection)
            return unqueue_old(connection, empty, left_s=QUEUED_LEASE_S - LOST_AFTER_S)

    def _fill(self, queue: ServedQueue, *, messages: int) -> int:
        """Queue and publish what the window of one queue has room for; returns how many jobs."""
        with self._engine.begin() as connection:
            most = messages if queue.wanted is None else min(messages, queue.wanted)
            bundles = self._choose(connection, queue)[:most]
            wanted = [job_id for bundle in bundles for job_id in bundle.job_ids]
            queued = mark_queued(connection, wanted, lease_s=QUEUED_LEASE_S) if wanted else set()
        try:
            self._publish(queue.queue, [bundle for bundle in bundles if queued.intersection(bundle.job_ids)])
        except (RedisError, KombuError):
            with self._engine.begin() as connection:
                unqueue(connection, sorted(queued))
            raise
        return len(queued)

    def _choose(self, connection: Connection, queue: ServedQueue) -> list[Bundle]:
        """The bundles to send now, studies by their weights, the jobs of each in plan order."""
        studies = claimants(connection, queue.queue)
        largest = max((study.bundle_size(queue.pace_s) for study in studies), default=0)
        shares = share(queue.room(largest), studies, queue.pace_s, self._draw)
        return [
            bundle
            for study in studies
            if shares[study.id]
            for bundle in self._bundles_of(connection, queue, study, shares[study.id])
        ]

    def _bundles_of(self, connection: Connection, queue: ServedQueue, study: Claimant, jobs: int) -> list[Bundle]:
        """Bundles of the first due jobs of a study, no more jobs than `jobs` unless the first bundle alone has."""
        size = study.bundle_size(queue.pace_s)
        limit = jobs + size
        due = due_jobs(connection, queue.queue, study.id, limit=limit)
        bundles = cut_bundles(due, study.name, size=size, slots=queue.slots, more=len(due) == limit)
        return _first(bundles, jobs)

    def _lengths(self, queues: Sequence[str]) -> dict[str, int]:
        """How many messages lie in each queue. A safety net for the broker's memory and a sign of lost messages; never
        a measure of what there is to do."""
        with self._broker.pipeline(transaction=False) as pipeline:
            for queue in queues:
                pipeline.llen(list_key(queue))
            return dict(zip(queues, pipeline.execute(), strict=True))

    def _publish(self, queue: str, bundles: list[Bundle]) -> None:
        if not bundles:
            return
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


def _first(bundles: list[Bundle], jobs: int) -> list[Bundle]:
    """The first bundles with no more than `jobs` jobs in all, and one at least."""
    chosen: list[Bundle] = []
    for bundle in bundles:
        if chosen and len(bundle.job_ids) > jobs:
            break
        chosen.append(bundle)
        jobs -= len(bundle.job_ids)
    return chosen
