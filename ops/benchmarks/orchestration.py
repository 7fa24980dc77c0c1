"""Row `orchestration`: jobs a second of one worker process when the model costs nothing, every result committed.

Measured over the middle 80 % of the jobs, by the database's time of each result. Baseline: a bare Celery worker
process, threads, as many slots, the same broker settings, that runs no-op tasks of one message each.
"""

import json
from typing import Any

from sqlalchemy import text

from ops.benchmarks.bare_celery import no_op, publish_one_each
from ops.benchmarks.figures import Goal, Line, Measurement, middle_rate
from ops.benchmarks.options import Options
from ops.benchmarks.stand import Stand, await_that, fresh_stand
from ops.benchmarks.synthetic import ORDERS, Shape
from ops.benchmarks.working import work_off

SLOTS = 8
GOAL = Goal(bound=2)

_RESULTS = text("SELECT extract(epoch FROM finished_at)::float AS at, state FROM job")


def measure(options: Options) -> Measurement:
    """Both rates, one after the other on the same engines."""
    shape = Shape(items=options.orchestrated_jobs // ORDERS)
    with fresh_stand() as stand:
        moments = _run_nothing(stand, shape.jobs)
        stand.clear()
        work_off(stand, shape, slots=SLOTS)
        with stand.database.connect() as connection:
            results = connection.execute(_RESULTS).all()
    finished = [result.at for result in results]
    line = Line(
        what="no-latency jobs, results committed",
        unit="jobs/s",
        measured=middle_rate(finished),
        baseline=middle_rate(moments),
        against="no-op tasks of a bare Celery worker",
        goal=GOAL,
    )
    raw: dict[str, Any] = {
        "jobs": shape.jobs,
        "slots": SLOTS,
        "seconds_first_to_last": max(finished) - min(finished),
        "baseline_seconds_first_to_last": max(moments) - min(moments),
        "answered": sum(result.state == "answered" for result in results),
    }
    return Measurement(lines=(line,), raw=raw)


def _run_nothing(stand: Stand, tasks: int) -> list[float]:
    """When each no-op task ran; all messages are in the queue before the worker starts."""
    with stand.app() as app:
        publish_one_each(no_op(app), tasks)
    out = stand.folder / "moments.json"
    worker = stand.spawn("bare", "ops.benchmarks.bare_celery", str(tasks), str(SLOTS), str(out))
    await_that(out.exists, while_run=(worker,))
    worker.stop()
    moments: list[float] = json.loads(out.read_text(encoding="utf-8"))
    return moments
