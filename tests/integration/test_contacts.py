"""First contact, pins and stops on a real Postgres, through the real clients, at servers that behave and misbehave."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from contract.models import Model
from contract.pools import Pool
from contract.settings import Settings
from ops.progress import read_progress
from producer.steering import steer
from tests.fake_gemini import FakeGemini, fake_gemini
from tests.fake_ollama import FakeOllama, fake_ollama
from tests.fake_openai import FakeOpenAI, fake_openai
from tests.jobs import await_that, beat, change, plan, rows, states
from tests.workers import evaluator_on
from worker.contact import CANARY_PROMPT
from worker.contact_store import ContactStore
from worker.evaluate import Evaluator
from worker.providers import open_provider
from worker.providers.base import Provider
from worker.store import JobStore

ENVIRONMENT = {"GEMINI_API_KEY": "key-of-this-test", "OPENAI_KEY": "key-of-this-test"}
QUEUE = "ollama.good:latest@4096"
"""Where the jobs of the model that GPU hosts serve wait."""
FORMAT = [{"format": "closed", "sampling": {"temperature": 0.7, "max_tokens": 8, "seed": 1}}]


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    """A server of the Gemini API."""
    with fake_gemini() as server:
        yield server


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    """A GPU host."""
    with fake_ollama() as server:
        yield server


@pytest.fixture
def openai() -> Iterator[FakeOpenAI]:
    """An OpenAI-compatible server."""
    with fake_openai() as server:
        server.answer = lambda _: "A"
        yield server


def worker(engine: Engine, settings: Settings, host: FakeOllama | None = None) -> Evaluator:
    """A worker with the real providers."""
    settings = settings if host is None else settings.model_copy(update={"ollama_url": host.base_url})

    def open_it(model: Model, pool: Pool | None) -> Provider:
        return open_provider(model, settings, pool, environment=ENVIRONMENT)

    endpoint = None if host is None else host.label
    return evaluator_on(engine, open_it, store=JobStore(engine, worker="w", endpoint=endpoint))


def gemini_model(server: FakeGemini, model: str = "good", name: str = "g", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A Gemini model of a study file."""
    return {"name": name, "provider": "gemini", "model": model, "base_url": server.base_url, "timeout_s": 5} | more


