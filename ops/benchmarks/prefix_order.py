"""Row `prefix-order`: what it is worth to a real model server that jobs with one context follow each other.

Whole paragraphs of SQuAD-it with low uncertainty, asked of llama.cpp's server by as many clients as it has slots, once
in each order and each time of a fresh server: ours (one client takes one of the dispatcher's bundles at a time, job by
job), shuffled, and in two passes (every question in its first order, then every question swapped); in the last two
every client takes one job at a time. Measured: jobs a second from the first request to the last answer, and the prompt
tokens a job that the server says it did not have in its cache.
"""

import random
from collections.abc import Sequence
from typing import Any

from ops.benchmarks.figures import Goal, Line, Measurement, NotMeasuredError
from ops.benchmarks.options import Options
from ops.benchmarks.prefix_jobs import bundles_of_jobs
from ops.benchmarks.prefix_load import Load, ask_all
from ops.benchmarks.stand import Stand, fresh_stand
from ops.local.model import launch_model
from worker.records import ClaimedJob

CLIENTS = 16
CONTEXT = 2048
SEED = 1
RANDOM_GOAL = Goal(bound=1.8)
TWO_PASSES_GOAL = Goal(bound=1.3)

Units = Sequence[Sequence[ClaimedJob]]


def measure(options: Options) -> Measurement:
    """Our order against the two others."""
    if options.squad_it is None:
        raise NotMeasuredError("give --squad-it FILE, the SQuAD_it-test.json.gz")
    with fresh_stand() as stand:
        bundles = bundles_of_jobs(stand, options.squad_it, options.prefix_jobs, slots=CLIENTS)
        jobs = [job for bundle in bundles for job in bundle]
        orders: dict[str, Units] = {"random": shuffled(jobs), "two passes": two_passes(jobs), "ours": bundles}
        loads = {name: _on_fresh_server(stand, units) for name, units in orders.items()}
    raw = {name: _told(load, orders[name]) for name, load in loads.items()}
    return Measurement(
        lines=(
            _rate(loads, "random", RANDOM_GOAL),
            _rate(loads, "two passes", TWO_PASSES_GOAL),
            _tokens(loads, "random"),
            _tokens(loads, "two passes"),
        ),
        raw={"jobs": len(jobs), "clients": CLIENTS, "slots": CLIENTS, "context": CONTEXT, "orders": raw},
    )


def shuffled(jobs: Sequence[ClaimedJob]) -> Units:
    """The jobs in an order that knows nothing of them, one at a time."""
    mixed = list(jobs)
    random.Random(SEED).shuffle(mixed)
    return [[job] for job in mixed]


def two_passes(jobs: Sequence[ClaimedJob]) -> Units:
    """All jobs in their first order, then all swapped, one at a time; each pass in the order of the plan."""
    return [[job] for job in sorted(jobs, key=lambda job: job.variant.order)]


def _on_fresh_server(stand: Stand, units: Units) -> Load:
    with launch_model(stand.folder, slots=CLIENTS, context=CONTEXT).wait_ready() as server:
        return ask_all(units, stand.settings.model_copy(update={"embedded_url": server.url}), clients=CLIENTS)


def _rate(loads: dict[str, Load], other: str, goal: Goal) -> Line:
    return Line(
        what="jobs in the order of our bundles",
        unit="jobs/s",
        measured=loads["ours"].jobs_per_s,
        baseline=loads[other].jobs_per_s,
        against=other,
        goal=goal,
    )


def _tokens(loads: dict[str, Load], other: str) -> Line:
    return Line(
        what="prompt tokens prefilled",
        unit="a job",
        measured=loads["ours"].prefilled_a_job,
        baseline=loads[other].prefilled_a_job,
        against=other,
    )


def _told(load: Load, units: Units) -> dict[str, Any]:
    return {
        "units": len(units),
        "seconds": load.seconds,
        "jobs_per_s": load.jobs_per_s,
        "jobs_per_s_middle": load.middle_jobs_per_s,
        "prompt_tokens_a_job": load.prompt_a_job,
        "prefilled_tokens_a_job": load.prefilled_a_job,
        "answer_tokens_a_job": load.answer_a_job,
    }
