"""The way of one bundle through a worker: claim, then for each job renew, ask, commit, decide. No Celery, no SQL."""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.exc import DataError

from contract.study import Model
from worker.ask import ask_once, without_details
from worker.persist import persistently
from worker.providers.base import Provider
from worker.records import ClaimedJob
from worker.retry import Decision, Done, Dropped, Tally, asking_policy, count, decide
from worker.store import JobStore


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What is in the hands of one process, so that it can be given back at the end of the grace."""

    jobs: dict[int, ClaimedJob]

    def take(self, jobs: Sequence[ClaimedJob]) -> None:
        """Remember that `jobs` are held."""
        self.jobs.update({job.id: job for job in jobs})

    def drop(self, jobs: Sequence[ClaimedJob]) -> None:
        """Forget them: finished or given back."""
        for job in jobs:
            self.jobs.pop(job.id, None)


class Evaluator:
    """Evaluates bundles with one store and one provider a model, shared by all threads of a process."""

    def __init__(
        self, store: JobStore, open_provider: Callable[[Model], Provider], *, stopping: threading.Event
    ) -> None:
        self._store = store
        self._open_provider = open_provider
        self._providers: dict[Model, Provider] = {}
        self._opening = threading.Lock()
        self._stopping = stopping
        self._hands = Hands(jobs={})

    def evaluate(self, job_ids: Sequence[int]) -> str:
        """Evaluate what can still be claimed of `job_ids`; returns the summary that monitors show."""
        jobs = persistently(lambda: self._store.claim(job_ids))
        self._hands.take(jobs)
        started = time.monotonic()
        outcomes: Counter[str] = Counter()
        left = deque(jobs)
        try:
            while left and not self._stopping.is_set():
                ends = started + left[0].rules.bundles.budget_s
                if time.monotonic() > ends:
                    break
                outcomes[self._settle(left[0], ends)] += 1
                self._hands.drop([left.popleft()])
        finally:
            # Also after an error that nobody foresaw: what was not finished must not wait for its lease.
            if left:
                outcomes["given back"] = len(left)
                self._give_back(list(left))
        return " ".join(f"{what} {times}" for what, times in outcomes.items()) or "nothing to do"

    def give_back_all(self) -> None:
        """Give back whatever is still held; calls in flight are not waited for."""
        self._give_back(list(self._hands.jobs.values()))

    def _settle(self, job: ClaimedJob, ends: float) -> str:
        """Ask until the retry rules say that it is enough, or the time is over; returns what became of the job."""
        if job.answered:
            persistently(lambda: self._store.finish(job))
            return "answered"
        asking = _Asking(self._store, lambda: self._provider(job.rules.model), job, self._wanted_until(ends))
        decision = asking_policy(self._sleep)(asking.step)
        return asking.last_outcome if isinstance(decision, Done) else "put back"

    def _wanted_until(self, ends: float) -> Callable[[], bool]:
        return lambda: not self._stopping.is_set() and time.monotonic() <= ends

    def _sleep(self, seconds: float) -> None:
        """Wait, but not beyond the order to stop."""
        self._stopping.wait(seconds)

    def _give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        persistently(lambda: self._store.give_back(jobs))
        self._hands.drop(jobs)

    def _provider(self, model: Model) -> Provider:
        """The provider of `model`, opened once a process."""
        with self._opening:
            if model not in self._providers:
                self._providers[model] = self._open_provider(model)
            return self._providers[model]


class _Asking:
    """The calls of one job in one claim."""

    def __init__(
        self, store: JobStore, open_provider: Callable[[], Provider], job: ClaimedJob, may_call: Callable[[], bool]
    ) -> None:
        self._store = store
        self._open_provider = open_provider
        self._job = job
        self._may_call = may_call
        self._tally: Tally = job.tally
        self.last_outcome = "failed"

    def step(self) -> Decision:
        """One call and its commit; Dropped without one where the time is over or the job is not ours or not wanted."""
        if not self._may_call() or not persistently(lambda: self._store.begin_call(self._job)):
            persistently(lambda: self._store.give_back([self._job]))
            return Dropped()
        asked = ask_once(self._job, self._tally, self._open_provider)
        self._tally = count(self._tally, asked.verdict)
        decision = decide(self._tally, asked.verdict, self._job.rules.retry, jitter=random.random())
        attempt = asked.attempt
        if asked.deployment is not None:
            deployment = asked.deployment
            attempt = replace(attempt, deployment=persistently(lambda: self._store.deployment_id(deployment)))
        try:
            persistently(lambda: self._store.keep(self._job, attempt, decision))
        except DataError:
            persistently(lambda: self._store.keep(self._job, without_details(attempt), decision))
        self.last_outcome = "failed" if attempt.outcome == "no_completion" else attempt.outcome
        return decision