def openai_model(server: FakeOpenAI, model: str = "says", name: str = "o", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """An OpenAI-compatible model of a study file."""
    return {"name": name, "provider": "openai", "model": model, "base_url": server.base_url, "timeout_s": 5} | more


def ollama_model(model: str = "good", name: str = "l", **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """A model of a GPU host in a study file."""
    return {"name": name, "provider": "ollama", "model": model, "timeout_s": 5, "options": options}


def queued(engine: Engine, folder: Path, *models: dict[str, Any], **changes: Any) -> list[int]:  # noqa: ANN401
    """A study of these models whose jobs are all queued; their ids."""
    plan(engine, folder, models=list(models), **({"formats": FORMAT} | changes))
    change(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s'")
    return [found["id"] for found in rows(engine, "SELECT id FROM job ORDER BY position")]


def again(engine: Engine) -> None:
    """Queue what is pending."""
    change(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s' WHERE state = 'pending'")


def stops(engine: Engine) -> list[tuple[str, str, str | None]]:
    """Queue, host and digest of every stop."""
    found = rows(engine, "SELECT queue, endpoint, digest FROM stop ORDER BY queue")
    return [(row["queue"], row["endpoint"], row["digest"]) for row in found]


def test_a_deployment_is_asked_one_question_of_ours_before_its_jobs(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini))

    summary = worker(engine, settings).evaluate(ids)

    asked = [received.body["contents"][0]["parts"][0]["text"] for received in gemini.received]
    assert summary == "answered 8"
    assert (asked[0], len(asked), asked.count(CANARY_PROMPT)) == (CANARY_PROMPT, 9, 1)
    (kept,) = rows(engine, "SELECT passed, completion, tokens_in, error_kind, deployment FROM canary")
    assert (kept["passed"], kept["completion"], kept["error_kind"]) == (True, "A", None)
    assert kept["tokens_in"] is not None
    assert kept["deployment"] is not None


def test_what_one_worker_has_met_another_does_not_ask_again(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini))
    worker(engine, settings).evaluate(ids[:4])

    worker(engine, settings).evaluate(ids[4:])

    assert len(gemini.received) == 1 + 8
    assert len(rows(engine, "SELECT id FROM canary")) == 1


def test_threads_that_come_together_meet_a_deployment_once(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    gemini.latency_s = 0.2
    ids = queued(engine, tmp_path, gemini_model(gemini), items=8)
    evaluator = worker(engine, settings)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda job: evaluator.evaluate([job]), ids))

    assert states(engine) == {"answered": 16}
    assert len(rows(engine, "SELECT id FROM canary")) == 1


FATAL = {
    "retired model": ("404", "retired"),
    "wrong key": ("401", "401"),
    "key that is none": ("key-invalid", "API key not valid"),
    "forbidden": ("403", "403"),
    "no quota at all": ("429-zero", "limit: 0"),
    "bad request": ("400", "400"),
    "answer eaten by thinking": ("max-tokens-empty", "raise options.room"),
    "another model answers": ("rerouted", "answered though"),
}


@pytest.mark.parametrize(("model", "said"), FATAL.values(), ids=FATAL)
def test_what_would_end_every_call_stops_that_model_after_one_and_no_other(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path, model: str, said: str
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini, model, "bad"), gemini_model(gemini, name="good"))
    evaluator = worker(engine, settings)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda place: evaluator.evaluate(ids[place : place + 2]), range(0, 16, 2)))

    (stop,) = rows(engine, "SELECT queue, endpoint, reason FROM stop")
    assert (stop["queue"], stop["endpoint"]) == ("gemini.bad", "")
    assert said in stop["reason"]
    by_queue = rows(engine, "SELECT DISTINCT queue, state FROM job ORDER BY queue")
    assert [tuple(found.values()) for found in by_queue] == [("gemini.bad", "pending"), ("gemini.good", "answered")]
    assert rows(engine, "SELECT id FROM attempt WHERE error_kind IS NOT NULL") == []
    failed = rows(engine, "SELECT error_message FROM canary WHERE NOT passed")
    assert len(failed) == 1


@pytest.mark.parametrize("model", ["500", "502-html", "503", "504", "reset", "html", "429-minute", "429-bare"])
def test_a_fault_that_may_pass_is_no_verdict(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path, model: str
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini, model))
    evaluator = worker(engine, settings)

    summary = evaluator.evaluate(ids)

    assert summary == "put back 1 given back 7"
    assert stops(engine) == []
    assert evaluator.access.rests.of("gemini.g") is not None
    assert states(engine) == {"pending": 8}
    assert rows(engine, "SELECT id FROM job WHERE not_before IS NOT NULL OR losses > 0") == []
    assert len(gemini.received) == 1


