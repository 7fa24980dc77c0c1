"""What a first contact finds out before a hundred thousand calls are made."""

from typing import Any

import pytest

from contract.completion import Completion
from contract.conditions import Rules
from contract.forms import ClosedFormat, Sampling
from contract.models import GeminiModel, Model, OllamaModel, OllamaOptions, OpenAIModel
from contract.prompts import PromptSet
from contract.study import Bundles, Retry
from worker.contact import canary_request, contact_digest, rerouted, spoilt, stop_reason, unfit
from worker.providers.base import Description, Endpoint, MisconfiguredError, ProviderError, RejectedError

GEMINI = GeminiModel(provider="gemini", name="flash", model="gemini-2.5-flash")
OPENAI = OpenAIModel(provider="openai", name="m", model="m", base_url="http://h:1/v1")
ENDPOINT = Endpoint(provider="ollama", model="llama", label="gpu1:11434")


def ollama(**options: Any) -> OllamaModel:  # noqa: ANN401
    """A model of a GPU host."""
    return OllamaModel(provider="ollama", name="llama", model="llama3.1:8b", options=OllamaOptions(**options))


def rules(model: Model, *, constrain: bool = False, retry: Retry = Retry(), **sampling: Any) -> Rules:  # noqa: ANN401, B008
    """The rules of a condition."""
    return Rules(
        model=model,
        format=ClosedFormat(format="closed", constrain=constrain, sampling=Sampling(**sampling)),
        prompt=PromptSet(name="p", bodies={"en": "{question}{choices}"}),
        retry=retry,
        bundles=Bundles(),
    )


def test_a_limit_that_only_a_retry_sets_is_tried_at_first_contact() -> None:
    limited = rules(GEMINI, retry=Retry(invalid=1, strategy="constrain"))

    assert canary_request(limited).allowed == ("A", "B")
    assert contact_digest(limited, ENDPOINT, Description()) != contact_digest(rules(GEMINI), ENDPOINT, Description())
    assert canary_request(rules(GEMINI, retry=Retry(strategy="constrain"))).allowed is None


def test_the_canary_is_asked_as_every_job_is() -> None:
    asked = canary_request(rules(GEMINI, constrain=True, temperature=0.7, max_tokens=8, seed=3))

    assert asked.sampling == Sampling(temperature=0.7, max_tokens=8, seed=3)
    assert (asked.seed, asked.timeout_s, asked.allowed) == (3, GEMINI.timeout_s, ("A", "B"))
    assert canary_request(rules(GEMINI)).allowed is None


@pytest.mark.parametrize(
    ("changed", "described"),
    [
        pytest.param(rules(ollama(), temperature=0.5), Description(digest="d"), id="sampling"),
        pytest.param(rules(ollama(), constrain=True), Description(digest="d"), id="limits"),
        pytest.param(rules(ollama(context=8192)), Description(digest="d"), id="context"),
        pytest.param(rules(ollama()), Description(digest="e"), id="digest"),
        pytest.param(rules(ollama()), Description(digest="d", server_version="2"), id="version"),
    ],
)
def test_what_is_asked_otherwise_or_by_another_is_met_anew(changed: Rules, described: Description) -> None:
    known = contact_digest(rules(ollama()), ENDPOINT, Description(digest="d"))

    assert contact_digest(changed, ENDPOINT, described) != known
    assert contact_digest(rules(ollama()), ENDPOINT, Description(digest="d")) == known


@pytest.mark.parametrize(
    ("options", "description", "said"),
    [
        ({"digest": "aaaaaaaaaaaa"}, Description(digest="a" * 64), None),
        ({"digest": "aaaaaaaaaaaa"}, Description(digest="b" * 64), "the study asks for aaaaaaaaaaaa"),
        ({"digest": "aaaaaaaaaaaa"}, Description(), "the study asks for"),
        ({"context": 8192}, Description(context_length=8192), None),
        ({"context": 8193}, Description(context_length=8192), "lower options.context"),
        ({"context": 8192}, Description(), None),
    ],
)
def test_a_host_must_have_the_model_that_the_study_asks_for(
    options: dict[str, Any], description: Description, said: str | None
) -> None:
    found = unfit(rules(ollama(**options)), description)

    assert (found is None) if said is None else (found is not None and said in found)


