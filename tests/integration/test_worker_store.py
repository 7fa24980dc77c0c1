"""The worker's SQL on a real Postgres: who holds a job, what is kept, and what a job's result is."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine, text

from contract.items import canonical_digest
from producer.enqueue import enqueue
from producer.loaded_study import LoadedStudy
from producer.study_file import read_study
from producer.window import recover
from tests.builders import make_attempt, write_study
from worker.records import Attempt, ClaimedJob, Deployment
from worker.retry import AskAgain, Back, Decision, Done, Later, Tally
from worker.store import JobStore

MARGIN_S = 30


def rows(engine: Engine, statement: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """What a statement returns, committed."""
    with engine.begin() as connection:
        found = connection.execute(text(statement), values)
        return [dict(each) for each in found.mappings()] if found.returns_rows else []


def row(engine: Engine, job: int) -> dict[str, Any]:
    """A job's row."""
    (found,) = rows(engine, "SELECT * FROM job WHERE id = :job", job=job)
    return found


def queue_study(engine: Engine, folder: Path, **changes: Any) -> tuple[LoadedStudy, list[int]]:  # noqa: ANN401
    """A study whose jobs are all queued, as the dispatcher leaves them; and their ids in order."""
    loaded = read_study(write_study(folder, **changes))
    enqueue(engine, loaded)
    return loaded, queue_again(engine)


def queue_again(engine: Engine) -> list[int]:
    """Mark all unfinished jobs as queued, whoever holds them."""
    rows(
        engine,
        "UPDATE job SET state = 'queued', calling = false, lease_until = now() + interval '900 s'"
        " WHERE state IN ('pending', 'running')",
    )
    return [found["id"] for found in rows(engine, "SELECT id FROM job WHERE state = 'queued' ORDER BY position")]


def fault(number: int = 0, kind: str = "transient") -> Attempt:
    """An attempt without a completion."""
    return make_attempt(number, outcome="no_completion", completion=None, answer=None, error_kind=kind)


@pytest.fixture
def store(engine: Engine) -> JobStore:
    """The store of a first worker."""
    return JobStore(engine, worker="w1")


@pytest.fixture
def rival(engine: Engine) -> JobStore:
    """The store of another worker."""
    return JobStore(engine, worker="w2")


