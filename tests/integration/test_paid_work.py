"""What was paid for is stored, counted and never asked for again, whatever servers, clocks and workers do."""

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from analysis.load import load_results
from contract.completion import Completion
from producer.enqueue import enqueue
from producer.steering import Selection, retry
from producer.study_file import read_study
from producer.window import recover
from tests.builders import write_study
from tests.workers import evaluator_on
from worker.providers.base import Description, Endpoint, Request
from worker.records import Attempt, ClaimedJob
from worker.retry import Done
from worker.store import JobStore

INVALID, FIRST, SECOND = "no idea", "A", "B"


class Scripted:
    """A provider that says what it is told to and counts its calls."""

    endpoint = Endpoint(provider="scripted", model="scripted", label=None)

    def __init__(self, say: Callable[[int], Completion]) -> None:
        self.calls = 0
        self._say = say

    def complete(self, request: Request) -> Completion:  # noqa: ARG002 - it answers the same whatever is asked
        self.calls += 1
        return self._say(self.calls)

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def run_sql(engine: Engine, sql: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    with engine.begin() as connection:
        result = connection.execute(text(sql), values)
        return [dict(row) for row in result.mappings()] if result.returns_rows else []


def enqueue_study(engine: Engine, folder: Path, **changes: Any) -> None:  # noqa: ANN401
    enqueue(engine, read_study(write_study(folder, items=1, **changes)))


def queue_all(engine: Engine) -> list[int]:
    return [row["id"] for row in run_sql(engine, "UPDATE job SET state = 'queued' RETURNING id")]


def evaluate(engine: Engine, provider: Scripted) -> str:
    evaluator = evaluator_on(engine, provider)
    return evaluator.evaluate(queue_all(engine))


def attempt_of(job: ClaimedJob, said: str, *, at: datetime) -> Attempt:
    answer = {FIRST: 0, SECOND: 1}.get(said)
    order = job.variant.order
    return Attempt(
        id=uuid.uuid4(),
        started_at=at,
        latency_ms=1,
        prompt="prompt",
        seed=1,
        outcome="invalid" if answer is None else "answered",
        completion=said,
        answer=None if answer is None else order[answer],
    )


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"tokens_in": 10**12}, id="more tokens than a column holds"),
        pytest.param({"tokens_out": "many"}, id="tokens in words"),
        pytest.param({"finish_reason": 7}, id="a finish reason that is a number"),
        pytest.param({"model_reported": {"name": "x"}}, id="a model that is an object"),
    ],
)
def test_what_no_column_holds_costs_one_call_and_is_counted(
    engine: Engine, tmp_path: Path, odd: dict[str, Any]
) -> None:
    enqueue_study(engine, tmp_path)
    provider = Scripted(lambda _: Completion(**{"text": FIRST, "finish_reason": "stop"} | odd))

    evaluate(engine, provider)

    assert provider.calls == 2
    assert run_sql(engine, "SELECT count(*) AS attempts FROM attempt") == [{"attempts": 2}]
    assert run_sql(engine, "SELECT completion FROM attempt") == [{"completion": FIRST}] * 2
    assert {row["state"] for row in run_sql(engine, "SELECT state FROM job")} == {"answered"}


def test_an_answer_that_a_lost_claim_left_is_not_paid_for_twice(engine: Engine, tmp_path: Path) -> None:
    enqueue_study(engine, tmp_path)
    store = JobStore(engine, worker="lost")
    jobs = store.claim(queue_all(engine))
    run_sql(engine, "UPDATE job SET state = 'pending', lease_until = NULL")
    for job in jobs:
        store.keep(job, attempt_of(job, FIRST, at=datetime.now(UTC)), Done())
    provider = Scripted(lambda _: Completion(text=SECOND, finish_reason="stop"))

    summary = evaluate(engine, provider)

    assert (provider.calls, summary) == (0, "answered 2")
    assert {row["state"] for row in run_sql(engine, "SELECT state FROM job")} == {"answered"}


