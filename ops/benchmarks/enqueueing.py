"""Row `enqueue`: jobs a second from a study file to committed jobs and a published first window, and the memory for it.

Baseline: the rate of one `apply_async` a job into the same Valkey. The study has its jobs from items, models and
repeats; the run at a tenth of the jobs has the same items and fewer repeats, so memory that grows with jobs shows.
"""

import json
from typing import Any

from ops.benchmarks.bare_celery import no_op, publish_one_each
from ops.benchmarks.figures import Goal, Line, Measurement
from ops.benchmarks.options import Options
from ops.benchmarks.stand import Stand, await_end, fresh_stand
from ops.benchmarks.synthetic import ORDERS, Shape, write_study

MODELS = 5
REPEATS = 10
RATE_GOAL = Goal(bound=25)
MEMORY_GOAL = Goal(bound=1.2, at_least=False)


def measure(options: Options) -> Measurement:
    """The rate against the baseline's, and the peak of memory against that at a tenth of the jobs."""
    whole = shape_for(options.jobs)
    with fresh_stand() as stand:
        with stand.app() as app:
            baseline_s = publish_one_each(no_op(app), options.messages)
        tenth = _enqueue(stand, "tenth", Shape(items=whole.items, models=MODELS))
        full = _enqueue(stand, "whole", whole)
        distinct = _enqueue(stand, "distinct", Shape(items=max(1, options.jobs // 10 // ORDERS)))
    raw = {
        "baseline_messages": options.messages,
        "baseline_s": baseline_s,
        "tenth_of_the_jobs": tenth,
        "all_jobs": full,
        "tenth_of_the_jobs_every_item_new": distinct,
    }
    return Measurement(lines=(_rate(full, options.messages / baseline_s), _memory(full, tenth)), raw=raw)


def _rate(full: dict[str, Any], baseline: float) -> Line:
    return Line(
        what="planned, committed, window published",
        unit="jobs/s",
        measured=full["jobs_per_s"],
        baseline=baseline,
        against="one message a job",
        goal=RATE_GOAL,
    )


def _memory(full: dict[str, Any], tenth: dict[str, Any]) -> Line:
    return Line(
        what="peak memory of the process",
        unit="MB",
        measured=full["memory_peak_bytes"] / 1e6,
        baseline=tenth["memory_peak_bytes"] / 1e6,
        against="at a tenth of the jobs",
        goal=MEMORY_GOAL,
    )


def shape_for(jobs: int) -> Shape:
    """A study of about so many jobs, at least one item's."""
    return Shape(items=max(1, jobs // (ORDERS * MODELS * REPEATS)), models=MODELS, repeats=REPEATS)


def enqueue_in_own_process(stand: Stand, name: str, shape: Shape) -> dict[str, Any]:
    """Enqueue a study into a stand, in a process of its own; the figures that it tells."""
    study = write_study(stand.folder / name, shape)
    out = stand.folder / f"{name}.json"
    await_end(stand.spawn(f"enqueue-{name}", "ops.benchmarks.enqueue_once", str(study), str(out)))
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    seconds = figures["read_s"] + figures["commit_s"] + figures["publish_s"]
    return {"items": shape.items, "seconds": seconds, "jobs_per_s": figures["jobs"] / seconds, **figures}


def _enqueue(stand: Stand, name: str, shape: Shape) -> dict[str, Any]:
    stand.clear()
    return enqueue_in_own_process(stand, name, shape)
