"""One call of one job: whatever the provider does becomes one attempt that a row can hold, and nothing is raised."""

import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.conditions import Rules
from contract.errors import ErrorKind
from contract.formats import Variant, closed
from contract.forms import ClosedFormat, Sampling
from contract.models import SimulatedModel
from contract.prompts import ANY_LANGUAGE, PromptSet
from contract.storable import MAX_CHARACTERS
from contract.study import Bundles, Retry
from tests.builders import make_item
from worker.ask import Asked, ask_once, by_another, cannot_ask
from worker.prepare import prepare
from worker.providers.base import (
    Description,
    Endpoint,
    MisconfiguredError,
    Provider,
    ProviderError,
    RefusedError,
    RejectedError,
    Request,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.records import ClaimedJob, Deployment
from worker.retry import Tally, Verdict

PROMPT = PromptSet(name="plain", bodies={ANY_LANGUAGE: "{question}\n{choices}"})
NUL, HALF_A_PAIR = "\x00", "\ud83d"


class Saying:
    """A provider that always says the same."""

    endpoint = Endpoint(provider="test", model="asked-for", label="host:1")

    def __init__(self, completion: Completion) -> None:
        self.completion = completion
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self.completion

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


class Raising:
    """A provider whose every call ends the same way."""

    endpoint = Endpoint(provider="test", model="asked-for", label="host:1")

    def __init__(self, error: Exception) -> None:
        self.error = error

    def complete(self, request: Request) -> Completion:  # noqa: ARG002
        raise self.error

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def make_job(prompt: PromptSet = PROMPT, **changes: Any) -> ClaimedJob:  # noqa: ANN401
    """A claimed job that is shown its choices swapped: the right one stands behind B."""
    values: dict[str, Any] = {
        "id": 1,
        "claim": 1,
        "round": 1,
        "part": 0,
        "repeat": 1,
        "study": 1,
        "queue": "test.m",
        "item": make_item(),
        "variant": Variant(order=(1, 0)),
        "rules": Rules(
            model=SimulatedModel(provider="simulated", name="m", timeout_s=7),
            format=ClosedFormat(format="closed", sampling=Sampling(temperature=0.5, seed=3)),
            prompt=prompt,
            retry=Retry(),
            bundles=Bundles(),
        ),
        "tally": Tally(),
    }
    return ClaimedJob(**(values | changes))


def ask(provider: Provider, job: ClaimedJob | None = None, tally: Tally | None = None) -> Asked:
    """One call of `provider`."""
    job, tally = job or make_job(), tally or Tally()
    return ask_once(job, tally, prepare(job, tally), provider)


def texts_of(asked: Asked) -> list[str]:
    """Every text that would be written to a row."""
    values = [*asdict(asked.attempt).values(), *(asdict(asked.deployment).values() if asked.deployment else ())]
    return [value for value in values if isinstance(value, str)]


def is_storable(text: str) -> bool:
    """Whether Postgres takes it."""
    return NUL not in text and text == text.encode("utf-8", "ignore").decode("utf-8")


def test_an_answer_is_kept_with_what_was_sent_and_who_answered() -> None:
    job = make_job()
    provider = Saying(
        Completion(
            text="B",
            thinking="hm",
            finish_reason="stop",
            tokens_in=9,
            tokens_out=1,
            tokens_cached=8,
            model_reported="answered-by",
            server_version="v1",
        )
    )

    asked = ask(provider, job)

    attempt = asked.attempt
    assert attempt.prompt == closed.render(job.item, job.variant, PROMPT)
    assert (attempt.outcome, attempt.answer, attempt.tier, attempt.reason) == ("answered", 0, "whole", None)
    assert (attempt.completion, attempt.completion_length, attempt.thinking) == ("B", 1, "hm")
    assert (attempt.tokens_in, attempt.tokens_out, attempt.tokens_cached) == (9, 1, 8)
    assert (attempt.reading, attempt.reading_version) == ("strict", 2)
    assert (attempt.error_kind, attempt.error_message) == (None, None)
    assert asked.verdict == Verdict(answer=Answer(choice=0, tier="whole"))
    assert asked.deployment == Deployment(provider="test", model="answered-by", endpoint="host:1", server_version="v1")


def test_a_completion_is_read_as_the_study_says_and_kept_with_the_reading_s_name_and_version() -> None:
    job = make_job()
    first_letter = ClosedFormat(format="closed", reading="first-letter")
    reproducing = replace(job, rules=replace(job.rules, format=first_letter))
    provider = Saying(Completion(text="A human should decide."))

    strict, first = ask(provider, job).attempt, ask(provider, reproducing).attempt

    assert (strict.outcome, strict.reading, strict.reading_version) == ("invalid", "strict", 2)
    assert (first.outcome, first.tier, first.reading, first.reading_version) == ("answered", "first", "first-letter", 1)
    assert first.answer == job.variant.order[0]


def test_a_model_that_does_not_tell_its_name_is_the_one_that_was_asked_for() -> None:
    asked = ask(Saying(Completion(text="A")))

    assert asked.deployment is not None
    assert asked.deployment.model == "asked-for"


def test_the_request_is_the_attempt_s_own() -> None:
    provider = Saying(Completion(text="A"))

    asked = ask(provider, tally=Tally(calls=4, invalid=2))

    (request,) = provider.requests
    assert request == Request(
        call=asked.attempt.id,
        number=5,
        prompt=asked.attempt.prompt or "",
        sampling=Sampling(temperature=0.5, seed=3),
        seed=make_job().seed(2),
        timeout_s=7,
    )


def test_every_call_has_an_id_of_its_own() -> None:
    provider = Saying(Completion(text="A"))

    ids = {ask(provider).attempt.id for _ in range(3)}

    assert len(ids) == 3
    assert all(isinstance(each, uuid.UUID) for each in ids)


def test_a_seed_is_the_same_for_both_orders_and_another_for_each_repeat_and_resample() -> None:
    job = make_job()

    assert job.seed(0) == replace(job, variant=Variant(order=(0, 1))).seed(0)
    assert (
        len({job.seed(0), job.seed(1), replace(job, repeat=2).seed(0), replace(job, item=make_item("q2")).seed(0)}) == 4
    )
    assert 0 <= job.seed(0) < 2**31


def test_a_completion_without_an_answer_is_invalid_and_kept() -> None:
    asked = ask(Saying(Completion(text="Perhaps.", finish_reason="stop")))

    attempt = asked.attempt
    assert (attempt.outcome, attempt.answer, attempt.reason) == ("invalid", None, InvalidReason.UNREADABLE)
    assert attempt.completion == "Perhaps."
    assert asked.deployment is not None


def test_an_empty_completion_is_invalid_and_not_missing() -> None:
    attempt = ask(Saying(Completion(text="", finish_reason="stop"))).attempt

    assert (attempt.outcome, attempt.reason) == ("invalid", InvalidReason.EMPTY)
    assert (attempt.completion, attempt.completion_length) == ("", 0)


@pytest.mark.parametrize(
    ("error", "outcome", "verdict"),
    [
        (TransientError("why"), "no_completion", Verdict(error=ErrorKind.TRANSIENT)),
        (ThrottledError("why"), "no_completion", Verdict(error=ErrorKind.THROTTLED)),
        (RefusedError("why"), "refused", Verdict(error=ErrorKind.REFUSED)),
        (TooLongError("why"), "no_completion", Verdict(error=ErrorKind.TOO_LONG)),
        (MisconfiguredError("why"), "no_completion", Verdict(error=ErrorKind.MISCONFIGURED)),
        (RejectedError("why"), "no_completion", Verdict(error=ErrorKind.REJECTED)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_of_a_provider_becomes_an_attempt_of_its_kind(
    error: ProviderError, outcome: str, verdict: Verdict
) -> None:
    asked = ask(Raising(error))

    attempt = asked.attempt
    assert (attempt.outcome, attempt.error_kind, attempt.error_message) == (outcome, verdict.error, "why")
    assert (attempt.completion, attempt.completion_length, attempt.answer) == (None, None, None)
    assert attempt.prompt is not None
    assert asked.verdict == verdict
    assert asked.deployment is None


@pytest.mark.parametrize(
    "error", [RuntimeError("key sk-123 in it"), KeyError("sk-123"), TimeoutError(), RecursionError(), MemoryError()]
)
def test_an_error_that_nobody_knows_may_pass_and_its_text_is_not_trusted(error: Exception) -> None:
    asked = ask(Raising(error))

    assert asked.verdict == Verdict(error=ErrorKind.TRANSIENT)
    assert asked.attempt.error_message == f"unknown error {type(error).__name__}"
    assert isinstance(asked.fault, TransientError)


def test_a_constrained_format_offers_the_letters_and_nothing_else() -> None:
    provider = Saying(Completion(text='"B"'))
    free = make_job()
    constrained = replace(
        free, rules=replace(free.rules, format=free.rules.format.model_copy(update={"constrain": True}))
    )

    asked = ask(provider, constrained)
    ask(provider, free)

    assert [request.allowed for request in provider.requests] == [("A", "B"), None]
    assert asked.attempt.answer == 0


def test_log_probabilities_are_kept_as_far_as_json_can_hold_them() -> None:
    told = {"A": -0.5, NUL: -1.0, "B": float("-inf"), "C": float("nan")}

    assert ask(Saying(Completion(text="A", logprobs=told))).attempt.logprobs == {"A": -0.5, "␀": -1.0}
    assert ask(Saying(Completion(text="A", logprobs={}))).attempt.logprobs is None


def test_who_answered_is_told_by_the_server_and_by_the_answer() -> None:
    described = Description(digest="d", quantisation="Q4", context_length=4096, server_version="9", template_digest="t")
    job = make_job()
    provider = Saying(Completion(text="A", model_reported="m-001"))

    asked = ask_once(job, Tally(), prepare(job, Tally()), provider, described, pool="first")

    assert asked.deployment == Deployment(
        provider="test",
        model="m-001",
        endpoint="host:1",
        server_version="9",
        digest="d",
        quantisation="Q4",
        context_length=4096,
        template_digest="t",
    )
    assert (asked.attempt.pool, asked.reported) == ("first", "m-001")


def test_what_another_model_said_is_kept_and_counts_as_no_answer() -> None:
    asked = by_another(ask(Saying(Completion(text="A", tokens_in=9))), "m-002 answers now")

    attempt = asked.attempt
    assert (attempt.completion, attempt.tokens_in, attempt.outcome, attempt.answer) == ("A", 9, "no_completion", None)
    assert (attempt.error_kind, attempt.error_message) == (ErrorKind.MISCONFIGURED, "m-002 answers now")
    assert asked.verdict == Verdict(error=ErrorKind.MISCONFIGURED)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(PromptSet(name="p", bodies={"it": "", "en": ""})), id="no body for the item"),
        pytest.param(make_job(PromptSet(name="p", bodies={ANY_LANGUAGE: "{what}"})), id="an unknown placeholder"),
        pytest.param(make_job(variant=Variant(order=(0, 7))), id="an order that the item does not have"),
    ],
)
def test_what_cannot_be_rendered_is_our_fault_and_no_call_is_made(job: ClaimedJob) -> None:
    prepared = prepare(job, Tally())

    asked = cannot_ask(prepared)

    assert prepared.prompt is None
    assert asked.verdict == Verdict(error=ErrorKind.BUG)
    assert (asked.attempt.prompt, asked.attempt.outcome) == (None, "no_completion")
    assert str(asked.attempt.error_message).startswith("rendering failed: ")


def test_a_completion_too_long_for_a_row_is_cut_and_is_no_answer() -> None:
    attempt = ask(Saying(Completion(text="A" + " " * 4_999_999, finish_reason="stop"))).attempt

    assert (attempt.outcome, attempt.answer, attempt.reason) == ("invalid", None, InvalidReason.TRUNCATED)
    assert (len(attempt.completion or ""), attempt.completion_length) == (MAX_CHARACTERS, 5_000_000)


def test_a_completion_that_just_fits_is_read() -> None:
    attempt = ask(Saying(Completion(text="A".ljust(MAX_CHARACTERS)))).attempt

    assert (attempt.outcome, attempt.completion_length) == ("answered", MAX_CHARACTERS)


def test_nul_and_half_a_surrogate_pair_are_kept_as_signs_that_a_row_can_hold() -> None:
    attempt = ask(Saying(Completion(text=f"B{NUL} {HALF_A_PAIR}"))).attempt

    assert attempt.completion == "B␀ \\ud83d"


HURTFUL: dict[str, Callable[[str], Provider]] = {
    "text": lambda text: Saying(Completion(text=text)),
    "thinking": lambda text: Saying(Completion(text="A", thinking=text)),
    "finish reason": lambda text: Saying(Completion(text="A", finish_reason=text)),
    "model's name": lambda text: Saying(Completion(text="A", model_reported=text)),
    "server's version": lambda text: Saying(Completion(text="A", server_version=text)),
    "error message": lambda text: Raising(RejectedError(text)),
}


@pytest.mark.parametrize("place", HURTFUL)
@pytest.mark.parametrize("text", [f"x{NUL}y", f"x{HALF_A_PAIR}y"], ids=["NUL", "half a pair"])
def test_whatever_a_server_says_anywhere_can_be_stored(place: str, text: str) -> None:
    asked = ask(HURTFUL[place](text))

    assert [each for each in texts_of(asked) if not is_storable(each)] == []


@given(text=st.text(st.characters(exclude_categories=())), place=st.sampled_from(sorted(HURTFUL)))
def test_nothing_that_a_server_can_say_is_raised(text: str, place: str) -> None:
    asked = ask(HURTFUL[place](text))

    assert asked.attempt.outcome in {"answered", "invalid", "no_completion"}
    assert (asked.attempt.answer is None) == (asked.attempt.outcome != "answered")


def retrying(strategy: str, *, language: str | None = "en", **more: Any) -> ClaimedJob:  # noqa: ANN401
    """A job whose study asks again in this way."""
    job = make_job()
    retry = Retry.model_validate({"invalid": 2, "strategy": strategy} | more)
    return replace(job, item=make_item(language=language), rules=replace(job.rules, retry=retry))


@pytest.mark.parametrize("strategy", ["resample", "remind", "constrain"])
def test_the_first_asking_is_the_same_whatever_the_strategy(strategy: str) -> None:
    first = prepare(retrying(strategy), Tally())

    assert first == prepare(retrying("resample"), Tally())
    assert not first.constrained


def test_resampling_changes_the_seed_alone() -> None:
    job = retrying("resample")

    first, second = prepare(job, Tally()), prepare(job, Tally(invalid=1))

    assert second == replace(first, seed=second.seed)
    assert second.seed != first.seed


@pytest.mark.parametrize(
    ("language", "more", "sentence"),
    [
        ("en", {}, "Answer with one letter and nothing else: A or B."),
        ("it", {}, "Rispondi con una sola lettera e nient'altro: A o B."),
        (None, {}, "Answer with one letter and nothing else: A or B."),
        ("de", {"reminder": "Nur {letters}!"}, "Nur A / B!"),
        ("en", {"reminder": "Just the letter."}, "Just the letter."),
    ],
)
def test_reminding_adds_one_sentence_to_the_same_prompt(
    language: str | None, more: dict[str, Any], sentence: str
) -> None:
    job = retrying("remind", language=language, **more)

    first, second = prepare(job, Tally()), prepare(job, Tally(invalid=1))

    assert second.prompt == f"{first.prompt}\n\n{sentence}"
    assert not second.constrained


def test_constraining_limits_the_second_asking_and_changes_no_word() -> None:
    job = retrying("constrain")

    first, second = prepare(job, Tally()), prepare(job, Tally(invalid=1))

    assert (second.prompt, second.constrained) == (first.prompt, True)
    assert second.seed != first.seed


def test_a_fault_is_no_reason_to_remind() -> None:
    job = retrying("remind")

    assert prepare(job, Tally(calls=3, faults=3)) == prepare(job, Tally())
