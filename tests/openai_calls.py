"""Calls of the OpenAI-compatible provider, as tests make them."""

import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from contract.forms import Sampling
from contract.models import OpenAIModel
from worker.providers.base import ProviderError, Request
from worker.providers.openai import OpenAIProvider

KEY = "sk-test-0123456789abcdef"
PROMPT = "What nobody else may read: perché?"
TIMEOUT_S = 1.0

_MADE: list[OpenAIProvider] = []
"""All providers: a provider lives as long as its process, and so do its connections."""


def make_provider(
    base_url: str,
    model: str = "good",
    *,
    key: str | None = KEY,
    headers: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401
) -> OpenAIProvider:
    """A provider of its own; `options` are fields of the model in a study file."""
    spec = OpenAIModel(provider="openai", name="m", model=model, base_url=base_url, **options)
    provider = OpenAIProvider(spec, base_url=base_url, api_key=key, headers=headers or {})
    _MADE.append(provider)
    return provider


@cache
def provider_at(base_url: str, model: str = "good", key: str | None = KEY) -> OpenAIProvider:
    """A provider of `model` at an address: one a process, as in a worker."""
    return make_provider(base_url, model, key=key)


def make_request(
    timeout_s: float = TIMEOUT_S,
    sampling: Sampling | None = None,
    *,
    prompt: str = PROMPT,
    seed: int = 77,
    allowed: tuple[str, ...] | None = None,
) -> Request:
    """One call."""
    return Request(
        call=uuid.uuid4(),
        number=1,
        prompt=prompt,
        sampling=sampling or Sampling(max_tokens=8),
        seed=seed,
        timeout_s=timeout_s,
        allowed=allowed,
    )


def fault_of(base_url: str, model: str) -> ProviderError:
    """The error that a call of `model` ends with."""
    return fault_in(provider_at(base_url, model))


def fault_in(provider: OpenAIProvider, request: Request | None = None) -> ProviderError:
    """The error that this call ends with."""
    with pytest.raises(ProviderError) as caught:
        provider.complete(request or make_request())
    return caught.value
