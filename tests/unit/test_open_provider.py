"""Where the keys and addresses of a model come from, and what is said when one is not there."""

from typing import Any

import pytest
from pydantic import SecretStr

from contract.models import GeminiModel, Model, OllamaModel, OpenAIModel
from contract.pools import Pool
from contract.settings import Settings
from worker.providers import open_provider
from worker.providers.base import Loads, MisconfiguredError, Provider

SETTINGS = Settings(
    database_url=SecretStr("postgresql://nowhere"), broker_url=SecretStr("redis://nowhere"), embedded_url=None
)
KEYS = {"MODEL_KEY": "of-the-model", "POOL_KEY": "of-the-pool", "TENANT": "of-the-tenant", "EMPTY": " "}


def openai(**more: Any) -> OpenAIModel:  # noqa: ANN401
    """An OpenAI-compatible model."""
    values: dict[str, Any] = {"provider": "openai", "name": "m", "model": "m", "base_url": "http://model:1/v1"}
    return OpenAIModel(**(values | more))


def gemini(**more: Any) -> GeminiModel:  # noqa: ANN401
    """A Gemini model."""
    return GeminiModel(provider="gemini", name="g", model="flash", **more)


def pool(**more: Any) -> Pool:  # noqa: ANN401
    """A pool."""
    return Pool(name="first", provider="openai", rpm=1, **more)


def opened(model: Model, pool: Pool | None = None, settings: Settings = SETTINGS) -> Provider:
    """The provider, opened with the keys of this page."""
    return open_provider(model, settings, pool, environment=KEYS)


def problem(model: Model, pool: Pool | None = None) -> str:
    """Why it cannot be opened."""
    with pytest.raises(MisconfiguredError) as caught:
        opened(model, pool)
    return str(caught.value)


def test_a_pool_s_address_goes_over_the_model_s() -> None:
    assert opened(openai()).endpoint.label == "model:1"
    assert opened(openai(), pool()).endpoint.label == "model:1"
    assert opened(openai(), pool(base_url="http://pool:2/v1")).endpoint.label == "pool:2"
    assert opened(gemini(api_key_env="MODEL_KEY"), pool(base_url="http://pool:3")).endpoint.label == "pool:3"


def test_a_model_without_an_address_is_the_embedded_one() -> None:
    embedded = SETTINGS.model_copy(update={"embedded_url": "http://127.0.0.1:7/v1"})

    assert opened(openai(base_url=None), settings=embedded).endpoint.label == "127.0.0.1:7"
    assert "add base_url to the study file" in problem(openai(base_url=None))


@pytest.mark.parametrize("variable", ["NOT_SET", "EMPTY"])
def test_a_key_that_is_not_there_is_named_by_its_variable(variable: str) -> None:
    for model in (openai(api_key_env=variable), gemini(api_key_env=variable)):
        assert problem(model) == f"model {model.name}: the variable {variable} with its key is not set"
    assert problem(openai(api_key_env="MODEL_KEY"), pool(api_key_env=variable)) == (
        f"pool first: the variable {variable} with its key is not set"
    )


def test_a_pool_s_key_is_enough() -> None:
    assert opened(gemini(), pool(api_key_env="POOL_KEY")).endpoint.model == "flash"
    assert problem(gemini()) == "model g: the variable GEMINI_API_KEY with its key is not set"


def test_a_header_s_variable_must_be_set_and_its_text_need_not_be_one() -> None:
    opened(openai(headers={"X-Tenant": "${TENANT}", "X-Title": "bothways"}))

    assert problem(openai(headers={"X-Tenant": "${NOT_SET}"})) == (
        "model m: the variable NOT_SET for its header X-Tenant is not set"
    )


def test_a_model_of_a_host_is_asked_where_the_worker_s_host_is() -> None:
    settings = SETTINGS.model_copy(update={"ollama_url": "http://gpu1:11434"})

    provider = opened(OllamaModel(provider="ollama", name="l", model="l"), settings=settings)

    assert provider.endpoint.label == "gpu1:11434"
    assert isinstance(provider, Loads)
    assert not isinstance(opened(openai()), Loads)