@pytest.mark.parametrize(
    ("completion", "spoils"),
    [
        pytest.param(Completion(text="", finish_reason="length", tokens_out=16), True, id="thinking ate it all"),
        pytest.param(Completion(text=" \n", finish_reason="length"), True, id="nothing but white space"),
        pytest.param(Completion(text="The", finish_reason="length"), False, id="cut off"),
        pytest.param(Completion(text="", finish_reason="stop"), False, id="nothing to say"),
        pytest.param(Completion(text="A", finish_reason="stop"), False, id="answered"),
        pytest.param(Completion(text="I would rather not.", finish_reason="stop"), False, id="not to be read"),
    ],
)
def test_an_answer_that_is_all_thinking_would_spoil_every_job(completion: Completion, *, spoils: bool) -> None:
    assert (spoilt(rules(GEMINI), completion) is not None) is spoils


@pytest.mark.parametrize(("model", "word"), [(GEMINI, "room"), (ollama(), "think"), (OPENAI, "max_tokens")])
def test_what_to_do_about_thinking_depends_on_who_serves_the_model(model: Model, word: str) -> None:
    assert word in str(spoilt(rules(model), Completion(text="", finish_reason="length", tokens_out=16)))


@pytest.mark.parametrize(
    ("asked", "told", "other"),
    [
        ("gemini-2.5-flash", "gemini-2.5-flash", False),
        ("gemini-2.5-flash", "models/gemini-2.5-flash", False),
        ("models/gemini-2.5-flash", "gemini-2.5-flash-002", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite", True),
        ("gemini-2.5-flash", "gemini-3.5-flash-lite", True),
        ("gemini-2.5-flash", "gemini-2x5-flash", True),
        ("gemini-flash-latest", "gemini-3.5-flash", False),
        ("gemini-2.5-flash", None, False),
    ],
)
def test_a_model_that_another_one_answers_for_is_noticed(asked: str, told: str | None, *, other: bool) -> None:
    model = GeminiModel(provider="gemini", name="g", model=asked)

    assert (rerouted(rules(model), Completion(text="A", model_reported=told)) is not None) is other


def test_what_other_servers_call_their_models_is_their_own_affair() -> None:
    assert rerouted(rules(OPENAI), Completion(text="A", model_reported="/models/m.gguf")) is None


REFUSED = MisconfiguredError("HTTP 401: no", credential=True)
POOLED = GEMINI.model_copy(update={"pools": ("a", "b")})


@pytest.mark.parametrize(
    ("model", "error", "pool", "told"),
    [
        pytest.param(GEMINI, REFUSED, None, "HTTP 401: no (look at the key in GEMINI_API_KEY)", id="the model's key"),
        pytest.param(POOLED, REFUSED, "b", "HTTP 401: no (look at the key of the pool b)", id="the pool's key"),
        pytest.param(POOLED, REFUSED, None, "HTTP 401: no (look at the key of the pool a)", id="the first pool's key"),
        pytest.param(
            OPENAI, REFUSED, None, "HTTP 401: no (no key was sent: name its variable with api_key_env)", id="no key"
        ),
        pytest.param(OPENAI, MisconfiguredError("HTTP 404: no"), None, "HTTP 404: no", id="not the key"),
        pytest.param(OPENAI, RejectedError("HTTP 400: no"), None, "HTTP 400: no", id="the request"),
        pytest.param(ollama(), REFUSED, None, "HTTP 401: no", id="a host"),
    ],
)
def test_a_key_that_is_not_accepted_is_told_with_where_it_is_from(
    model: Model, error: ProviderError, pool: str | None, told: str
) -> None:
    assert stop_reason(model, error, pool) == told
