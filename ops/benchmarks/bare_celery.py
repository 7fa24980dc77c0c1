"""The baseline: Celery as it is mostly used, one message a job, with the broker settings of ours.

`python -m ops.benchmarks.bare_celery TASKS SLOTS OUT` is a worker whose task does nothing but note when it ran. When
all have run it writes the moments to OUT, as JSON, and waits to be stopped.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from celery import Celery, Task

from contract.broker import create_celery
from contract.settings import load_settings

TASK = "benchmark.nothing"
QUEUE = "benchmark"


def no_op(app: Celery) -> Task[Any, None]:
    """The task as its publisher knows it."""

    @app.task(name=TASK)
    def nothing(job_id: int) -> None: ...

    return nothing


def publish_one_each(task: Task[Any, None], jobs: int) -> float:
    """Publish one message for each of `jobs` job ids, in the plain way; returns how many seconds it took."""
    start = time.monotonic()
    for job_id in range(jobs):
        task.apply_async(kwargs={"job_id": job_id}, queue=QUEUE)
    return time.monotonic() - start


def serve(app: Celery, *, tasks: int, slots: int, out: Path) -> None:
    """Run the no-op tasks until stopped: a thread pool, no events, no chatter with other workers."""
    moments: list[float] = []
    noting = threading.Lock()

    @app.task(name=TASK)
    def nothing(job_id: int) -> None:  # noqa: ARG001 - what a task would be told
        with noting:
            moments.append(time.time())
            if len(moments) == tasks:
                draft = out.with_suffix(".new")
                draft.write_text(json.dumps(moments), encoding="utf-8")
                draft.replace(out)

    worker = app.Worker(
        hostname="bare@benchmark",
        pool="threads",
        concurrency=slots,
        queues=[QUEUE],
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
    )
    worker.start()


if __name__ == "__main__":
    serve(
        create_celery(load_settings().broker_url.get_secret_value()),
        tasks=int(sys.argv[1]),
        slots=int(sys.argv[2]),
        out=Path(sys.argv[3]),
    )
