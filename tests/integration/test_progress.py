"""Progress is what the rows say, and nothing else."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from contract.errors import StackError, UnknownStudyError
from ops.progress import Cell, Fault, read_progress, study_names
from ops.waiting import Waiting
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study

SIM = {"name": "sim", "provider": "simulated"}
SECOND = {"name": "second", "provider": "simulated"}
CAPITALS = {"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}


def run(engine: Engine, folder: Path, **changes: Any) -> int:  # noqa: ANN401
    """Enqueue a study; returns its id."""
    return enqueue(engine, read_study(write_study(folder, **changes))).study


def change(engine: Engine, statement: str, **values: Any) -> None:  # noqa: ANN401
    """Run one statement."""
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def set_states(engine: Engine, *states: str) -> list[int]:
    """Give the first jobs these states, in their order; returns their ids."""
    with engine.begin() as connection:
        ids = list(
            connection.execute(text("SELECT id FROM job ORDER BY position LIMIT :n"), {"n": len(states)}).scalars()
        )
        for job, state in zip(ids, states, strict=True):
            connection.execute(text("UPDATE job SET state = :state WHERE id = :job"), {"state": state, "job": job})
    return ids


def attempt(engine: Engine, job: int, *, kind: str | None, message: str | None, second: int = 0) -> None:
    """A call of `job` without a completion."""
    change(
        engine,
        """INSERT INTO attempt
               (id, job, round, claim, started_at, latency_ms, outcome, error_kind, error_message, worker)
           VALUES
               (:id, :job, 1, 1, now() + make_interval(secs => :second), 5, 'no_completion', :kind, :message, 'w')""",
        id=uuid.uuid4(),
        job=job,
        kind=kind,
        message=message,
        second=second,
    )


def beat(engine: Engine, *queues: str, worker: str = "w", ago_s: int = 0) -> None:
    """A worker's heartbeat."""
    change(
        engine,
        """INSERT INTO worker_heartbeat (worker, started_at, seen_at, slots, queues, version)
           VALUES (:worker, now(), now() - make_interval(secs => :ago), 4, to_jsonb(CAST(:queues AS text[])), '0')""",
        worker=worker,
        ago=ago_s,
        queues=list(queues),
    )


def test_an_unknown_study_is_refused_with_the_known_ones(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UnknownStudyError, match="no study 'trail' in the database; known: none yet"):
        read_progress(engine, "trail")
    run(engine, tmp_path, study="trial")
    run(engine, tmp_path, study="other")

    with pytest.raises(UnknownStudyError, match="no study 'trail' in the database; known: other, trial"):
        read_progress(engine, "trail")
    assert study_names(engine) == ["other", "trial"]


def test_a_fresh_study_has_everything_to_do(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, models=[SIM, SECOND], datasets=[CAPITALS, CAPITALS | {"name": "again"}])

    progress = read_progress(engine, "trial")

    assert progress.cells == tuple(
        Cell(model=model, dataset=dataset, jobs={"pending": 8}, queue=f"simulated.{model}")
        for model in ("sim", "second")
        for dataset in ("capitals", "again")
    )
    assert (progress.study, progress.state, progress.revision) == ("trial", "active", 1)
    assert (progress.planned, progress.finished, progress.unplanned, progress.done) == (32, 0, 0, False)


def test_every_state_is_counted_and_four_of_them_are_finished(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path)
    states = ("pending", "queued", "running", "answered", "invalid", "refused", "failed", "answered")
    set_states(engine, *states)

    progress = read_progress(engine, "trial")

    assert {state: progress.count(state) for state in states} == {state: states.count(state) for state in states}
    assert (progress.planned, progress.finished, progress.done) == (8, 5, False)


def test_a_study_is_done_when_every_planned_job_has_its_result(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path)
    set_states(engine, *["answered"] * 5, "invalid", "refused", "failed")

    progress = read_progress(engine, "trial")

    assert progress.done
    assert progress.waiting == ()
    assert progress.next_lease_ends_s is None


