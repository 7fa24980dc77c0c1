"""Enqueues one study as `bothways run` and the dispatcher do: `python -m ops.benchmarks.enqueue_once STUDY OUT`.

A process of its own, so that its peak of memory is that of this work. Writes to OUT, as JSON, how many seconds it took
to read the study, to commit its jobs and to publish the first window, and the bytes of memory before and at the peak.
"""

import json
import sys
import time
from pathlib import Path

from contract.errors import StackError
from ops.benchmarks.machine import peak_memory_bytes
from ops.benchmarks.stand import register_workers
from ops.cli.connect import connect
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study

SLOTS = 64


def main() -> None:
    """Do it with the engines that the environment names."""
    study, out = (Path(argument) for argument in sys.argv[1:])
    connected = connect()
    dispatcher = Dispatcher(connected.engine, connected.celery(), connected.broker())
    memory_before = peak_memory_bytes()
    start = time.monotonic()
    loaded = read_study(study)
    read = time.monotonic()
    enqueued = enqueue(connected.engine, loaded)
    committed = time.monotonic()
    register_workers(connected.engine, workers=1, slots=SLOTS)
    ready = time.monotonic()
    published = dispatcher.tick()
    end = time.monotonic()
    if not published:
        raise StackError("the dispatcher published nothing")
    figures = {
        "jobs": enqueued.new,
        "published_jobs": published,
        "read_s": read - start,
        "commit_s": committed - read,
        "publish_s": end - ready,
        "memory_before_bytes": memory_before,
        "memory_peak_bytes": peak_memory_bytes(),
    }
    out.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
