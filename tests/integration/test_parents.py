"""Jobs that need another job's answer: when they are due, when they end with it, and when they are opened again."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from contract.errors import ErrorKind
from ops.cli.follow import stuck_reasons
from ops.progress import read_progress
from producer.dispatch import Dispatcher
from producer.leadership import Presence
from producer.steering import Selection, retry
from tests.builders import make_attempt
from tests.jobs import QUEUE, beat, change, plan, rows, states
from worker.records import ClaimedJob
from worker.retry import Done
from worker.store import JobStore


@pytest.fixture
def family(engine: Engine, tmp_path: Path) -> Engine:
    """A study of one item: the job at position 0 is the parent of the one at position 1."""
    plan(engine, tmp_path, items=1)
    change(
        engine,
        """UPDATE job SET not_before = 'infinity', parent = (SELECT id FROM job AS first WHERE first.position = 0)
           WHERE position = 1""",
    )
    return engine


def end_parent(engine: Engine, outcome: str) -> None:
    """Let a worker claim the parent, ask it once and store what came."""
    store = JobStore(engine, worker="w")
    queued = rows(engine, "SELECT id FROM job WHERE position = 0 AND state = 'queued'")
    (job,) = store.claim([row["id"] for row in queued])
    said = outcome if outcome in ("answered", "invalid", "refused") else "no_completion"
    store.keep(job, make_attempt(outcome=said, answer=0 if said == "answered" else None), Done())


def lose_parent(engine: Engine, dispatcher: Dispatcher) -> tuple[JobStore, ClaimedJob]:
    """Let a slow worker claim the parent and lose it again; the parent is queued anew."""
    beat(engine)
    dispatcher.tick()
    slow = JobStore(engine, worker="slow")
    (stale,) = slow.claim([row["id"] for row in rows(engine, "SELECT id FROM job WHERE position = 0")])
    change(engine, "UPDATE job SET lease_until = now() - interval '1 s' WHERE id = :id", id=stale.id)
    dispatcher.tick()
    return slow, stale


def child(engine: Engine) -> tuple[str, int, bool]:
    """The child's state and round, and whether it has ended."""
    (row,) = rows(engine, "SELECT state, round, finished_at FROM job WHERE position = 1")
    return row["state"], row["round"], row["finished_at"] is not None


def ask_again(engine: Engine, *outcomes: str) -> int:
    """Choose finished jobs for another round; how many."""
    chosen = retry(engine, "trial", Selection(outcomes=outcomes), dry_run=False)
    return sum(each.jobs for each in chosen)


def test_a_child_is_due_only_when_its_parent_is_answered(family: Engine, dispatcher: Dispatcher) -> None:
    beat(family)
    assert dispatcher.tick() == 1
    assert dispatcher.tick() == 0

    end_parent(family, "answered")

    assert child(family) == ("pending", 1, False)
    assert dispatcher.tick() == 1
    assert child(family) == ("queued", 1, False)


@pytest.mark.parametrize("outcome", ["invalid", "refused", "failed"])
def test_any_other_end_of_the_parent_ends_its_child_as_failed_for_that_reason(
    family: Engine, dispatcher: Dispatcher, outcome: str
) -> None:
    beat(family)
    dispatcher.tick()

    end_parent(family, outcome)

    assert child(family) == ("failed", 1, True)
    faults = {(fault.kind, fault.jobs) for fault in read_progress(family, "trial").faults}
    assert (ErrorKind.PARENT, 1) in faults
    assert read_progress(family, "trial").done


def test_a_parent_that_kills_its_workers_ends_its_child_too(family: Engine, dispatcher: Dispatcher) -> None:
    change(
        family,
        """UPDATE job SET state = 'running', calling = true, losses = 4, lease_until = now() - interval '1 s'
           WHERE position = 0""",
    )

    dispatcher.tick()

    assert states(family) == {"failed": 2}


def test_a_parent_that_is_answered_in_another_round_opens_its_child_again(
    family: Engine, dispatcher: Dispatcher
) -> None:
    beat(family)
    dispatcher.tick()
    end_parent(family, "invalid")
    ask_again(family, "invalid")
    assert child(family) == ("failed", 1, True)
    dispatcher.tick()

    end_parent(family, "answered")

    assert child(family) == ("pending", 2, False)
    assert dispatcher.tick() == 1


def test_an_answer_that_a_lost_claim_brings_late_opens_the_child_again(family: Engine, dispatcher: Dispatcher) -> None:
    slow, stale = lose_parent(family, dispatcher)
    quick = JobStore(family, worker="quick")
    (held,) = quick.claim([stale.id])
    quick.keep(held, make_attempt(1, outcome="invalid", answer=None), Done())
    assert child(family) == ("failed", 1, True)

    slow.keep(stale, make_attempt(), Done())

    assert child(family) == ("pending", 2, False)


def test_an_answer_that_a_lost_claim_left_in_time_makes_the_child_due(family: Engine, dispatcher: Dispatcher) -> None:
    slow, stale = lose_parent(family, dispatcher)
    quick = JobStore(family, worker="quick")
    slow.keep(stale, make_attempt(), Done())
    (held,) = quick.claim([stale.id])
    assert held.answered

    quick.finish(held)

    assert child(family) == ("pending", 1, False)
    assert dispatcher.tick() == 1


def test_a_parent_that_is_due_holds_up_nobody_though_its_child_waits_in_the_same_queue(family: Engine) -> None:
    beat(family)
    Presence(family).beat(leads=True)

    assert stuck_reasons(read_progress(family, "trial")) == []


def test_a_child_is_not_asked_again_as_long_as_its_parent_has_no_answer(family: Engine, dispatcher: Dispatcher) -> None:
    beat(family)
    dispatcher.tick()
    end_parent(family, "refused")

    assert ask_again(family, "failed") == 0

    assert child(family) == ("failed", 1, True)


def test_who_waits_for_a_child_is_told_what_its_parent_waits_for(family: Engine) -> None:
    change(family, "UPDATE job SET queue = 'simulated.judge' WHERE position = 1")
    beat(family, QUEUE, "simulated.judge")
    change(
        family,
        """UPDATE condition SET queue = 'simulated.judge'
           WHERE id = (SELECT condition FROM job WHERE position = 1)""",
    )
    change(
        family, "INSERT INTO stop (study, queue, reason, since) SELECT id, :queue, 'x', now() FROM study", queue=QUEUE
    )
    Presence(family).beat(leads=True)

    reasons = stuck_reasons(read_progress(family, "trial"))

    assert reasons == ["simulated.judge waits for answers that other jobs must give first", f"{QUEUE} was stopped: x"]
