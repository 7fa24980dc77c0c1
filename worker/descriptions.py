"""What servers told of their models, for as long as it counts: asked once for all conditions of a model."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from contract.conditions import Rules, queue_for
from contract.models import OllamaModel
from worker.contact_store import MET_FOR_S
from worker.providers.base import Description, Provider

DESCRIBED_AGAIN_AFTER_S = 60.0
"""A host's models may be replaced while it serves; its answers do not tell."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a server told, and until when that counts, in monotonic seconds."""

    queue: str
    description: Description
    until: float


class Descriptions:
    """What one process was told, by provider. `patience` is a factor on how long a host's word counts."""

    def __init__(
        self,
        provider: Callable[[Rules], Provider],
        clock: Callable[[], float] = time.monotonic,
        *,
        patience: float = 1.0,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._host_counts_for_s = patience * DESCRIBED_AGAIN_AFTER_S
        self._told: dict[Provider, Told] = {}

    def get(self, rules: Rules, *, again: bool = False) -> Told:
        """What is known of whom `rules` ask; the server is asked if need be, or `again`. Raises only ProviderError."""
        provider = self._provider(rules)
        told = self._told.get(provider)
        if told is None or told.until <= self._clock() or again:
            description = provider.describe()
            counts_for_s = self._host_counts_for_s if isinstance(rules.model, OllamaModel) else MET_FOR_S
            until = self._clock() + counts_for_s
            told = self._told[provider] = Told(queue=queue_for(rules.model), description=description, until=until)
        return told

    def forget(self, queue: str) -> None:
        """What was told of the models of `queue` does not count any more."""
        for provider, told in list(self._told.items()):
            if told.queue == queue:
                self._told.pop(provider, None)
