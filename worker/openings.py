"""The providers that one process has opened: one a model and pool, shared by all its threads."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contract.conditions import Rules
from contract.models import Model, pools_of
from contract.pools import Pool
from worker.pools import Permit
from worker.providers.base import Description, MisconfiguredError, Provider

Opener = Callable[[Model, Pool | None], Provider]
"""Opens the provider of a model, with the key of a pool if there is one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one call may be made with."""

    provider: Provider
    description: Description
    permit: Permit | None = None

    @property
    def pool(self) -> str | None:
        """The name of the pool that the call goes through."""
        return None if self.permit is None else self.permit.pool


class Providers:
    """Opens providers when they are first needed. `pools` are those of the pools file, by name."""

    def __init__(self, open_provider: Opener, pools: Mapping[str, Pool]) -> None:
        self._open = open_provider
        self._pools = pools
        self._opened: dict[tuple[str, str | None], Provider] = {}
        self._first: dict[int, tuple[Rules, Provider]] = {}
        self._opening = threading.Lock()

    def first(self, rules: Rules) -> Provider:
        """The provider that is met for `rules`, behind their first pool if they have pools.

        MisconfiguredError where an address, a key or one of the pools is not there.
        """
        found = self._first.get(id(rules))
        if found is None or found[0] is not rules:
            names = pools_of(rules.model)
            opened = [self.behind(rules.model, name) for name in names] or [self.behind(rules.model, None)]
            found = self._first[id(rules)] = rules, opened[0]
        return found[1]

    def behind(self, model: Model, pool: str | None) -> Provider:
        """The provider of `model` behind a pool."""
        key = model.model_dump_json(), pool
        with self._opening:
            if key not in self._opened:
                self._opened[key] = self._open(model, self._pool(model, pool))
            return self._opened[key]

    def _pool(self, model: Model, name: str | None) -> Pool | None:
        if name is None:
            return None
        pool = self._pools.get(name)
        if pool is not None and pool.provider != model.provider:
            raise MisconfiguredError(f"model {model.name} uses the pool {name}, which is one of {pool.provider}")
        if pool is not None:
            return pool
        there = f"the worker's pools file has {', '.join(self._pools)}"
        none = "the worker has no pools file: name one with BOTHWAYS_POOLS"
        raise MisconfiguredError(f"model {model.name} uses the pool {name}, and {there if self._pools else none}")
