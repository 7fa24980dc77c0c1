"""The way to a model and back: may it be asked, through which pool, and what follows from its answer for the others."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from contract.completion import Completion
from contract.conditions import Rules, queue_for
from contract.models import SimulatedModel, pools_of
from contract.tokens import estimate_tokens
from worker.ask import Asked, ask_once, by_another
from worker.contact import stop_reason
from worker.contact_store import ContactStore
from worker.contacts import Contacts
from worker.openings import Entry, Opener, Providers
from worker.pins import Stopped
from worker.pools import Denied, Gate, Permit
from worker.prepare import Prepared
from worker.providers.base import (
    ExhaustedError,
    HostError,
    MisconfiguredError,
    ProviderError,
    Request,
    ThrottledError,
    TransientError,
)
from worker.records import Called, ClaimedJob
from worker.rest import LONGEST_REST_S, Rests
from worker.retry import THROTTLED_WAIT_S, Tally
from worker.store import JobStore
from worker.wants import Wants

IN_PLACE_S = 20.0
"""A permit that comes within so many seconds is waited for; for a later one the bundle goes back."""

REJECTED_S = 600.0
"""A pool whose key this process was refused is left alone for so long, if the model has another one."""


class Access:
    """Decides for all threads of a process whether a call may be made. `gate` is None where there is no pools file."""

    def __init__(
        self,
        contact_store: ContactStore,
        open_provider: Opener,
        *,
        store: JobStore,
        gate: Gate | None,
        stopping: threading.Event,
        most_slots: int = 1,
        patience: float = 1.0,
    ) -> None:
        self.rests = Rests(patience=patience)
        self.wants = Wants(most_slots)
        self._providers = Providers(open_provider, {} if gate is None else gate.pools)
        self.contacts = Contacts(
            contact_store,
            self.rests,
            provider=self._providers.first,
            call=self._call,
            deployment_id=store.deployment_id,
            most_slots=most_slots,
            patience=patience,
        )
        self._gate = gate
        self._stopping = stopping
        self._lease_margin_s = store.lease_margin_s
        self._rejected: dict[str, float] = {}

    def enter(self, job: ClaimedJob, prepared: Prepared, *, until: float, wait: bool = True) -> Entry | None:
        """The permission to make one call of `job`; None if there is none before the monotonic instant `until`.

        Then the queue rests or is stopped, or the time is too short. `wait`: for first contacts and for near permits.
        """
        with self.wants.standing(job.queue) if wait else nullcontext():
            return self._enter(job, prepared, until, wait)

    def _enter(self, job: ClaimedJob, prepared: Prepared, until: float, wait: bool) -> Entry | None:
        rules = job.rules
        if self.rests.of(job.queue) is not None:
            return None
        description = self.contacts.met(job.queue, rules)
        if description is None and wait:
            description = self.contacts.meet(job.study, job.queue, rules)
        if description is None:
            return None
        if not pools_of(rules.model):
            return Entry(provider=self._providers.first(rules), description=description)
        longest_s = min(IN_PLACE_S, until - time.monotonic()) if wait else 0.0
        permit = self._permit(rules, prepared.prompt or "", longest_s=longest_s, rest=wait)
        if permit is None:
            return None
        provider = self._providers.behind(rules.model, permit.pool)
        return Entry(provider=provider, description=description, permit=permit)

    def rest_where_paused(self, pools: Mapping[str, Sequence[str]]) -> None:
        """Leave those queues alone (by queue: the pools that they use) whose pools are all paused."""
        names = {name for used in pools.values() for name in used}
        if self._gate is None or not names:
            return
        states = self._gate.states(names)
        for queue, used in pools.items():
            waits = [(state.paused_s, name, state.reason) for name in used if (state := states.get(name)) is not None]
            if waits and all(wait_s > 0 for wait_s, _, _ in waits):
                wait_s, name, reason = min(waits)
                self.rests.wait_for_quota(queue, wait_s, f"pool {name}: {reason}")

    def ask(self, entry: Entry, job: ClaimedJob, tally: Tally, prepared: Prepared) -> Asked:
        """Make the call; settle with the pool, note what it says about the server, and what it counts as."""
        with self.wants.calling(job.queue):
            asked = ask_once(job, tally, prepared, entry.provider, entry.description, entry.pool)
        elsewhere = self._may_go_well_elsewhere(job.rules, entry.permit, asked.fault)
        if entry.permit is not None:
            self._settle(entry.permit, asked.fault, asked.attempt.tokens_in, asked.attempt.tokens_out)
        self._note(job.queue, job.rules, asked.fault, pooled=entry.permit is not None)
        if isinstance(asked.fault, MisconfiguredError) and not elsewhere:
            reason = stop_reason(job.rules.model, asked.fault, entry.pool)
            self.contacts.stop(job.study, job.queue, job.rules, Stopped(reason=reason))
        if asked.deployment is not None:
            # A host was looked at when it was met: its answers do not tell their digest.
            stopped = None
            if entry.description.digest is None and not isinstance(job.rules.model, SimulatedModel):
                stopped = self.contacts.pins.refuse(job.study, job.queue, asked.reported)
            if stopped is not None:
                self.contacts.stop(job.study, job.queue, job.rules, stopped)
                return by_another(asked, stopped.reason)
        return replace(asked, verdict=replace(asked.verdict, elsewhere=elsewhere))

    def abandon(self, entry: Entry) -> None:
        """No call was made after all."""
        if entry.permit is not None and self._gate is not None:
            self._gate.release(entry.permit)

    def _permit(self, rules: Rules, prompt: str, *, longest_s: float, rest: bool) -> Permit | None:
        """A permit of the pool that can go first; None if none comes in time, and then the queue may rest."""
        assert self._gate is not None  # noqa: S101 - a provider with pools is not opened without one
        got = self._gate.await_permit(
            self._accepted(pools_of(rules.model)),
            tokens_in=estimate_tokens(prompt),
            tokens_out=rules.format.sampling.max_tokens,
            lease_s=rules.model.timeout_s + self._lease_margin_s,  # as long as the job's own
            longest_s=longest_s,
            stopping=self._stopping,
        )
        if isinstance(got, Denied):
            if rest and got.wait_s > IN_PLACE_S:
                self.rests.wait_for_quota(queue_for(rules.model), got.wait_s, f"pool {got.pool}: {got.reason}")
            return None
        return got

    def _call(self, rules: Rules, request: Request) -> Called | None:
        """One call without a job, through the first pool whose key is accepted; None if no permit is to be had."""
        called: Called | None = None
        for _ in pools_of(rules.model) or (None,):
            permit = None
            if pools_of(rules.model):
                permit = self._permit(rules, request.prompt, longest_s=IN_PLACE_S, rest=True)
                if permit is None:
                    return called
            called = self._called(rules, request, permit)
            fault = called.outcome if isinstance(called.outcome, ProviderError) else None
            if not self._may_go_well_elsewhere(rules, permit, fault):
                break
        return called

    def _called(self, rules: Rules, request: Request, permit: Permit | None) -> Called:
        pool = None if permit is None else permit.pool
        outcome: Completion | ProviderError
        try:
            outcome = self._providers.behind(rules.model, pool).complete(request)
        except ProviderError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - an SDK error that no table of signals knows yet
            outcome = TransientError(f"unknown error {type(error).__name__}")
        completion = outcome if isinstance(outcome, Completion) else None
        fault = outcome if isinstance(outcome, ProviderError) else None
        if permit is not None:
            tokens = (completion.tokens_in, completion.tokens_out) if completion else (None, None)
            self._settle(permit, fault, *tokens)
        if isinstance(fault, ThrottledError | ExhaustedError | HostError):
            self._note(queue_for(rules.model), rules, fault, pooled=permit is not None)
        return Called(outcome=outcome, pool=pool)

    def _settle(
        self, permit: Permit, fault: ProviderError | None, tokens_in: int | None, tokens_out: int | None
    ) -> None:
        """Tell the pool what became of its permit."""
        assert self._gate is not None  # noqa: S101
        match fault:
            case ThrottledError(wait_s=wait_s):
                self._gate.throttled(permit, wait_s)
            case ExhaustedError():
                self._gate.exhausted(permit)
            case TransientError() | MisconfiguredError():
                self._gate.release(permit)
            case _:
                self._gate.settle(permit, tokens_in=tokens_in, tokens_out=tokens_out)

    def _note(self, queue: str, rules: Rules, fault: ProviderError | None, *, pooled: bool) -> None:
        """What a call says about the server, for those who come next."""
        if isinstance(rules.model, SimulatedModel):
            return  # its faults are drawn for each call; there is no server to spare
        match fault:
            case TransientError():
                host, lasting = isinstance(fault, HostError), bool(getattr(fault, "lasting", False))
                if self.rests.fault(queue, str(fault), host=host, lasting=lasting):
                    self.contacts.doubt(queue)
            case ThrottledError(wait_s=wait_s) if not pooled:
                self.rests.wait_for_quota(queue, THROTTLED_WAIT_S if wait_s is None else wait_s, str(fault))
            case ExhaustedError() if not pooled:
                self.rests.wait_for_quota(queue, LONGEST_REST_S, str(fault))
            case ThrottledError() | ExhaustedError() | MisconfiguredError():
                pass
            case _:
                self.rests.well(queue)

    def _may_go_well_elsewhere(self, rules: Rules, permit: Permit | None, fault: ProviderError | None) -> bool:
        """Whether another host, or another pool of the model, may take the same call."""
        if isinstance(fault, HostError):
            return True
        if permit is None or not (isinstance(fault, MisconfiguredError) and fault.credential):
            return False
        self._rejected[permit.pool] = time.monotonic() + REJECTED_S
        return self._accepted(pools_of(rules.model)) != pools_of(rules.model)

    def _accepted(self, pools: tuple[str, ...]) -> tuple[str, ...]:
        """The pools whose keys were not rejected lately; all of them if that leaves none."""
        return tuple(name for name in pools if self._rejected.get(name, 0.0) <= time.monotonic()) or pools
