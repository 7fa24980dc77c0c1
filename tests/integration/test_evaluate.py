"""The way of a bundle through a worker, on a real Postgres: what was paid for is kept, and nothing is asked twice."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from contract.completion import Completion
from contract.models import Model
from contract.pools import Pool
from contract.settings import Settings
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study
from tests.workers import evaluator_on
from worker.evaluate import Evaluator
from worker.providers import open_provider
from worker.providers.base import (
    Description,
    Endpoint,
    Provider,
    RejectedError,
    Request,
    ThrottledError,
    TransientError,
)

END_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Answering:
    """A provider that answers what a function of the request says, and keeps the requests."""

    endpoint = Endpoint(provider="simulated", model="answering", label=None)

    def __init__(self, answer: Callable[[Request], str] = lambda _: "A", *, version: str | None = None) -> None:
        self._answer = answer
        self._version = version
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return Completion(text=self._answer(request), finish_reason="stop", server_version=self._version)

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def rows(engine: Engine, statement: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """What a statement returns, committed."""
    with engine.begin() as connection:
        found = connection.execute(text(statement), values)
        return [dict(each) for each in found.mappings()] if found.returns_rows else []


def states(engine: Engine) -> Counter[str]:
    """How many jobs are in each state."""
    return Counter(found["state"] for found in rows(engine, "SELECT state FROM job"))


def queue_study(engine: Engine, folder: Path, **changes: Any) -> list[int]:  # noqa: ANN401
    """A study whose jobs are all queued, as the dispatcher leaves them; their ids in order."""
    enqueue(engine, read_study(write_study(folder, **changes)))
    rows(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s'")
    return [found["id"] for found in rows(engine, "SELECT id FROM job ORDER BY position")]


def evaluator_of(
    engine: Engine, provider: Provider, stopping: threading.Event | None = None, worker: str = "w1"
) -> Evaluator:
    """A worker's evaluator whose every model is served by `provider`."""
    return evaluator_on(engine, provider, worker=worker, stopping=stopping)


def real_evaluator(engine: Engine, settings: Settings, environment: dict[str, str]) -> Evaluator:
    """A worker's evaluator with the providers that Bothways has, in an environment of its own."""

    def open_model(model: Model, pool: Pool | None) -> Provider:
        return open_provider(model, settings, pool, environment=environment)

    return evaluator_on(engine, open_model, worker="w1")


