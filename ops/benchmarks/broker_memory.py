"""Row `broker-memory`: how much Valkey holds, beside what it holds when empty, while a large study waits.

Many workers' slots are registered and none of them takes anything. The dispatcher queues until nothing more fits; then
ten minutes pass, in which every lease runs out twice: a fifteenth of the queued jobs every twenty seconds.
Baseline: one message for each waiting job, from the size of messages that were really published.
"""

from sqlalchemy import text

from ops.benchmarks.bare_celery import no_op, publish_one_each
from ops.benchmarks.enqueueing import enqueue_in_own_process, shape_for
from ops.benchmarks.figures import Goal, Line, Measurement
from ops.benchmarks.options import Options
from ops.benchmarks.stand import Stand, fresh_stand, register_workers
from producer.dispatch import Dispatcher

WORKERS = 50
SLOTS = 64
GOAL = Goal(bound=50, at_least=False, of_ratio=False)

_ROUNDS = 30
_PARTS = 15
_EXPIRE = text("""
    UPDATE job SET lease_until = now() - interval '1 second' WHERE state = 'queued' AND id % :parts = :part
""")
_QUEUED = text("SELECT count(*) FROM job WHERE state = 'queued'")


def measure(options: Options) -> Measurement:
    """The most that the broker ever held, against one message a job."""
    with fresh_stand() as stand:
        per_message = _bytes_a_message(stand, options.messages // 4)
        jobs = enqueue_in_own_process(stand, "waiting", shape_for(options.jobs))["jobs"]
        stand.broker.flushall()
        _register_workers_anew(stand)
        empty = stand.broker_bytes()
        series, queued = _while_it_waits(stand)
    held = [(used - empty) / 1e6 for used in series]
    line = Line(
        what=f"broker, {jobs:,} jobs waiting",
        unit="MB",
        measured=max(held),
        baseline=per_message * jobs / 1e6,
        against="one message a job",
        goal=GOAL,
    )
    raw = {
        "jobs": jobs,
        "workers": WORKERS,
        "slots_a_worker": SLOTS,
        "queued_jobs": queued,
        "empty_bytes": empty,
        "baseline_bytes_a_message": per_message,
        "windows_full_mb": held[0],
        "after_each_expiry_mb": held[1:],
    }
    return Measurement(lines=(line,), raw=raw)


def _register_workers_anew(stand: Stand) -> None:
    """The many workers instead of the one that the enqueuing process registered; and statistics, for the database
    would make them within the minute anyway and the time is not what is measured here."""
    with stand.database.begin() as connection:
        connection.execute(text("DELETE FROM worker_heartbeat"))
        connection.execute(text("ANALYZE"))
    register_workers(stand.database, workers=WORKERS, slots=SLOTS)


def _bytes_a_message(stand: Stand, messages: int) -> float:
    with stand.app() as app:
        task = no_op(app)
        publish_one_each(task, 1)  # opens the connections
        empty = stand.broker_bytes()
        publish_one_each(task, messages)
        return (stand.broker_bytes() - empty) / messages


def _while_it_waits(stand: Stand) -> tuple[list[int], int]:
    """The broker's memory when the windows are full and after each round of expired leases; how many were queued."""
    with stand.app() as app:
        dispatcher = Dispatcher(stand.database, app, stand.broker)
        while dispatcher.tick():
            pass
        series = [stand.broker_bytes()]
        with stand.database.connect() as connection:
            queued: int = connection.execute(_QUEUED).scalar_one()
        for number in range(_ROUNDS):
            with stand.database.begin() as connection:
                connection.execute(_EXPIRE, {"parts": _PARTS, "part": number % _PARTS})
            dispatcher.tick()
            series.append(stand.broker_bytes())
    return series, queued
