"""Who serves models. `open_provider` is the one place that knows them all; each SDK is imported only when needed."""

import os
from collections.abc import Mapping

from contract.models import Model, OpenAIModel, SimulatedModel
from contract.settings import Settings
from worker.providers.base import MisconfiguredError, Provider


def open_provider(model: Model, settings: Settings, environment: Mapping[str, str] = os.environ) -> Provider:
    """The provider of `model`; MisconfiguredError when its address or key is not there."""
    if isinstance(model, SimulatedModel):
        from worker.providers.simulated import SimulatedProvider

        return SimulatedProvider(model, ledger=settings.simulated_ledger)
    if not isinstance(model, OpenAIModel):
        raise MisconfiguredError(f"no provider {model.provider} yet")
    from worker.providers.openai import OpenAIProvider

    base_url = model.base_url or settings.embedded_url
    if base_url is None:
        raise MisconfiguredError(
            f"model {model.name} names no base_url and no embedded server runs here: "
            "add base_url to the study file, or start `bothways up`"
        )
    key = None
    if model.api_key_env is not None:
        key = environment.get(model.api_key_env)
        if not key:
            raise MisconfiguredError(
                f"model {model.name}: the variable {model.api_key_env} with its key is not set here"
            )
    return OpenAIProvider(model, base_url=base_url, api_key=key)