def test_jobs_outside_the_plan_are_counted_apart(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, items=4)
    set_states(engine, *["answered"] * 8)
    run(engine, tmp_path, items=3)

    progress = read_progress(engine, "trial")

    assert (progress.planned, progress.finished, progress.unplanned, progress.revision) == (6, 6, 2, 2)


def test_other_studies_count_for_nothing(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, study="one")
    run(engine, tmp_path, study="two", items=1)

    assert read_progress(engine, "one").planned == 8
    assert read_progress(engine, "two").planned == 2


def test_a_queue_waits_for_a_worker_that_was_seen_lately(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, models=[SIM, SECOND])
    beat(engine, "simulated.sim", "openai.other", worker="alive")
    beat(engine, "simulated.second", worker="gone", ago_s=60)

    progress = read_progress(engine, "trial")

    assert progress.waiting == (
        Waiting(queue="simulated.second", stopped=None, served=False),
        Waiting(queue="simulated.sim", stopped=None, served=True),
    )
    assert progress.workers == 1


def test_a_stopped_queue_says_why(engine: Engine, tmp_path: Path) -> None:
    study = run(engine, tmp_path)
    beat(engine, "simulated.sim")
    change(
        engine,
        "INSERT INTO stop (study, queue, reason, since) VALUES (:study, 'simulated.sim', 'wrong key', now())",
        study=study,
    )

    (waiting,) = read_progress(engine, "trial").waiting

    assert waiting == Waiting(queue="simulated.sim", stopped="wrong key", served=True)


def test_a_stop_of_another_study_is_none_of_this_one(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, study="one")
    other = run(engine, tmp_path, study="two")
    change(
        engine,
        "INSERT INTO stop (study, queue, reason, since) VALUES (:study, 'simulated.sim', 'wrong key', now())",
        study=other,
    )

    (waiting,) = read_progress(engine, "one").waiting

    assert waiting.stopped is None


def test_a_queue_whose_jobs_are_finished_waits_for_nothing(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path, models=[SIM, SECOND])
    set_states(engine, *["answered"] * 8)

    progress = read_progress(engine, "trial")

    assert [waiting.queue for waiting in progress.waiting] == ["simulated.second"]


def test_queued_and_running_jobs_say_when_the_first_lease_ends(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path)
    set_states(engine, "queued", "running", "running")
    for position, minutes in ((0, 1), (1, 3), (2, 2)):
        change(
            engine,
            "UPDATE job SET lease_until = now() + make_interval(mins => :minutes) WHERE position = :position",
            minutes=minutes,
            position=position,
        )

    held_s = read_progress(engine, "trial").next_lease_ends_s

    assert held_s is not None
    assert 0 < held_s <= 60


def test_faults_are_told_by_the_last_call_the_commonest_first(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path)
    one, two, three, four, five, *_ = set_states(engine, *["failed"] * 5, "answered", "invalid", "pending")
    for job in (one, two):
        attempt(engine, job, kind="transient", message="connection refused")
        attempt(engine, job, kind="rejected", message="HTTP 400", second=1)
    for job in (three, four, five):
        attempt(engine, job, kind="transient", message="no answer within the time allowed")

    faults = read_progress(engine, "trial").faults

    assert faults == (
        Fault(kind="transient", message="no answer within the time allowed", jobs=3),
        Fault(kind="rejected", message="HTTP 400", jobs=2),
    )


def test_a_job_that_killed_its_workers_failed_as_poison(engine: Engine, tmp_path: Path) -> None:
    run(engine, tmp_path)
    set_states(engine, "failed")

    assert read_progress(engine, "trial").faults == (Fault(kind="poison", message=None, jobs=1),)


def test_a_database_without_tables_says_what_to_run(engine: Engine) -> None:
    change(engine, "DROP SCHEMA public CASCADE")
    change(engine, "CREATE SCHEMA public")

    for look in (lambda: read_progress(engine, "trial"), lambda: study_names(engine)):
        with pytest.raises(StackError, match="has no tables yet: run `bothways migrate`"):
            look()
