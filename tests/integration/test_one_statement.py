"""A call and what follows are one statement: the next call begins with it, and workers never wait for each other."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from producer.window import recover, unqueue
from tests.builders import make_attempt
from tests.jobs import change, plan, rows, states
from worker import statements
from worker.contact_store import ContactStore
from worker.records import ClaimedJob
from worker.retry import AskAgain, Back, Decision, Done, Later
from worker.store import JobStore

LONG_S = 60
READY_STATEMENTS_BELOW = 4096


def queued(engine: Engine, folder: Path, *, items: int = 2) -> list[int]:
    """The ids of a study's jobs, all queued, in plan order."""
    plan(engine, folder, items=items)
    change(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '1 hour'")
    return [row["id"] for row in rows(engine, "SELECT id FROM job ORDER BY position")]


def calling(engine: Engine) -> list[int]:
    """The jobs whose call is noted as begun."""
    return [row["id"] for row in rows(engine, "SELECT id FROM job WHERE calling ORDER BY id")]


@pytest.fixture
def store(engine: Engine) -> JobStore:
    """A worker's store."""
    return JobStore(engine, worker="w")


@pytest.mark.parametrize(
    "decision", [Done(), Later(wait_s=5), AskAgain(wait_s=1)], ids=["done", "later", "asked again after a while"]
)
def test_the_next_call_begins_with_what_became_of_the_last(
    engine: Engine, store: JobStore, tmp_path: Path, decision: Decision
) -> None:
    first, second = store.claim(queued(engine, tmp_path)[:2])
    store.begin_call(first)

    assert store.keep(first, make_attempt(), decision, then=second)

    assert calling(engine) == [second.id]


def test_a_call_that_is_repeated_at_once_begins_again(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    (job,) = store.claim(queued(engine, tmp_path)[:1])
    store.begin_call(job)

    assert store.keep(job, make_attempt(outcome="invalid", answer=None), AskAgain(wait_s=0), then=job)

    assert calling(engine) == [job.id]
    assert states(engine)["running"] == 1


def test_no_next_call_means_none(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    (job,) = store.claim(queued(engine, tmp_path)[:1])
    store.begin_call(job)

    assert not store.keep(job, make_attempt(), Done())

    assert calling(engine) == []


@pytest.mark.parametrize(
    "unwanted",
    [
        "UPDATE study SET state = 'paused'",
        "UPDATE condition SET state = 'cancelled'",
        "UPDATE job SET planned = false",
        "UPDATE job SET claim = claim + 1 WHERE position = 1",
        "UPDATE job SET state = 'pending' WHERE position = 1",
    ],
)
def test_no_call_begins_for_what_is_not_ours_or_not_wanted_any_more(
    engine: Engine, store: JobStore, tmp_path: Path, unwanted: str
) -> None:
    first, second = store.claim(queued(engine, tmp_path)[:2])
    store.begin_call(first)
    change(engine, unwanted)

    assert not store.keep(first, make_attempt(), Done(), then=second)

    assert calling(engine) == []
    assert states(engine)["answered"] == 1


def test_a_fault_for_a_person_begins_no_further_call_of_its_queue(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    first, second = store.claim(queued(engine, tmp_path)[:2])
    store.begin_call(first)
    ContactStore(engine, worker="w").stop(first.study, first.queue, endpoint="", reason="wrong key")

    assert not store.keep(first, make_attempt(outcome="no_completion", answer=None), Back(), then=second)

    assert calling(engine) == []


def test_a_next_call_begins_though_the_last_claim_has_become_stale(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    first, second = store.claim(queued(engine, tmp_path)[:2])
    store.begin_call(first)

    assert store.keep(replace(first, claim=0), make_attempt(), Done(), then=second)

    assert calling(engine) == [first.id, second.id]


def test_the_driver_keeps_every_statement_of_a_call_ready() -> None:
    assert len(statements.KEEP) < READY_STATEMENTS_BELOW


def test_workers_with_the_same_bundle_in_any_order_never_lock_each_other_out(engine: Engine, tmp_path: Path) -> None:
    ids = queued(engine, tmp_path, items=20)
    jobs = JobStore(engine, worker="w").claim(ids)

    def keep_all(name: str, held: list[ClaimedJob]) -> None:
        mine = JobStore(engine, worker=name)
        for number, (job, following) in enumerate(zip(held, [*held[1:], None], strict=True)):
            mine.keep(job, make_attempt(number, prompt=f"prompt {job.id}"), Done(), then=following)

    orders = [jobs, jobs[::-1], *(random.Random(seed).sample(jobs, len(jobs)) for seed in range(4))]
    with ThreadPoolExecutor(len(orders)) as threads:
        for keeper in [threads.submit(keep_all, f"w{n}", held) for n, held in enumerate(orders)]:
            keeper.result(LONG_S)

    assert states(engine) == {"answered": 40}
    assert len(rows(engine, "SELECT id FROM attempt")) == 40 * len(orders)
    assert deadlocks(engine) == 0


def test_whoever_changes_many_jobs_at_once_never_locks_another_out(engine: Engine, tmp_path: Path) -> None:
    ids = queued(engine, tmp_path, items=50)
    shuffled = random.Random(1)
    store = JobStore(engine, worker="w")

    def claim_and_give_back() -> None:
        store.give_back(store.claim(shuffled.sample(ids, 60)))

    def dispatch() -> None:
        with engine.begin() as connection:
            recover(connection)
        with engine.begin() as connection:
            unqueue(connection, shuffled.sample(ids, 60))

    def queue_again() -> None:
        change(
            engine,
            """UPDATE job SET state = 'queued', lease_until = now() + interval '1 ms' WHERE id IN (
               SELECT id FROM job WHERE state = 'pending' ORDER BY id FOR UPDATE)""",
        )

    def repeat(act: Callable[[], None]) -> None:
        for _ in range(60):
            act()

    acts = [claim_and_give_back, claim_and_give_back, claim_and_give_back, dispatch, dispatch, queue_again]
    with ThreadPoolExecutor(len(acts)) as threads:
        for act in [threads.submit(repeat, act) for act in acts]:
            act.result(LONG_S)

    assert deadlocks(engine) == 0


@pytest.mark.parametrize("first", ["the lost claim", "the claim that holds the job"])
@pytest.mark.parametrize(
    ("lost", "held", "result"),
    [
        pytest.param("answered", "no_completion", "answered", id="an answer and a fault"),
        pytest.param("answered", "invalid", "answered", id="an answer and an invalid one"),
        pytest.param("invalid", "answered", "answered", id="an invalid one and an answer"),
        pytest.param("answered", "answered", "answered", id="two answers"),
        pytest.param("invalid", "invalid", "invalid", id="two invalid ones"),
    ],
)
def test_two_claims_that_store_at_the_same_moment_leave_what_all_attempts_say(
    engine: Engine, tmp_path: Path, first: str, lost: str, held: str, result: str
) -> None:
    (job_id, *_) = queued(engine, tmp_path)
    stores = [JobStore(engine, worker=name) for name in ("lost", "held")]
    (stale,) = stores[0].claim([job_id])
    change(engine, "UPDATE job SET state = 'queued' WHERE id = :id", id=job_id)
    (live,) = stores[1].claim([job_id])
    attempts = [
        make_attempt(number, outcome=said, answer=0 if said == "answered" else None)
        for number, said in enumerate((lost, held))
    ]
    calls = list(zip(stores, (stale, live), attempts, strict=True))

    with ThreadPoolExecutor(2) as threads, engine.connect() as holder:
        holder.execute(text("SELECT FROM job WHERE id = :id FOR UPDATE"), {"id": job_id})
        storing = []
        for store, claim, attempt in calls if first == "the lost claim" else calls[::-1]:
            storing.append(threads.submit(store.keep, claim, attempt, Done()))
            time.sleep(0.2)  # its statement has begun, and waits for the row
        holder.rollback()
        for each in storing:
            each.result(LONG_S)

    (job,) = rows(engine, "SELECT state, counted_attempt FROM job WHERE id = :id", id=job_id)
    counted = next((a.id for a in attempts if a.outcome == "answered"), attempts[1].id)
    assert (job["state"], job["counted_attempt"]) == (result, counted)


def deadlocks(engine: Engine) -> int:
    """How many deadlocks Postgres has had to break in this database."""
    change(engine, "SELECT pg_stat_force_next_flush()")
    (row,) = rows(engine, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(row["deadlocks"])
