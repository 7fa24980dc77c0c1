"""Row `worker-memory`: what a worker process and the dispatcher hold in memory, after 100,000 jobs and after a tenth.

The resident memory of the processes, looked at twice a second while a study on a model without latency is asked.
Baseline: the same when a tenth of the jobs was finished; it must not grow with their number.
"""

from collections.abc import Mapping

import psutil
from sqlalchemy import text

from ops.benchmarks.figures import Goal, Line, Measurement
from ops.benchmarks.options import Options
from ops.benchmarks.stand import Stand, await_that, fresh_stand
from ops.benchmarks.synthetic import ORDERS, Shape, write_study
from ops.local.engines import Child
from producer.enqueue import enqueue
from producer.study_file import read_study

SLOTS = 16
MB = 1e6
GOAL = Goal(bound=1.2, at_least=False)

_FINISHED = text("SELECT count(*) FROM job WHERE finished_at IS NOT NULL")


def measure(options: Options) -> Measurement:
    """The memory of both processes at a tenth of the jobs, and the most that they had until the end."""
    shape = Shape(items=options.remembered_jobs // ORDERS)
    looks: list[tuple[int, Mapping[str, int]]] = []
    with fresh_stand() as stand:
        enqueue(stand.database, read_study(write_study(stand.folder / "study", shape)))
        children = {
            "dispatcher": stand.spawn("dispatcher", "ops.cli", "dispatch"),
            "worker": stand.spawn("worker", "ops.cli", "worker", "--provider", "simulated", "--slots", str(SLOTS)),
        }

        def all_finished() -> bool:
            finished = _finished(stand)
            looks.append((finished, {name: resident_bytes(child) for name, child in children.items()}))
            return finished == shape.jobs

        await_that(all_finished, while_run=tuple(children.values()))
    early = next(memory for finished, memory in looks if finished >= shape.jobs / 10)
    most = {name: max(memory[name] for _, memory in looks) for name in children}
    lines = tuple(
        Line(
            what=f"most memory of the {name}, {shape.jobs:,} jobs",
            unit="MB",
            measured=most[name] / MB,
            baseline=early[name] / MB,
            against="at a tenth of the jobs",
            goal=GOAL,
        )
        for name in children
    )
    raw = {"jobs": shape.jobs, "slots": SLOTS, "answered": looks[-1][0], "looks": looks}
    return Measurement(lines=lines, raw=raw)


def resident_bytes(child: Child) -> int:
    """The resident memory of the process under the child's guard; 0 before it has begun and after it ended."""
    try:
        return sum(process.memory_info().rss for process in psutil.Process(child.guard.pid).children())
    except psutil.Error:
        return 0


def _finished(stand: Stand) -> int:
    with stand.database.connect() as connection:
        return int(connection.execute(_FINISHED).scalar_one())