def simulated(**options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """The model of a study, with these options."""
    return [{"name": "sim", "provider": "simulated", "timeout_s": 5, "options": options}]


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_bundle_is_evaluated_whole_and_says_what_came_of_it(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    ids = queue_study(engine, tmp_path, models=simulated(knows=0.5))

    summary = real_evaluator(engine, settings, {}).evaluate(ids)

    assert summary == "answered 8"
    assert states(engine) == {"answered": 8}
    assert settings.simulated_ledger is not None
    ledger = [json.loads(line) for line in settings.simulated_ledger.read_text(encoding="utf-8").splitlines()]
    attempts = rows(engine, "SELECT id, completion FROM attempt")
    assert {str(found["id"]): found["completion"] for found in attempts} == {
        line["call"]: line["text"] for line in ledger if line["event"] == "answered"
    }


def test_a_bundle_that_comes_again_asks_nothing(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    provider = Answering()
    evaluator_of(engine, provider).evaluate(ids)

    assert evaluator_of(engine, provider).evaluate(ids) == "nothing to do"
    assert len(provider.requests) == 8


def test_two_workers_with_the_same_bundle_ask_each_job_once(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path, items=10)
    provider = Answering()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: evaluator_of(engine, provider, worker=name).evaluate(ids), ("w1", "w2")))

    assert states(engine) == {"answered": 20}
    assert len(provider.requests) == len(rows(engine, "SELECT id FROM attempt")) == 20


@pytest.mark.parametrize("retries", [0, 2])
def test_unreadable_answers_are_asked_for_again_as_the_study_says(engine: Engine, tmp_path: Path, retries: int) -> None:
    ids = queue_study(engine, tmp_path, retry={"invalid": retries})
    provider = Answering(lambda _: "Perhaps.")

    summary = evaluator_of(engine, provider).evaluate(ids)

    assert summary == "invalid 8"
    assert states(engine) == {"invalid": 8}
    tries = rows(engine, "SELECT job, count(*) AS calls, count(DISTINCT seed) AS seeds FROM attempt GROUP BY job")
    assert {(found["calls"], found["seeds"]) for found in tries} == {(retries + 1, retries + 1)}
    assert [request.number for request in provider.requests] == list(range(1, retries + 2)) * 8


def test_the_first_answer_that_can_be_read_ends_the_asking(engine: Engine, tmp_path: Path) -> None:
    (job, *_) = queue_study(engine, tmp_path, retry={"invalid": 5})
    said = iter(["Perhaps.", "Well.", "B", "never asked for"])

    evaluator_of(engine, Answering(lambda _: next(said))).evaluate([job])

    attempts = rows(engine, "SELECT id, outcome FROM attempt ORDER BY started_at")
    assert [found["outcome"] for found in attempts] == ["invalid", "invalid", "answered"]
    (counted,) = rows(engine, "SELECT counted_attempt FROM job WHERE id = :job", job=job)
    assert counted["counted_attempt"] == attempts[2]["id"]


def test_faults_end_a_job_as_failed_and_the_next_one_is_asked_all_the_same(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path, items=1, retry={"faults": 2})
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        if request.prompt == asked[0].prompt:
            raise TransientError("down")
        return "A"

    summary = evaluator_of(engine, Answering(answer)).evaluate(ids)

    assert summary == "failed 1 answered 1"
    assert states(engine) == {"failed": 1, "answered": 1}
    assert len(asked) == 3


def test_a_request_that_is_rejected_fails_its_own_job_only(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    first: list[str] = []

    def answer(request: Request) -> str:
        first.append(request.prompt)
        if request.prompt == first[0]:
            raise RejectedError("not this one")
        return "B"

    evaluator_of(engine, Answering(answer)).evaluate(ids)

    assert states(engine) == {"failed": 1, "answered": 7}


@pytest.mark.parametrize("wait_s", [7.5, 1e18, math.inf])
def test_a_throttled_job_goes_back_as_it_was_however_long_the_server_says(
    engine: Engine, tmp_path: Path, wait_s: float
) -> None:
    ids = queue_study(engine, tmp_path, items=1)

    def answer(_: Request) -> str:
        raise ThrottledError("slowly", wait_s=wait_s)

    summary = evaluator_of(engine, Answering(answer)).evaluate(ids)

    waiting = rows(engine, "SELECT state, not_before, losses FROM job")
    assert summary == "put back 2"
    assert [tuple(found.values()) for found in waiting] == [("pending", None, 0)] * 2
    assert len(rows(engine, "SELECT id FROM attempt")) == 2


def test_what_the_time_budget_leaves_over_goes_back(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path, bundles={"size": 8, "budget_s": 0.1})

    def answer(_: Request) -> str:
        time.sleep(0.06)
        return "A"

    summary = evaluator_of(engine, Answering(answer)).evaluate(ids)

    found = states(engine)
    assert 1 <= found["answered"] <= 2
    assert found == {"answered": found["answered"], "pending": 8 - found["answered"]}
    assert summary == f"answered {found['answered']} given back {found['pending']}"
    assert {found["losses"] for found in rows(engine, "SELECT losses FROM job")} == {0}


def test_a_worker_that_is_stopping_asks_nothing_more_and_gives_all_back(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    stopping, provider = threading.Event(), Answering()
    stopping.set()

    summary = evaluator_of(engine, provider, stopping).evaluate(ids)

    assert summary == "given back 8"
    assert states(engine) == {"pending": 8}
    assert provider.requests == []


def test_a_call_in_flight_ends_and_is_stored_when_the_worker_stops(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    stopping = threading.Event()

    def answer(_: Request) -> str:
        stopping.set()
        return "A"

    summary = evaluator_of(engine, Answering(answer), stopping).evaluate(ids)

    assert summary == "answered 1 given back 7"
    assert states(engine) == {"answered": 1, "pending": 7}


def test_a_job_that_waits_between_two_tries_goes_back_when_the_worker_stops(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    stopping = threading.Event()

    def answer(_: Request) -> str:
        stopping.set()
        raise TransientError("down")

    evaluator_of(engine, Answering(answer), stopping).evaluate(ids)

    assert states(engine) == {"pending": 8}
    assert len(rows(engine, "SELECT id FROM attempt")) == 1


@pytest.mark.parametrize("what", ["study", "condition"])
def test_what_is_paused_in_mid_bundle_is_asked_no_further(engine: Engine, tmp_path: Path, what: str) -> None:
    ids = queue_study(engine, tmp_path)

    def answer(_: Request) -> str:
        rows(engine, f"UPDATE {what} SET state = 'paused'")  # noqa: S608 - one of two words
        return "A"

    summary = evaluator_of(engine, Answering(answer)).evaluate(ids)

    assert summary == "answered 1 put back 7"
    assert states(engine) == {"answered": 1, "pending": 7}


def test_a_missing_key_stops_that_model_with_one_message_and_no_other(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    keyed = {"name": "keyed", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    ids = queue_study(engine, tmp_path, models=[keyed | {"api_key_env": "THE_KEY"}, *simulated()])
    evaluator = real_evaluator(engine, settings, {})

    for place in range(0, 16, 4):
        evaluator.evaluate(ids[place : place + 4])

    stops = rows(engine, "SELECT queue, reason FROM stop")
    assert [found["queue"] for found in stops] == ["openai.keyed"]
    assert "THE_KEY" in stops[0]["reason"]
    by_queue = rows(engine, "SELECT queue, state, count(*) AS jobs FROM job GROUP BY queue, state ORDER BY queue")
    assert [tuple(found.values()) for found in by_queue] == [
        ("openai.keyed", "pending", 8),
        ("simulated.sim", "answered", 8),
    ]
    assert rows(engine, "SELECT id FROM attempt WHERE error_kind IS NOT NULL") == []


def test_a_key_that_came_later_is_found_by_the_same_worker(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    keyed = {"name": "keyed", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    ids = queue_study(engine, tmp_path, models=[keyed | {"api_key_env": "THE_KEY"}], retry={"faults": 1})
    environment: dict[str, str] = {}
    evaluator = real_evaluator(engine, settings, environment)
    evaluator.evaluate(ids[:1])
    environment["THE_KEY"] = "sk-test"
    rows(engine, "DELETE FROM stop")
    rows(engine, "UPDATE job SET state = 'queued'")

    evaluator.evaluate(ids[:1])

    rest = evaluator.access.rests.of("openai.keyed")
    assert rest is not None
    assert "127.0.0.1:1 cannot be reached" in rest.reason
    assert rows(engine, "SELECT id FROM stop") == []


def test_connections_that_die_while_the_model_thinks_cost_nothing(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)

    def answer(_: Request) -> str:
        rows(engine, END_CONNECTIONS)
        return "A"

    provider = Answering(answer)
    summary = evaluator_of(engine, provider).evaluate(ids)

    assert summary == "answered 8"
    assert len(provider.requests) == len(rows(engine, "SELECT id FROM attempt")) == 8


def test_a_connection_that_dies_in_the_commit_costs_no_second_call(engine: Engine, tmp_path: Path) -> None:
    (job, *_) = queue_study(engine, tmp_path)
    provider = Answering()
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    with ThreadPoolExecutor(1) as threads, engine.connect() as blocker:
        blocker.execute(text("LOCK TABLE attempt IN SHARE MODE"))
        evaluating = threads.submit(evaluator_of(engine, provider).evaluate, [job])
        await_that(lambda: bool(rows(engine, waiting)))
        for found in rows(engine, waiting):
            rows(engine, "SELECT pg_terminate_backend(:pid)", pid=found["pid"])
        blocker.rollback()

        assert evaluating.result(timeout=20) == "answered 1"

    assert len(provider.requests) == 1
    assert [found["job"] for found in rows(engine, "SELECT job FROM attempt")] == [job]


def test_at_the_end_of_the_grace_jobs_go_back_and_a_late_answer_is_still_kept(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)
    asked, released = threading.Event(), threading.Event()

    def answer(_: Request) -> str:
        asked.set()
        assert released.wait(10)
        return "A"

    stopping = threading.Event()
    evaluator = evaluator_of(engine, Answering(answer), stopping)
    with ThreadPoolExecutor(1) as threads:
        evaluating = threads.submit(evaluator.evaluate, ids)
        assert asked.wait(10)
        stopping.set()
        evaluator.give_back_all()
        at_the_end = states(engine)
        released.set()
        evaluating.result(timeout=10)

    assert at_the_end == {"pending": 8}
    assert states(engine) == {"pending": 8}
    assert [found["outcome"] for found in rows(engine, "SELECT outcome FROM attempt")] == ["answered"]


def test_what_answered_is_stored_once_and_named_by_every_attempt(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)

    evaluator_of(engine, Answering()).evaluate(ids)

    (deployment,) = rows(engine, "SELECT id, provider, model FROM deployment")
    assert (deployment["provider"], deployment["model"]) == ("simulated", "answering")
    assert {found["deployment"] for found in rows(engine, "SELECT deployment FROM attempt")} == {deployment["id"]}


def test_a_version_that_no_row_can_hold_costs_no_answer(engine: Engine, tmp_path: Path) -> None:
    ids = queue_study(engine, tmp_path)

    summary = evaluator_of(engine, Answering(version="1.0\x00")).evaluate(ids)

    assert summary == "answered 8"
    assert states(engine) == {"answered": 8}
