"""What tests of jobs and queues begin with: a planned study, a worker's heartbeat, the rows, the broker's messages."""

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from sqlalchemy import Engine, RowMapping, text

from contract.broker import create_celery, list_key
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study

QUEUE = "simulated.sim"


@contextmanager
def dispatching(engine: Engine, broker: Redis, publish_to: str) -> Iterator[Dispatcher]:
    """A dispatcher that publishes to this address."""
    with create_celery(publish_to) as app:
        yield Dispatcher(engine, app, broker)


@contextmanager
def at_work(dispatcher: Dispatcher) -> Iterator[None]:
    """Let a dispatcher run in a thread of its own."""
    stopping = threading.Event()
    thread = threading.Thread(target=dispatcher.run, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(timeout=20)


def plan(engine: Engine, folder: Path, **changes: Any) -> int:  # noqa: ANN401
    """Enqueue a study; returns its id."""
    return enqueue(engine, read_study(write_study(folder, **changes))).study


def rows(engine: Engine, statement: str, **values: Any) -> list[RowMapping]:  # noqa: ANN401
    """The rows of a query."""
    with engine.connect() as connection:
        return list(connection.execute(text(statement), values).mappings())


def change(engine: Engine, statement: str, **values: Any) -> None:  # noqa: ANN401
    """Run one statement."""
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def states(engine: Engine) -> Counter[str]:
    """How many jobs are in each state."""
    return Counter(row["state"] for row in rows(engine, "SELECT state FROM job"))


def beat(engine: Engine, *queues: str, worker: str = "w", slots: int = 1, ago_s: int = 0) -> None:
    """A worker's heartbeat."""
    change(
        engine,
        """INSERT INTO worker_heartbeat (worker, started_at, seen_at, slots, queues, version)
           VALUES (:worker, now(), now() - make_interval(secs => :ago), :slots,
                   to_jsonb(CAST(:queues AS text[])), '0')""",
        worker=worker,
        slots=slots,
        ago=ago_s,
        queues=list(queues or [QUEUE]),
    )


def raw_messages(broker: Redis, queue: str = QUEUE) -> list[dict[str, Any]]:
    """What lies in a queue of the broker, the first to be taken first."""
    return [json.loads(message) for message in reversed(broker.lrange(list_key(queue), 0, -1))]


def bundles(broker: Redis, queue: str = QUEUE) -> list[list[int]]:
    """The job ids of each message."""
    return [json.loads(base64.b64decode(message["body"]))[1]["job_ids"] for message in raw_messages(broker, queue)]


def await_that(it_is_so: Callable[[], bool], *, seconds: float = 20) -> None:
    """Wait, for twenty seconds at most if nothing else is said."""
    deadline = time.monotonic() + seconds
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
