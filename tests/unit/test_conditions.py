"""Conditions: what makes two ways of asking the same, and what may change without new jobs."""

from typing import Any

import pytest

from contract.conditions import Condition, Rules, queue_for
from contract.formats import Variant
from contract.forms import ClosedFormat, Sampling, Step
from contract.items import canonical_digest
from contract.models import (
    GeminiModel,
    GeminiOptions,
    Model,
    OllamaModel,
    OllamaOptions,
    OpenAIModel,
    Simulated,
    SimulatedModel,
)
from contract.prompts import PromptSet
from contract.study import Bundles, Retry

BODY = "{question}\n{choices}"


def openai(**changes: Any) -> OpenAIModel:  # noqa: ANN401
    """A served model."""
    values: dict[str, Any] = {"provider": "openai", "name": "small", "model": "smollm2"}
    return OpenAIModel(**(values | changes))


def simulated(**options: Any) -> SimulatedModel:  # noqa: ANN401
    """A simulated model."""
    return SimulatedModel(provider="simulated", name="small", options=Simulated(**options))


def closed(**sampling: Any) -> ClosedFormat:  # noqa: ANN401
    """The closed format with its sampling."""
    return ClosedFormat(format="closed", sampling=Sampling(**sampling))


def condition(**changes: Any) -> Condition:  # noqa: ANN401
    """A condition whose parts have plain defaults."""
    values: dict[str, Any] = {
        "dataset": "capitals",
        "model": openai(),
        "format": closed(temperature=0.7),
        "variant": Variant(order=(0, 1)),
        "prompt": PromptSet(name="own", bodies={"en": BODY}),
    }
    return Condition(**(values | changes))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"dataset": "rivers"}, id="dataset"),
        pytest.param({"variant": Variant(order=(1, 0))}, id="order"),
        pytest.param({"format": Step(step="one", prompt="own"), "variant": Variant(step="one")}, id="stage"),
        pytest.param({"of": "another condition"}, id="whose answers it is shown"),
        pytest.param({"model": openai(name="other")}, id="model name"),
        pytest.param({"model": openai(model="smollm3")}, id="served model"),
        pytest.param({"model": simulated()}, id="provider"),
        pytest.param({"format": closed(temperature=0.8)}, id="temperature"),
        pytest.param({"format": closed(temperature=0.7, top_p=0.9)}, id="top_p"),
        pytest.param({"format": closed(temperature=0.7, max_tokens=17)}, id="max_tokens"),
        pytest.param({"format": closed(temperature=0.7, seed=1)}, id="seed"),
        pytest.param({"format": closed(temperature=0.7, logprobs=5)}, id="log-probabilities"),
        pytest.param({"format": closed(temperature=0.7).model_copy(update={"constrain": True})}, id="limits"),
        pytest.param({"prompt": PromptSet(name="own", bodies={"en": BODY + "!"})}, id="prompt body"),
        pytest.param({"prompt": PromptSet(name="own", bodies={"it": BODY})}, id="prompt language"),
    ],
)
def test_what_can_change_an_answer_makes_another_condition(changes: dict[str, Any]) -> None:
    assert condition(**changes).digest != condition().digest


@pytest.mark.parametrize(
    "option", ["knows", "prefers_first", "invalid_rate", "fault_rate", "latency_s", "seed"], ids=str
)
def test_what_a_simulated_model_is_like_belongs_to_the_condition(option: str) -> None:
    changed = simulated(**{option: 1 if option == "seed" else 0.25})

    assert condition(model=changed).digest != condition(model=simulated()).digest


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(openai(base_url="http://elsewhere:8000/v1"), id="base_url"),
        pytest.param(openai(api_key_env="SOME_KEY"), id="name of the key's variable"),
        pytest.param(openai(timeout_s=5.0), id="time-out"),
        pytest.param(openai(pools=("a", "b")), id="pools"),
        pytest.param(openai(headers={"X-Title": "study"}), id="headers"),
        pytest.param(openai(constrains_by="grammar"), id="how limits would be told"),
    ],
)
def test_where_and_how_patiently_a_model_is_asked_changes_no_condition(model: OpenAIModel) -> None:
    assert condition(model=model).digest == condition().digest


def test_rules_repeats_and_reading_have_no_place_in_the_spec() -> None:
    found = condition().spec

    assert set(found) == {"dataset", "model", "format", "variant", "stage", "sampling", "prompt"}
    assert found["format"] == "closed"
    assert set(found["sampling"]) == {"temperature", "top_p", "max_tokens", "seed"}
    assert set(found["model"]) == {"provider", "name", "model"}


def test_the_digest_of_a_condition_never_changes() -> None:
    spec = {
        "dataset": "capitals",
        "format": "closed",
        "model": {"model": "smollm2", "name": "small", "provider": "openai"},
        "prompt": {"digest": canonical_digest({"en": BODY}), "name": "own"},
        "sampling": {"max_tokens": 16, "seed": 0, "temperature": 0.7, "top_p": None},
        "stage": "answer",
        "variant": {"order": [0, 1]},
    }

    assert condition().spec == spec
    assert condition().digest == "50a68b914c5270f96d2f4c621d712fde888e1a74b3e402e6678fa2618d5dc656"


@pytest.mark.parametrize(
    ("model", "queue"),
    [
        (openai(name="small"), "openai.small"),
        (simulated(), "simulated.small"),
        (OllamaModel(provider="ollama", name="l", model="phi4"), "ollama.phi4:latest@4096"),
        (
            OllamaModel(provider="ollama", name="l", model="hf.co/x/phi4:Q8", options=OllamaOptions(context=8192)),
            "ollama.hf.co/x/phi4:Q8@8192",
        ),
    ],
    ids=["openai", "simulated", "ollama", "ollama, another context"],
)
def test_every_provider_and_model_has_a_queue_of_its_own(model: Model, queue: str) -> None:
    assert queue_for(model) == queue
    assert condition(model=model).queue == queue


@pytest.mark.parametrize(
    "model",
    [
        openai(base_url="https://host/v1", api_key_env="KEY", timeout_s=7.5, pools=("a",), headers={"X-Key": "${KEY}"}),
        simulated(knows=0.25, seed=3),
        OllamaModel(provider="ollama", name="l", model="l:8b", options=OllamaOptions(think="low", context=8192)),
        GeminiModel(provider="gemini", name="g", model="g", options=GeminiOptions(safety="none"), pools=("a", "b")),
    ],
    ids=["openai", "simulated", "ollama", "gemini"],
)
def test_rules_come_back_from_their_row_as_they_were(model: Model) -> None:
    rules = Rules(
        model=model,
        format=closed(temperature=0.3, top_p=0.5, seed=9),
        prompt=PromptSet(name="own", bodies={"en": BODY, "it": "Domanda: " + BODY}),
        retry=Retry(invalid=2, faults=3),
        bundles=Bundles(size=3, budget_s=1.5),
    )

    assert Rules.from_stored(rules.stored) == rules