def test_an_answer_that_comes_late_corrects_the_result(engine: Engine, tmp_path: Path, database_url: str) -> None:
    enqueue_study(engine, tmp_path)
    late, quick = JobStore(engine, worker="late"), JobStore(engine, worker="quick")
    old = late.claim(queue_all(engine))[0]
    run_sql(engine, "UPDATE job SET state = 'queued' WHERE id = :id", id=old.id)
    new = quick.claim([old.id])[0]
    quick.keep(new, attempt_of(new, INVALID, at=datetime.now(UTC)), Done())

    late.keep(old, attempt_of(old, FIRST, at=datetime.now(UTC)), Done())

    (job,) = run_sql(engine, "SELECT state, answer FROM job WHERE id = :id", id=old.id)
    reported = load_results(database_url, "trial").row(0, named=True)
    assert (job["state"], job["answer"]) == (reported["final_outcome"], reported["final_choice"])
    assert job["state"] == "answered"


def test_a_poison_job_has_the_result_that_its_attempts_left(engine: Engine, tmp_path: Path) -> None:
    enqueue_study(engine, tmp_path)
    store = JobStore(engine, worker="w")
    with_one, without = store.claim(queue_all(engine))
    run_sql(engine, "UPDATE study SET state = 'active'")
    store.keep(with_one, attempt_of(with_one, INVALID, at=datetime.now(UTC)), Done())
    run_sql(
        engine,
        "UPDATE job SET state = 'running', finished_at = NULL, calling = true, losses = 4, lease_until = now() - "
        "interval '1 second'",
    )

    with engine.begin() as connection:
        recover(connection)

    states = {row["id"]: row["state"] for row in run_sql(engine, "SELECT id, state FROM job")}
    assert states == {with_one.id: "invalid", without.id: "failed"}


def test_the_first_answer_is_the_first_claim_s_whatever_the_clocks_say(
    engine: Engine, tmp_path: Path, database_url: str
) -> None:
    enqueue_study(engine, tmp_path)
    ahead, behind = JobStore(engine, worker="ahead"), JobStore(engine, worker="behind")
    now = datetime.now(UTC)
    for job in ahead.claim(queue_all(engine)):
        ahead.keep(job, attempt_of(job, INVALID, at=now), Done())
    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)
    for job in behind.claim(queue_all(engine)):
        behind.keep(job, attempt_of(job, FIRST, at=now - timedelta(minutes=10)), Done())

    results = load_results(database_url, "trial")

    assert set(results["first_outcome"]) == {"invalid"}
    assert set(results["final_outcome"]) == {"answered"}


def test_a_job_that_is_asked_again_keeps_its_results_until_it_has_better_ones(
    engine: Engine, tmp_path: Path, database_url: str
) -> None:
    enqueue_study(engine, tmp_path)
    evaluate(engine, Scripted(lambda _: Completion(text=INVALID, finish_reason="stop")))
    before = load_results(database_url, "trial")

    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)

    assert load_results(database_url, "trial").equals(before)
    assert set(before["final_outcome"]) == {"invalid"}


def test_a_round_that_ended_by_faults_is_not_opened_by_every_run(engine: Engine, tmp_path: Path) -> None:
    rules = {"invalid": 3, "faults": 2}
    enqueue_study(engine, tmp_path, retry=rules)
    store = JobStore(engine, worker="w")
    for job in store.claim(queue_all(engine)):
        store.keep(job, attempt_of(job, INVALID, at=datetime.now(UTC)), Done())

    again = enqueue(engine, read_study(write_study(tmp_path, items=1, retry=rules)))
    raised = enqueue(engine, read_study(write_study(tmp_path, items=1, retry=rules | {"invalid": 4})))

    assert (again.reopened, raised.reopened) == (0, 2)


def test_no_call_begins_after_the_time_budget_also_within_one_job(engine: Engine, tmp_path: Path) -> None:
    enqueue_study(engine, tmp_path, retry={"invalid": 100}, bundles={"size": 2, "budget_s": 0.3})

    def slowly(_: int) -> Completion:
        threading.Event().wait(0.1)
        return Completion(text=INVALID, finish_reason="stop")

    provider = Scripted(slowly)

    evaluate(engine, provider)

    assert 1 <= provider.calls <= 5
    assert {row["state"] for row in run_sql(engine, "SELECT state FROM job")} == {"pending"}