def test_a_claimed_job_is_all_that_is_needed_to_ask(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    loaded, ids = queue_study(engine, tmp_path, items=2, repeats=2)

    jobs = store.claim(ids)

    items = {item.source_id: item for item in loaded.items["capitals"]}
    assert len(jobs) == 8
    assert all(job.item == items[job.item.source_id] for job in jobs)
    assert {(job.item.source_id, job.variant.label, job.repeat) for job in jobs} == {
        (item, order, repeat) for item in ("q0", "q1") for order in ("12", "21") for repeat in (1, 2)
    }
    assert {job.rules.model for job in jobs} == {loaded.study.models[0]}
    assert {(job.rules.retry, job.rules.bundles) for job in jobs} == {(loaded.study.retry, loaded.study.bundles)}
    assert {(job.claim, job.round, job.queue, job.tally) for job in jobs} == {(1, 1, "simulated.sim", Tally())}


def test_jobs_are_claimed_in_the_order_of_the_bundle(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    bundle = [ids[5], ids[0], ids[3]]

    assert [job.id for job in store.claim(bundle)] == bundle


def test_a_claim_leases_for_the_budget_one_call_and_a_margin(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    models = [{"name": "sim", "provider": "simulated", "timeout_s": 70}]
    _, ids = queue_study(engine, tmp_path, items=1, models=models, bundles={"size": 4, "budget_s": 200})

    (job,) = store.claim(ids[:1])

    (lease,) = rows(engine, "SELECT lease_until - now() AS left FROM job WHERE id = :id", id=job.id)
    leased = timedelta(seconds=200 + 70 + MARGIN_S)
    assert leased - timedelta(seconds=5) < lease["left"] <= leased


def test_workers_that_claim_the_same_jobs_at_once_share_them_out(engine: Engine, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path, items=30)
    start = threading.Barrier(4)

    def claim_all(worker: int) -> list[int]:
        store = JobStore(engine, worker=f"w{worker}")
        order = ids if worker % 2 else ids[::-1]
        start.wait()
        return [job.id for place in range(0, 60, 5) for job in store.claim(order[place : place + 5])]

    with ThreadPoolExecutor(4) as threads:
        claimed = [job for jobs in threads.map(claim_all, range(4)) for job in jobs]

    assert sorted(claimed) == sorted(ids)
    assert {found["claim"] for found in rows(engine, "SELECT claim FROM job")} == {1}


def test_a_job_in_other_hands_cannot_be_claimed(
    engine: Engine, store: JobStore, rival: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path)
    store.claim(ids[:2])

    assert [job.id for job in rival.claim(ids[:3])] == [ids[2]]


def test_a_message_that_comes_twice_finds_nothing_to_do(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path, items=1)
    for job in store.claim(ids):
        store.keep(job, make_attempt(), Done())

    assert store.claim(ids) == []


def test_rules_that_cannot_be_read_leave_no_job_in_nobody_s_hands(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path)
    rows(engine, "UPDATE condition SET rules = jsonb_set(rules, '{retry, invalid}', '\"often\"')")

    with pytest.raises(ValidationError):
        store.claim(ids)

    found = rows(engine, "SELECT DISTINCT state, claim, not_before > now() AS waits FROM job")
    assert found == [{"state": "pending", "claim": 1, "waits": True}]


def test_jobs_that_are_not_there_are_passed_over(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path, items=1)

    assert [job.id for job in store.claim([10**9, *ids])] == ids


def test_who_lost_the_lease_changes_nothing_but_the_attempt_is_kept(
    engine: Engine, store: JobStore, rival: JobStore, tmp_path: Path
) -> None:
    _, (job_id, *_) = queue_study(engine, tmp_path)
    (stale,) = store.claim([job_id])
    rows(engine, "UPDATE job SET lease_until = now() - interval '1 s' WHERE id = :id", id=job_id)
    with engine.begin() as connection:
        assert recover(connection) == 1
    queue_again(engine)
    (held,) = rival.claim([job_id])
    assert rival.begin_call(held)
    before = row(engine, job_id)
    attempts = [make_attempt(number) for number in range(4)]
    decisions: list[Decision] = [Done(), AskAgain(wait_s=0), Later(wait_s=9), Back()]

    assert not store.begin_call(stale)
    store.give_back([stale])
    for attempt, decision in zip(attempts, decisions, strict=True):
        store.keep(stale, attempt, decision)

    assert row(engine, job_id) == before
    assert (before["state"], before["claim"], before["calling"]) == ("running", 2, True)
    kept = rows(engine, "SELECT id, claim, worker FROM attempt ORDER BY started_at")
    assert [tuple(found.values()) for found in kept] == [(attempt.id, 1, "w1") for attempt in attempts]


def test_an_attempt_that_is_stored_twice_is_one(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    attempt = make_attempt()

    for _ in range(2):
        store.keep(job, attempt, Done())

    assert [found["id"] for found in rows(engine, "SELECT id FROM attempt")] == [attempt.id]
    assert row(engine, job.id)["state"] == "answered"


def test_a_row_holds_all_that_an_attempt_says(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    attempt = make_attempt(
        completion="A ␀ è",
        completion_length=5_000_000,
        thinking="hm",
        finish_reason="stop",
        tokens_in=1,
        tokens_out=2,
        tokens_cached=0,
        tier="whole",
        reading="strict",
        reading_version=1,
        seed=2**31 - 1,
    )

    store.keep(job, attempt, Done())

    (kept,) = rows(engine, "SELECT * FROM attempt")
    own = asdict(attempt)
    assert {name: kept[name] for name in own if name != "prompt"} == {
        name: value for name, value in own.items() if name != "prompt"
    }
    assert (kept["job"], kept["round"], kept["claim"], kept["worker"]) == (job.id, 1, 1, "w1")


def test_a_prompt_is_stored_once_whoever_was_asked_it(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    jobs = store.claim(ids[:3])

    for job, prompt in zip(jobs, ("same {braces}", "same {braces}", "other"), strict=True):
        store.keep(job, make_attempt(prompt=prompt), Done())

    sent = rows(engine, "SELECT prompt.text FROM attempt JOIN prompt ON digest = attempt.prompt ORDER BY attempt.job")
    assert [found["text"] for found in sent] == ["same {braces}", "same {braces}", "other"]
    assert len(rows(engine, "SELECT digest FROM prompt")) == 2


def test_a_prompt_that_could_not_be_rendered_is_absent(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])

    store.keep(job, make_attempt(prompt=None, outcome="no_completion", answer=None, error_kind="bug"), Done())

    assert [found["prompt"] for found in rows(engine, "SELECT prompt FROM attempt")] == [None]


def test_a_call_that_begins_is_noted_and_renews_the_lease(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    rows(engine, "UPDATE job SET lease_until = now() + interval '1 s' WHERE id = :id", id=job.id)

    assert store.begin_call(job)

    (found,) = rows(engine, "SELECT calling, lease_until - now() AS left FROM job WHERE id = :id", id=job.id)
    assert found["calling"]
    assert found["left"] > timedelta(seconds=job.rules.model.timeout_s + MARGIN_S - 5)


UNWANTED = {
    "study paused": "UPDATE study SET state = 'paused'",
    "study cancelled": "UPDATE study SET state = 'cancelled'",
    "condition paused": "UPDATE condition SET state = 'paused'",
    "condition cancelled": "UPDATE condition SET state = 'cancelled'",
    "no longer planned": "UPDATE job SET planned = false",
    "queue stopped": "INSERT INTO stop (study, queue, reason, since) SELECT id, 'simulated.sim', '', now() FROM study",
}


@pytest.mark.parametrize("change", UNWANTED.values(), ids=UNWANTED)
def test_no_call_begins_for_a_job_that_is_not_wanted_any_more(
    engine: Engine, store: JobStore, tmp_path: Path, change: str
) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    rows(engine, change)

    begun = store.begin_call(job)
    store.give_back([job])

    found = row(engine, job.id)
    assert not begun
    assert (found["state"], found["lease_until"], found["calling"]) == ("pending", None, False)


@pytest.mark.parametrize("change", UNWANTED.values(), ids=UNWANTED)
def test_a_message_whose_jobs_are_not_wanted_any_more_puts_them_back(
    engine: Engine, store: JobStore, tmp_path: Path, change: str
) -> None:
    _, ids = queue_study(engine, tmp_path)
    rows(engine, change)

    assert store.claim(ids) == []
    assert {found["state"] for found in rows(engine, "SELECT state FROM job")} == {"pending"}


def test_a_stop_concerns_its_own_queue_only(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    models = [{"name": name, "provider": "simulated"} for name in ("sim", "other")]
    _, ids = queue_study(engine, tmp_path, models=models)
    rows(engine, UNWANTED["queue stopped"])

    assert {job.queue for job in store.claim(ids)} == {"simulated.other"}


def test_jobs_that_are_given_back_wait_untouched_and_others_stay_held(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path)
    jobs = store.claim(ids[:3])

    store.give_back(jobs[:2])

    found = [row(engine, job.id) for job in jobs]
    assert [each["state"] for each in found] == ["pending", "pending", "running"]
    assert [(each["lease_until"], each["losses"], each["not_before"]) for each in found[:2]] == [(None, 0, None)] * 2


def test_a_job_for_later_waits_in_postgres(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    store.begin_call(job)

    store.keep(job, fault(), Later(wait_s=120.5))

    (found,) = rows(engine, "SELECT *, not_before - now() AS wait FROM job WHERE id = :id", id=job.id)
    assert (found["state"], found["calling"], found["lease_until"]) == ("pending", False, None)
    assert timedelta(seconds=115) < found["wait"] <= timedelta(seconds=120.5)


def test_a_job_that_is_asked_again_stays_held_with_no_call_in_flight(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path)
    (job,) = store.claim(ids[:1])
    store.begin_call(job)

    store.keep(job, fault(), AskAgain(wait_s=1))

    found = row(engine, job.id)
    assert (found["state"], found["calling"], found["claim"]) == ("running", False, 1)


def test_a_fault_that_is_not_the_jobs_gives_it_back_as_it_was(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    _, (job_id, *_) = queue_study(engine, tmp_path)
    (job,) = store.claim([job_id])

    store.keep(job, make_attempt(outcome="no_completion", answer=None, error_kind="exhausted"), Back())

    found = row(engine, job_id)
    assert (found["state"], found["not_before"], found["losses"]) == ("pending", None, 0)


INVALID = {"outcome": "invalid", "answer": None, "reason": "unreadable"}
REFUSED = {"outcome": "refused", "completion": None, "answer": None, "error_kind": "refused"}
NOTHING = {"outcome": "no_completion", "completion": None, "answer": None, "error_kind": "transient"}
FIRST, SECOND = {"answer": 0}, {"answer": 1}


@pytest.mark.parametrize(
    ("attempts", "state", "answer", "counted"),
    [
        pytest.param([FIRST], "answered", 0, 0, id="one answer"),
        pytest.param([SECOND, FIRST], "answered", 1, 0, id="the earliest answer"),
        pytest.param([INVALID, NOTHING, SECOND, FIRST], "answered", 1, 2, id="the earliest that was read"),
        pytest.param([FIRST, INVALID], "answered", 0, 0, id="an answer before an invalid one"),
        pytest.param([FIRST, REFUSED], "answered", 0, 0, id="an answer before a refusal"),
        pytest.param([INVALID, INVALID, INVALID], "invalid", None, 2, id="the last invalid one"),
        pytest.param([INVALID, NOTHING], "invalid", None, 0, id="a fault after a completion changes nothing"),
        pytest.param([REFUSED], "refused", None, 0, id="refused"),
        pytest.param([INVALID, REFUSED], "refused", None, 1, id="refused in the end"),
        pytest.param([NOTHING, NOTHING], "failed", None, None, id="no completion at all"),
    ],
)
@pytest.mark.parametrize("stored", [list, reversed], ids=["stored in order", "stored backwards"])
def test_the_result_of_a_job_is_what_its_attempts_say(
    engine: Engine,
    store: JobStore,
    tmp_path: Path,
    stored: Callable[[list[Attempt]], Sequence[Attempt]],
    attempts: list[dict[str, Any]],
    state: str,
    answer: int | None,
    counted: int | None,
) -> None:
    _, ids = queue_study(engine, tmp_path, items=1)
    job, other = store.claim(ids)
    store.keep(other, make_attempt(-1, answer=1), Done())
    made = [make_attempt(number, **changes) for number, changes in enumerate(attempts)]

    *before, last = stored(made)
    for attempt in before:
        store.keep(job, attempt, AskAgain(wait_s=0))
    store.keep(job, last, Done())

    found = row(engine, job.id)
    assert (found["state"], found["answer"]) == (state, answer)
    assert found["counted_attempt"] == (None if counted is None else made[counted].id)
    assert found["finished_at"] is not None
    assert (found["lease_until"], found["not_before"], found["calling"]) == (None, None, False)


def test_a_job_comes_back_with_what_it_has_been_through_in_this_round(
    engine: Engine, store: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path, items=1)
    (job,) = store.claim(ids[:1])
    attempts = [fault(0), make_attempt(1, **INVALID), fault(2, "throttled"), fault(3)]
    for attempt in attempts:
        store.keep(job, attempt, Later(wait_s=0))
    queue_again(engine)

    (again,) = store.claim(ids[:1])
    rows(engine, "UPDATE job SET round = 2")
    queue_again(engine)
    (in_new_round,) = store.claim(ids[:1])

    assert (again.claim, again.tally) == (2, Tally(calls=4, invalid=1, faults=2))
    assert (in_new_round.claim, in_new_round.round, in_new_round.tally) == (3, 2, Tally())


def test_a_deployment_has_one_row_whoever_meets_it(engine: Engine, store: JobStore, rival: JobStore) -> None:
    deployment = Deployment(provider="openai", model="m", endpoint="host:1", server_version=None)
    newer = Deployment(provider="openai", model="m", endpoint="host:1", server_version="2")

    ids = [each.deployment_id(deployment) for each in (store, rival, store)]

    assert len(set(ids)) == 1
    assert store.deployment_id(newer) != ids[0]
    assert len(rows(engine, "SELECT id FROM deployment")) == 2


def test_a_deployment_that_another_worker_is_just_storing_is_found(engine: Engine, store: JobStore) -> None:
    deployment = Deployment(provider="openai", model="m", endpoint=None, server_version=None)
    insert = text("""
        INSERT INTO deployment (identity, provider, model, first_seen) VALUES (:identity, 'openai', 'm', now())
        RETURNING id
    """)

    with ThreadPoolExecutor(1) as threads, engine.begin() as connection:
        stored = connection.execute(insert, {"identity": canonical_digest(asdict(deployment))}).scalar_one()
        found = threads.submit(store.deployment_id, deployment)
        await_that(lambda: bool(rows(engine, "SELECT FROM pg_locks WHERE NOT granted")))
        connection.commit()

        assert found.result(timeout=5) == stored


def test_workers_that_finish_the_same_jobs_in_opposite_orders_do_not_block_each_other(
    engine: Engine, store: JobStore, rival: JobStore, tmp_path: Path
) -> None:
    _, ids = queue_study(engine, tmp_path, items=20)
    jobs = store.claim(ids)

    def keep_all(keeper: JobStore, held: list[ClaimedJob]) -> None:
        for number, job in enumerate(held):
            keeper.keep(job, make_attempt(number, prompt=f"prompt {job.id}"), Done())

    with ThreadPoolExecutor(2) as threads:
        keepers = [threads.submit(keep_all, store, jobs), threads.submit(keep_all, rival, jobs[::-1])]
        for keeper in keepers:
            keeper.result(timeout=30)

    assert {found["state"] for found in rows(engine, "SELECT state FROM job")} == {"answered"}
    assert len(rows(engine, "SELECT id FROM attempt")) == 80


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
