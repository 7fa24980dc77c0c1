"""Row `slots`: which share of 64 slots' time one worker process spends waiting for a model that takes 200 ms.

Over the middle 80 % of the run, from the attempts' begin and latency. Baseline: every slot always in a call.
"""

from sqlalchemy import text

from ops.benchmarks.figures import Call, Goal, Line, Measurement, busy_share
from ops.benchmarks.options import Options
from ops.benchmarks.stand import fresh_stand
from ops.benchmarks.synthetic import ORDERS, Shape
from ops.benchmarks.working import work_off

SLOTS = 64
LATENCY_S = 0.2
GOAL = Goal(bound=97, of_ratio=False)

_CALLS = text(
    "SELECT extract(epoch FROM started_at)::float AS started, latency_ms / 1000.0::float AS seconds FROM attempt"
)


def measure(options: Options) -> Measurement:
    """The share, and beside it in the raw figures what the calls should have taken: a worker that has too much to do
    also wakes late from a call, and that looks like time in the call."""
    shape = Shape(items=options.slots_jobs // ORDERS, latency_s=LATENCY_S)
    with fresh_stand() as stand:
        work_off(stand, shape, slots=SLOTS)
        with stand.database.connect() as connection:
            calls = [Call(started=call.started, seconds=call.seconds) for call in connection.execute(_CALLS)]
    nominal = [Call(started=call.started, seconds=LATENCY_S) for call in calls]
    seconds = sorted(call.seconds for call in calls)
    line = Line(
        what=f"time in a {LATENCY_S * 1000:.0f} ms model, {SLOTS} slots",
        unit="%",
        measured=100 * busy_share(calls, SLOTS),
        baseline=100.0,
        against="no slot ever idle",
        goal=GOAL,
    )
    raw = {
        "jobs": shape.jobs,
        "answered": len(calls),
        "slots": SLOTS,
        "share": busy_share(calls, SLOTS),
        "share_if_calls_took_what_the_model_takes": busy_share(nominal, SLOTS),
        "call_seconds_median": seconds[len(seconds) // 2],
        "call_seconds_longest": seconds[-1],
    }
    return Measurement(lines=(line,), raw=raw)
