"""Who serves models. `open_provider` is the one place that knows them all; each SDK is imported only when needed."""

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from contract.errors import UsageError
from contract.models import GeminiModel, Model, OllamaModel, OpenAIModel, SimulatedModel
from contract.pools import Pool
from contract.recorded import RecordedModel
from contract.settings import Settings
from worker.providers.base import MisconfiguredError, Provider


def open_provider(
    model: Model, settings: Settings, pool: Pool | None = None, *, environment: Mapping[str, str] = os.environ
) -> Provider:
    """The provider of `model`, with the key and address of `pool` if there is one.

    MisconfiguredError when an address, a key, a header or the library that speaks to it is not there.
    """
    try:
        return _opened(model, settings, pool, environment)
    except ModuleNotFoundError as error:
        raise MisconfiguredError(f"model {model.name}: {_without(error.name or '')}") from None


def require_libraries(providers: Iterable[str]) -> None:
    """UsageError when the library of one of these providers is not installed here; none is loaded for that."""
    for provider in providers:
        library = _LIBRARIES.get(provider)
        if library is not None and not _installed(library):
            raise UsageError(f"the provider {provider} cannot be served here: {_without(library)}")


_LIBRARIES = {"gemini": "google.genai", "ollama": "ollama", "openai": "openai"}


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # what should hold it is not there either
        return False


def _without(library: str) -> str:
    return f"{library} is not installed; pip install 'bothways[worker]', or take the image of a worker"


def _opened(model: Model, settings: Settings, pool: Pool | None, environment: Mapping[str, str]) -> Provider:
    match model:
        case SimulatedModel():
            from worker.providers.simulated import SimulatedProvider

            return SimulatedProvider(model, ledger=settings.simulated_ledger)
        case OllamaModel():
            from worker.providers.ollama import open_ollama

            return open_ollama(model, settings.ollama_url, settings.machine)
        case GeminiModel():
            return _open_gemini(model, pool, environment)
        case OpenAIModel():
            return _open_openai(model, settings, pool, environment)
        case RecordedModel():
            raise MisconfiguredError(
                f"model {model.name}: is recorded and never asked; `bothways import` brings its answers"
            )


def _open_gemini(model: GeminiModel, pool: Pool | None, environment: Mapping[str, str]) -> Provider:
    from worker.providers.gemini import GeminiProvider

    key = _key(model, pool, environment)
    if key is None:
        raise MisconfiguredError(f"model {model.name}: name the variable of its key with api_key_env")
    if pool is not None and pool.base_url is not None:
        model = model.model_copy(update={"base_url": pool.base_url})
    return GeminiProvider(model, api_key=key)


def _open_openai(model: OpenAIModel, settings: Settings, pool: Pool | None, environment: Mapping[str, str]) -> Provider:
    from worker.providers.openai import OpenAIProvider

    base_url = (pool and pool.base_url) or model.base_url or settings.embedded_url
    if base_url is None:
        raise MisconfiguredError(
            f"model {model.name} names no base_url and no embedded server runs here: "
            "add base_url to the study file, or start `bothways up`"
        )
    headers = {name: _resolved(model, name, value, environment) for name, value in model.headers}
    return OpenAIProvider(model, base_url=base_url, api_key=_key(model, pool, environment), headers=headers)


def _key(model: OpenAIModel | GeminiModel, pool: Pool | None, environment: Mapping[str, str]) -> str | None:
    """The key of the pool, else of the model; None where neither names one."""
    variable = (pool and pool.api_key_env) or model.api_key_env
    if variable is None:
        return None
    key = environment.get(variable, "").strip()
    if not key:
        whose = f"model {model.name}" if pool is None or pool.api_key_env is None else f"pool {pool.name}"
        raise MisconfiguredError(f"{whose}: the variable {variable} with its key is not set")
    return key


def _resolved(model: OpenAIModel, name: str, value: str, environment: Mapping[str, str]) -> str:
    """A header's value; one that is a `${VARIABLE}` comes from the environment."""
    if not value.startswith("${"):
        return value
    found = environment.get(value[2:-1], "").strip()
    if not found:
        raise MisconfiguredError(f"model {model.name}: the variable {value[2:-1]} for its header {name} is not set")
    return found
