"""A first contact on a person's order: is this model well, here and now?"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from redis import Redis
from sqlalchemy import Engine

from contract.conditions import Rules, queue_for
from contract.pools import Pool
from contract.settings import Settings
from worker.access import Access
from worker.contact_store import ContactStore
from worker.openings import Providers
from worker.pins import Pins
from worker.pools import Gate
from worker.providers import open_provider
from worker.providers.base import Description, ExhaustedError, ProviderError, ThrottledError
from worker.store import JobStore

CHECKER = "check"
"""What the canaries of a checkup say who made them."""


_UNKNOWN = Description()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was found. `problem` is None for a model that is well; `passing` problems may be gone in a while.

    `offered` are the models that its server lists, None where it does not tell.
    """

    label: str | None = None
    description: Description = _UNKNOWN
    offered: tuple[str, ...] | None = None
    problem: str | None = None
    passing: bool = False


class Checkup:
    """Checks models of APIs as a worker would meet them, through their pools."""

    def __init__(self, engine: Engine, settings: Settings, broker: Redis, pools: Mapping[str, Pool]) -> None:
        self._store = ContactStore(engine, worker=CHECKER)
        gate = Gate(broker, pools, lambda pool, since: self._store.used(pool.name, since))
        self._providers = Providers(lambda model, pool: open_provider(model, settings, pool), pools)
        self._access = Access(
            self._store,
            lambda model, pool: open_provider(model, settings, pool),
            store=JobStore(engine, worker=CHECKER),
            gate=gate,
            stopping=threading.Event(),
        )
        self._access.contacts.pins = Pins(self._store, set_first=False)

    def check(self, rules: Rules, *, study: int | None, call: bool) -> Checked:
        """One model of a study (None if the study was never run), with one call at most. Pins nothing."""
        try:
            provider = self._providers.first(rules)
            checked = Checked(label=provider.endpoint.label, description=provider.describe())
            listed = None if call else provider.models()
        except ProviderError as error:
            return Checked(problem=str(error), passing=isinstance(error, ThrottledError | ExhaustedError))
        offered = None if listed is None else tuple(listed)
        checked = Checked(label=checked.label, description=checked.description, offered=offered)
        return self._asked(checked, rules, study) if call else checked

    def clear(self, study: int, rules: Rules) -> int:
        """Clear the stops of a study's queue, if its jobs are asked by these rules; how many they were."""
        queue = queue_for(rules.model)
        ours = {"model": rules.stored["model"], "format": rules.stored["format"]}
        return self._store.clear_queue(study, queue) if self._store.asks_by(study, queue, ours) else 0

    def _asked(self, checked: Checked, rules: Rules, study: int | None) -> Checked:
        queue = queue_for(rules.model)
        problem, passing = None, False
        try:
            stopped = self._access.contacts.look(study, queue, rules, checked.description, again=True)
            problem = None if stopped is None else stopped.reason
        except ProviderError as error:
            problem, passing = str(error), isinstance(error, ThrottledError | ExhaustedError)
        rest = self._access.rests.of(queue)
        if problem is None and rest is not None:
            problem, passing = rest.reason, rest.quota
        return Checked(
            label=checked.label,
            description=checked.description,
            offered=checked.offered,
            problem=problem,
            passing=passing,
        )