def test_a_server_that_is_not_there_is_asked_no_job(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    nowhere = {"name": "o", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    ids = queued(engine, tmp_path, nowhere)
    evaluator = worker(engine, settings)

    evaluator.evaluate(ids)
    evaluator.evaluate(ids)

    rest = evaluator.access.rests.of("openai.o")
    assert rest is not None
    assert "127.0.0.1:9 cannot be reached" in rest.reason
    assert rows(engine, "SELECT id FROM attempt") == []


def test_a_missing_key_stops_the_model_with_the_name_of_its_variable(
    engine: Engine, settings: Settings, openai: FakeOpenAI, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, openai_model(openai, api_key_env="NOT_SET_ANYWHERE"))

    worker(engine, settings).evaluate(ids)

    (stop,) = rows(engine, "SELECT reason FROM stop")
    assert "NOT_SET_ANYWHERE" in stop["reason"]
    assert openai.received == []


def test_a_server_that_breaks_down_loses_no_job_and_is_met_again_before_the_next(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini), items=8)
    evaluator = worker(engine, settings)
    evaluator.evaluate(ids[:2])
    gemini.breaks = "503"

    for job in ids[2:]:
        evaluator.evaluate([job])
        again(engine)
    assert evaluator.access.rests.of("gemini.g") is not None
    calls = len(gemini.received)
    gemini.breaks = None
    await_that(lambda: evaluator.access.rests.of("gemini.g") is None)
    evaluator.evaluate(ids)

    assert calls < 16
    assert states(engine) == {"answered": 16}
    assert [found["passed"] for found in rows(engine, "SELECT passed FROM canary ORDER BY started_at")] == [True, True]


def test_another_model_version_does_not_count_until_a_person_accepts_it(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini, "changing"))
    gemini.version = "changing-001"
    evaluator = worker(engine, settings)
    evaluator.evaluate(ids[:2])
    gemini.version = "changing-002"

    evaluator.evaluate(ids[2:])

    assert states(engine) == {"answered": 2, "pending": 6}
    assert stops(engine) == [("gemini.g", "", "changing-002")]
    (attempt,) = rows(engine, "SELECT outcome, completion, error_kind FROM attempt WHERE answer IS NULL")
    assert dict(attempt) == {"outcome": "no_completion", "completion": "A", "error_kind": "misconfigured"}
    beat(engine, "gemini.g")
    (waiting,) = read_progress(engine, "trial").waiting
    assert "changing-002 answers now, and what is there is by changing-001" in str(waiting.reason)
    assert "bothways resume trial --accept-digest" in str(waiting.reason)

    steered = steer(engine, "trial", "active", accept_digest=True)
    again(engine)
    worker(engine, settings).evaluate(ids)

    assert steered.accepted == ("changing-002",)
    assert states(engine) == {"answered": 8}
    assert stops(engine) == []


def test_resuming_without_accepting_stops_again(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini, "rerouted"))
    evaluator = worker(engine, settings)
    evaluator.evaluate(ids)

    steer(engine, "trial", "active")
    again(engine)
    evaluator.evaluate(ids)

    assert len(stops(engine)) == 1
    assert states(engine) == {"pending": 8}


def test_a_model_that_another_answers_for_may_be_accepted(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini, "rerouted"))
    worker(engine, settings).evaluate(ids)

    steer(engine, "trial", "active", accept_digest=True)
    again(engine)
    worker(engine, settings).evaluate(ids)

    assert states(engine) == {"answered": 8}


def test_a_model_on_a_host_is_loaded_and_described_before_it_is_asked(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model(context=2048))

    worker(engine, settings, ollama).evaluate(ids)

    assert states(engine) == {"answered": 8}
    assert ollama.loads == ["good:latest"]
    (deployment,) = rows(
        engine, "SELECT digest, quantisation, context_length, server_version, template_digest, endpoint FROM deployment"
    )
    assert deployment["digest"] == ollama.tags["good:latest"]
    assert None not in deployment.values()


def test_a_model_that_was_replaced_on_one_host_stops_that_host_alone(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model())
    worker(engine, settings, ollama).evaluate(ids[:2])

    with fake_ollama() as other:
        other.tags["good:latest"] = "b" * 64
        worker(engine, settings, other).evaluate(ids[2:4])
        label = other.label
        assert stops(engine) == [(QUEUE, label, "b" * 64)]
        again(engine)
        assert worker(engine, settings, other).evaluate(ids[4:]) == "nothing to do"
    again(engine)
    worker(engine, settings, ollama).evaluate(ids)

    assert states(engine) == {"answered": 8}


