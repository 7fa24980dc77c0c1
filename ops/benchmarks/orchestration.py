"""Row `orchestration`: jobs a second of one worker process when the model costs nothing, every result committed.

Measured over the middle 80 % of the jobs, by the database's time of each result. Baseline: a bare Celery worker
process with the same broker settings that runs no-op tasks of one message each, with as many threads as suits it best.
Ours has the slots and the bundles that suit a model without latency; what the default bundles make of it stands beside.
"""

import json
import shutil

from sqlalchemy import text

from contract.errors import StackError
from ops.benchmarks.bare_celery import no_op, publish_one_each
from ops.benchmarks.figures import Goal, Line, Measurement, middle_rate
from ops.benchmarks.options import Options
from ops.benchmarks.stand import Stand, await_that, fresh_stand
from ops.benchmarks.synthetic import ORDERS, Shape
from ops.benchmarks.working import work_off

SLOTS = 32
BUNDLE, DEFAULT_BUNDLE = 64, 16
BARE_SLOTS = (4, 8)
GOAL = Goal(bound=2)

_RESULTS = text("SELECT extract(epoch FROM finished_at)::float AS at, state FROM job")


def measure(options: Options) -> Measurement:
    """The rates, one after the other on the same engines."""
    items = options.orchestrated_jobs // ORDERS
    with fresh_stand() as stand:
        bare = {slots: _bare_rate(stand, items * ORDERS // len(BARE_SLOTS), slots) for slots in BARE_SLOTS}
        ours = {bundle: _our_rate(stand, Shape(items=items, bundle=bundle)) for bundle in (BUNDLE, DEFAULT_BUNDLE)}
    lines = [
        Line(
            what=f"no-latency jobs, results committed, bundles of {bundle}",
            unit="jobs/s",
            measured=rate,
            baseline=max(bare.values()),
            against="no-op tasks of a bare Celery worker",
            goal=GOAL if bundle == BUNDLE else None,
        )
        for bundle, rate in ours.items()
    ]
    raw = {
        "jobs": items * ORDERS,
        "slots": SLOTS,
        "jobs_per_s_by_bundle": ours,
        "baseline_jobs_per_s_by_slots": bare,
    }
    return Measurement(lines=tuple(lines), raw=raw)


def _our_rate(stand: Stand, shape: Shape) -> float:
    """Jobs a second of one worker process and a dispatcher; StackError unless every job was answered."""
    stand.clear()
    shutil.rmtree(stand.folder / "study", ignore_errors=True)
    work_off(stand, shape, slots=SLOTS)
    with stand.database.connect() as connection:
        results = connection.execute(_RESULTS).all()
    if any(result.state != "answered" for result in results):
        raise StackError("a model that answers everything left jobs without an answer")
    return middle_rate([result.at for result in results])


def _bare_rate(stand: Stand, tasks: int, slots: int) -> float:
    """No-op tasks a second; all messages are in the queue before the worker starts."""
    with stand.app() as app:
        publish_one_each(no_op(app), tasks)
    out = stand.folder / f"moments-{slots}.json"
    worker = stand.spawn("bare", "ops.benchmarks.bare_celery", str(tasks), str(slots), str(out))
    await_that(out.exists, while_run=(worker,))
    worker.stop()
    moments: list[float] = json.loads(out.read_text(encoding="utf-8"))
    return middle_rate(moments)
