"""One item whole, as the rows hold it: every attempt of every job, and the prompts exactly as they were sent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from contract.completion import Completion
from contract.errors import UsageError
from ops.inspection import JobSeen, read_item
from producer.enqueue import enqueue
from producer.steering import Selection, retry
from producer.study_file import read_study
from tests.builders import item_rows, write_study
from tests.workers import evaluator_on
from worker.providers.base import Description, Endpoint, RejectedError, Request

SIM = {"name": "sim", "provider": "simulated"}
SECOND = {"name": "second", "provider": "simulated"}
CAPITALS = {"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}
RIVERS = CAPITALS | {"name": "rivers"}


class Scripted:
    """A provider that answers what a function of the request says, and keeps the requests."""

    endpoint = Endpoint(provider="simulated", model="scripted", label="http://127.0.0.1:1/v1")

    def __init__(self, answer: Callable[[Request], Completion]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self._answer(request)

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def saying(words: str) -> Scripted:
    """A provider that says the same to everything."""
    return Scripted(lambda _: Completion(text=words, finish_reason="stop"))


def plan(engine: Engine, folder: Path, **changes: Any) -> None:  # noqa: ANN401
    """Enqueue a study."""
    enqueue(engine, read_study(write_study(folder, **changes)))


def ask_all(engine: Engine, provider: Scripted) -> None:
    """Let a worker ask everything that is pending."""
    with engine.begin() as connection:
        ids = list(
            connection.execute(
                text("""
                    WITH due AS (
                        UPDATE job SET state = 'queued', lease_until = now() + interval '900 s'
                        WHERE state = 'pending' RETURNING id, position
                    ) SELECT id FROM due ORDER BY position
                """)
            ).scalars()
        )
    evaluator_on(engine, provider, worker="w1").evaluate(ids)


def of_order(jobs: list[JobSeen], variant: str) -> JobSeen:
    """The one job of an order."""
    (job,) = (job for job in jobs if job.variant == variant)
    return job


def test_an_item_has_a_job_for_each_order_that_nobody_asked_yet(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)

    jobs = read_item(engine, "trial", "q1")

    assert [(job.variant, job.order) for job in jobs] == [("12", (0, 1)), ("21", (1, 0))]
    assert {(job.source_id, job.model, job.dataset, job.state, job.round) for job in jobs} == {
        ("q1", "sim", "capitals", "pending", 1)
    }
    assert [(job.answer, job.counted_attempt, job.attempts) for job in jobs] == [(None, None, ())] * 2
    assert jobs[0].item["choices"] == ["right 1", "wrong 1"]


def test_every_attempt_of_every_round_is_there_in_the_order_of_the_calls(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=1, retry={"invalid": 1})
    unreadable, clear = saying("who knows"), saying("A")
    ask_all(engine, unreadable)
    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)
    ask_all(engine, clear)

    jobs = read_item(engine, "trial", "q0")

    requests = unreadable.requests + clear.requests
    for job in jobs:
        outcomes = [(attempt.round, attempt.outcome, attempt.completion) for attempt in job.attempts]
        assert outcomes == [(1, "invalid", "who knows"), (1, "invalid", "who knows"), (2, "answered", "A")]
        sent = [request for request in requests if request.prompt == job.attempts[0].prompt]
        assert [(attempt.id, attempt.seed) for attempt in job.attempts] == [
            (str(request.call), request.seed) for request in sent
        ]
        assert (job.state, job.round, job.counted_attempt) == ("answered", 2, job.attempts[2].id)
    assert {(job.variant, job.answer) for job in jobs} == {("12", 0), ("21", 1)}


def test_the_prompts_are_those_that_were_sent_to_the_last_character(engine: Engine, tmp_path: Path) -> None:
    odd = item_rows(1)[0] | {
        "question": "Tabs\tand\r\nbreaks, \x1b[31mred\x1b[0m, [bold]braces[/bold] {x} :100: … è\u2028 ",
        "choices": ["  one ", "two\n\n"],
    }
    plan(engine, tmp_path, items=[odd])
    provider = saying("A")
    ask_all(engine, provider)

    jobs = read_item(engine, "trial", "q0")

    sent = {str(request.call): request.prompt for request in provider.requests}
    assert {attempt.id: attempt.prompt for job in jobs for attempt in job.attempts} == sent
    assert len(set(sent.values())) == 2
    assert all(odd["question"] in prompt for prompt in sent.values())


def test_an_attempt_says_what_was_read_by_which_rule_and_who_answered(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=1)
    completion = Completion(
        text="B",
        thinking="hm",
        finish_reason="stop",
        tokens_in=21,
        tokens_out=0,
        model_reported="scripted-7b",
        server_version="v1.2",
    )
    ask_all(engine, Scripted(lambda _: completion))

    (attempt,) = of_order(read_item(engine, "trial", "q0"), "21").attempts

    assert (attempt.outcome, attempt.answer, attempt.reason) == ("answered", 0, None)
    assert (attempt.tier is not None, attempt.reading, attempt.reading_version is not None) == (True, "strict", True)
    assert (attempt.completion, attempt.thinking, attempt.finish_reason) == ("B", "hm", "stop")
    assert (attempt.tokens_in, attempt.tokens_out, attempt.tokens_cached) == (21, 0, None)
    assert (attempt.answered_by, attempt.endpoint, attempt.server_version) == (
        "scripted-7b",
        "http://127.0.0.1:1/v1",
        "v1.2",
    )
    assert attempt.worker == "w1"


def test_an_unreadable_completion_has_its_reason(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=1)
    ask_all(engine, saying("C"))

    (attempt,) = of_order(read_item(engine, "trial", "q0"), "12").attempts

    assert (attempt.outcome, attempt.answer, attempt.reason) == ("invalid", None, "other_letter")


def test_a_call_without_a_completion_has_its_error_and_nobody_who_answered(engine: Engine, tmp_path: Path) -> None:
    def reject(_: Request) -> Completion:
        raise RejectedError("HTTP 400: no such thing")

    plan(engine, tmp_path, items=1)
    ask_all(engine, Scripted(reject))

    job = of_order(read_item(engine, "trial", "q0"), "12")

    (attempt,) = job.attempts
    assert (job.state, job.counted_attempt) == ("failed", None)
    assert (attempt.outcome, attempt.error_kind, attempt.error_message) == (
        "no_completion",
        "rejected",
        "HTTP 400: no such thing",
    )
    assert (attempt.completion, attempt.answered_by, attempt.reading, attempt.tokens_in) == (None, None, None, None)
    assert attempt.prompt is not None


def test_an_item_is_shown_for_every_model_dataset_and_repeat_its_orders_beside_each_other(
    engine: Engine, tmp_path: Path
) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND], datasets=[CAPITALS, RIVERS], repeats=2)

    jobs = read_item(engine, "trial", "q1")

    assert [(job.dataset, job.model, job.repeat, job.variant) for job in jobs] == [
        (dataset, model, repeat, variant)
        for dataset in ("capitals", "rivers")
        for model in ("second", "sim")
        for repeat in (1, 2)
        for variant in ("12", "21")
    ]


def test_one_model_can_be_shown_alone(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND])

    jobs = read_item(engine, "trial", "q1", model="second")

    assert [(job.model, job.variant) for job in jobs] == [("second", "12"), ("second", "21")]


def test_the_same_item_of_another_study_is_none_of_this_one(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path / "one", study="one")
    ask_all(engine, saying("A"))
    plan(engine, tmp_path / "two", study="two")

    jobs = read_item(engine, "two", "q1")

    assert [(job.state, job.attempts) for job in jobs] == [("pending", ())] * 2


def test_what_is_no_longer_planned_is_shown_as_such(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=3)
    ask_all(engine, saying("A"))
    plan(engine, tmp_path, items=2)

    jobs = read_item(engine, "trial", "q2")

    assert [(job.planned, job.state, len(job.attempts)) for job in jobs] == [(False, "answered", 1)] * 2


def test_an_unknown_item_is_refused_and_some_that_exist_are_named(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=7)

    with pytest.raises(UsageError) as refused:
        read_item(engine, "trial", "q99")

    assert str(refused.value) == "no item 'q99' in trial; items are: q0, q1, q2, q3, q4 ..."


def test_an_unknown_model_is_refused_and_the_known_ones_are_named(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND])

    with pytest.raises(UsageError) as refused:
        read_item(engine, "trial", "q1", model="third")

    assert "'third'" in str(refused.value)
    assert "second, sim" in str(refused.value)