@pytest.mark.parametrize(
    ("options", "said"),
    [({"digest": "0" * 12}, "the study asks for 000000000000"), ({"context": 1_000_000}, "lower options.context")],
)
def test_a_host_without_what_the_study_asks_for_is_asked_nothing(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    ids = queued(engine, tmp_path, ollama_model(**options))

    worker(engine, settings, ollama).evaluate(ids)

    (stop,) = rows(engine, "SELECT reason, endpoint FROM stop")
    assert said in stop["reason"]
    assert stop["endpoint"] == ollama.label
    assert ollama.loads == []


def test_a_stop_whose_reason_has_gone_is_cleared_by_a_call_that_goes_well(
    engine: Engine, settings: Settings, gemini: FakeGemini, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, gemini_model(gemini))
    gemini.breaks = "401"
    evaluator = worker(engine, settings)
    evaluator.evaluate(ids)
    change(engine, "UPDATE stop SET tried_at = now() - interval '601 s'")
    contacts = evaluator.access.contacts

    contacts.try_again(["gemini"], "")
    assert len(stops(engine)) == 1
    gemini.breaks = None
    contacts.try_again(["gemini"], "")
    assert len(stops(engine)) == 1, "somebody looked a moment ago"
    change(engine, "UPDATE stop SET tried_at = now() - interval '601 s'")
    contacts.try_again(["openai"], "")
    contacts.try_again(["gemini"], "another-host:11434")
    assert len(stops(engine)) == 1
    contacts.try_again(["gemini"], "")

    assert stops(engine) == []
    again(engine)
    evaluator.evaluate(ids)
    assert states(engine) == {"answered": 8}


def test_a_host_without_memory_for_a_model_rests_from_it_for_ten_minutes_at_once(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model("no-memory"))
    evaluator = worker(engine, settings, ollama)

    summary = evaluator.evaluate(ids)

    (left_s, rest) = evaluator.access.rests.now()["ollama.no-memory:latest@4096"]
    assert summary == "put back 1 given back 7"
    assert 590 < left_s <= 600
    assert "model requires more system memory" in rest.reason
    assert states(engine) == {"pending": 8}
    assert stops(engine) == []


def test_a_stop_of_a_host_is_tried_again_without_pushing_out_what_it_serves(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model())
    evaluator = worker(engine, settings, ollama)
    evaluator.evaluate(ids[:4])
    wanted = ollama.tags.pop("good:latest")
    evaluator.evaluate(ids[4:])
    assert [endpoint for _, endpoint, _ in stops(engine)] == [ollama.label]
    contacts, endpoint = evaluator.access.contacts, ollama.label

    change(engine, "UPDATE stop SET tried_at = now() - interval '601 s'")
    contacts.try_again(["ollama"], endpoint)
    assert len(stops(engine)) == 1
    ollama.tags["good:latest"] = wanted
    change(engine, "UPDATE stop SET tried_at = now() - interval '601 s'")
    asked = len(ollama.calls)
    contacts.try_again(["ollama"], endpoint)

    assert stops(engine) == []
    assert len(ollama.calls) == asked
    again(engine)
    evaluator.evaluate(ids)
    assert ollama.calls[asked].prompt == CANARY_PROMPT
    assert states(engine) == {"answered": 8}


def test_a_host_is_asked_about_a_model_once_for_all_its_conditions(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model())

    worker(engine, settings, ollama).evaluate(ids)

    assert len(rows(engine, "SELECT id FROM condition")) == 2
    assert [received.path for received in ollama.received].count("/api/show") == 1


def test_a_bundle_of_a_model_that_is_not_served_now_goes_back_untouched(
    engine: Engine, settings: Settings, ollama: FakeOllama, tmp_path: Path
) -> None:
    ids = queued(engine, tmp_path, ollama_model())
    evaluator = worker(engine, settings, ollama)
    evaluator.serves = lambda queue: queue != QUEUE

    assert evaluator.evaluate(ids) == "given back 8"
    assert ollama.received == []
    assert states(engine) == {"pending": 8}


def test_first_answers_that_come_together_pin_one_version(engine: Engine, tmp_path: Path) -> None:
    study = plan(engine, tmp_path)
    store = ContactStore(engine, worker="w")
    barrier = threading.Barrier(8)

    def pin(number: int) -> frozenset[str]:
        barrier.wait()
        return store.pin(study, "simulated.sim", f"version-{number % 2}")

    with ThreadPoolExecutor(8) as threads:
        pinned = set(threads.map(pin, range(8)))

    assert len(pinned) == 1
    assert len(rows(engine, "SELECT digest FROM pin")) == 1
