"""Who may be asked: first contacts are made here, pins kept, and stops cleared when their reason has gone."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from contract.completion import Completion
from contract.conditions import Rules, queue_for
from contract.models import OllamaModel, SimulatedModel
from contract.storable import storable
from worker.ask import deployment_of
from worker.contact import canary_request, contact_digest, rerouted, spoilt, stop_reason, stop_scope, unfit
from worker.contact_store import TRIED_AGAIN_AFTER_S, ContactStore, StoppedQueue
from worker.descriptions import Descriptions
from worker.persist import persistently
from worker.pins import MaybeStudy, Pins, Stopped
from worker.providers.base import (
    Description,
    HostError,
    Loads,
    MisconfiguredError,
    Provider,
    ProviderError,
    RejectedError,
    Request,
    TooLongError,
    Warmth,
)
from worker.records import Called, Canary, Deployment
from worker.rest import Rests

_VERDICTS = (MisconfiguredError, RejectedError, TooLongError)
"""Errors that every further call would end with too: the canary asks what each job asks."""


@dataclass(frozen=True, kw_only=True)
class _Met:
    rules: Rules
    description: Description
    until: float


class Contacts:
    """The deployments that one process has met.

    `call` makes one call within its quota; None if there is none to be had now. `deployment_id` gives the row of what
    answered.
    """

    def __init__(
        self,
        store: ContactStore,
        rests: Rests,
        *,
        provider: Callable[[Rules], Provider],
        call: Callable[[Rules, Request], Called | None],
        deployment_id: Callable[[Deployment], int],
        most_slots: int = 1,
        patience: float = 1.0,
    ) -> None:
        self._store = store
        self.pins = Pins(store)
        self._rests = rests
        self._provider = provider
        self._call = call
        self._deployment_id = deployment_id
        self._most_slots = most_slots
        self._descriptions = Descriptions(provider, patience=patience)
        self.warmth: dict[str, Warmth] = {}
        self._met: dict[int, _Met] = {}
        self._known: set[tuple[MaybeStudy, str, str]] = set()
        self._doubted: set[str] = set()
        self._stops: Counter[tuple[int, str]] = Counter()
        self._locks: dict[str, threading.Lock] = {}
        self._changing = threading.Lock()

    def met(self, queue: str, rules: Rules) -> Description | None:
        """What is known of whom `rules` ask, if that was met; costs nothing."""
        met = self._met.get(id(rules))
        fresh = met is not None and met.rules is rules and met.until > time.monotonic()
        return met.description if met is not None and fresh and queue not in self._doubted else None

    def meet(self, study: int, queue: str, rules: Rules) -> Description | None:
        """What is known of whom `rules` ask, after a first contact if need be; None if it must not be asked now.

        Then the queue rests, or the study's queue is stopped, with the reason.
        """
        stops = self._stops[study, queue]
        with self._lock(queue):
            met = self.met(queue, rules)
            # Who waited here while others found out that nothing goes need not find out again.
            if met is not None or self._rests.of(queue) is not None or self._stops[study, queue] != stops:
                return met
            try:
                told = self._descriptions.get(rules, again=queue in self._doubted)
                stopped = self.look(study, queue, rules, told.description, again=queue in self._doubted)
            except MisconfiguredError as error:
                stopped = Stopped(reason=stop_reason(rules.model, error))
            except ProviderError as error:
                self._put_off(queue, error)
                return None
            if stopped is not None:
                self.stop(study, queue, rules, stopped)
                return None
            if self._rests.of(queue) is not None:
                return None
            self._doubted.discard(queue)
            self._met[id(rules)] = _Met(rules=rules, description=told.description, until=told.until)
            return told.description

    def forget(self, queue: str) -> None:
        """The host goes over to `queue`: its model must be loaded, and looked at again."""
        self.warmth.pop(queue, None)
        self._descriptions.forget(queue)
        for key, met in list(self._met.items()):
            if queue_for(met.rules.model) == queue:
                self._met.pop(key, None)

    def doubt(self, queue: str) -> None:
        """Too much went wrong: before its jobs are asked again, the model is loaded and a canary must pass."""
        self.warmth.pop(queue, None)
        self._doubted.add(queue)

    def stop(self, study: int, queue: str, rules: Rules, stopped: Stopped) -> None:
        """Stop a queue of a study, on this host alone where hosts serve it."""
        self._stops[study, queue] += 1
        endpoint = stop_scope(self._label(rules), rules)
        reason = storable(stopped.reason).text
        persistently(lambda: self._store.stop(study, queue, endpoint=endpoint, reason=reason, digest=stopped.digest))

    def try_again(self, providers: Sequence[str], endpoint: str, *, after_s: float = TRIED_AGAIN_AFTER_S) -> None:
        """Look whether stops have lost their reason, and clear those."""
        for stop in persistently(lambda: self._store.to_try_again(providers, endpoint, after_s=after_s)):
            try:
                gone = self._has_gone(stop)
            except ProviderError:
                continue
            if gone:
                persistently(lambda stop=stop: self._store.clear(stop))  # type: ignore[misc]

    def _has_gone(self, stop: StoppedQueue) -> bool:
        """Whether the reason of a stop has gone. Raises ProviderError."""
        rules, description = stop.rules, self._provider(stop.rules).describe()
        if not isinstance(rules.model, OllamaModel):
            still = self.look(stop.study, stop.queue, rules, description, again=True)
            return still is None and self._rests.of(stop.queue) is None
        # To load the model now would push out the one that the host serves: a call is made when its turn has come.
        if unfit(rules, description) or self.pins.refuse(stop.study, stop.queue, description.digest):
            return False
        self._doubted.add(stop.queue)
        return True

    def _put_off(self, queue: str, error: ProviderError) -> None:
        """Leave a queue alone because its first contact failed; for long, where the host cannot run the model."""
        host = isinstance(error, HostError)
        lasting = isinstance(error, HostError) and error.lasting
        if not (host and self._rests.fault(queue, str(error), host=True, lasting=lasting)):
            self._rests.put_off(queue, str(error))

    def look(
        self, study: MaybeStudy, queue: str, rules: Rules, description: Description, *, again: bool
    ) -> Stopped | None:
        """Why nothing must be asked; None if something may be, or if the queue rests now. Raises ProviderError.

        `again`: a canary that passed before does not count. Without a study nothing is pinned.
        """
        if isinstance(rules.model, SimulatedModel):
            return None  # there is nobody to meet
        reason = unfit(rules, description)
        if reason is not None:
            return Stopped(reason=reason)
        stopped = self.pins.refuse(study, queue, description.digest)
        if stopped is None:
            self._warm_up(queue, rules)
        contact = contact_digest(rules, self._provider(rules).endpoint, description)
        if stopped is not None or ((study, queue, contact) in self._known and not again):
            return stopped
        if again or not persistently(lambda: self._store.passed(contact)):
            stopped = self._ask(study, queue, rules, description, contact)
        if stopped is None and self._rests.of(queue) is None:
            self._known.add((study, queue, contact))
        return stopped

    def _warm_up(self, queue: str, rules: Rules) -> None:
        """Have the model loaded where it must be, once as long as the host stays with it."""
        provider = self._provider(rules)
        if queue not in self.warmth and isinstance(provider, Loads):
            self.warmth[queue] = provider.warm_up(self._most_slots, rules.model.timeout_s)

    def _ask(
        self, study: MaybeStudy, queue: str, rules: Rules, description: Description, contact: str
    ) -> Stopped | None:
        """One canary, kept; a fault that may pass lets the queue rest instead of stopping it."""
        request, started_at = canary_request(rules), datetime.now(UTC)
        called = self._call(rules, request)
        if called is None:
            if self._rests.of(queue) is None:
                self._rests.put_off(queue, "no call to be had for the first contact")
            return None
        canary = Canary(id=request.call, contact=contact, started_at=started_at, passed=False, pool=called.pool)
        if isinstance(called.outcome, Completion):
            stopped = self._judge(study, queue, rules, description, called.outcome)
            canary = self._told(canary, rules, description, called.outcome)
        else:
            error = called.outcome
            stopped = (
                Stopped(reason=stop_reason(rules.model, error, called.pool)) if isinstance(error, _VERDICTS) else None
            )
            canary = replace(canary, error_kind=error.kind, error_message=storable(str(error)).text)
            if stopped is None and self._rests.of(queue) is None:
                self._rests.put_off(queue, str(error))
        passed = stopped is None and isinstance(called.outcome, Completion)
        kept = replace(canary, passed=passed, error_message=stopped.reason if stopped else canary.error_message)
        persistently(lambda: self._store.keep(kept))
        return stopped

    def _judge(
        self, study: MaybeStudy, queue: str, rules: Rules, description: Description, completion: Completion
    ) -> Stopped | None:
        reason = spoilt(rules, completion)
        if reason is not None:
            return Stopped(reason=reason)
        reason = rerouted(rules, completion)
        if reason is not None and not self.pins.accepts(study, queue, completion.model_reported):
            return Stopped(reason=reason, digest=completion.model_reported)
        return self.pins.refuse(study, queue, description.digest or completion.model_reported)

    def _told(self, canary: Canary, rules: Rules, description: Description, completion: Completion) -> Canary:
        deployment = deployment_of(self._provider(rules).endpoint, description, completion)
        return replace(
            canary,
            completion=storable(completion.text).text,
            tokens_in=completion.tokens_in,
            tokens_out=completion.tokens_out,
            deployment=persistently(lambda: self._deployment_id(deployment)),
        )

    def _label(self, rules: Rules) -> str | None:
        try:
            return self._provider(rules).endpoint.label
        except ProviderError:
            return None

    def _lock(self, queue: str) -> threading.Lock:
        with self._changing:
            return self._locks.setdefault(queue, threading.Lock())
