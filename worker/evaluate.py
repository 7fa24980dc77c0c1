"""The way of one bundle through a worker: claim, then for each job renew, ask, commit, decide. No Celery, no SQL."""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.exc import DataError, IntegrityError

from worker.access import Access
from worker.ask import Asked, cannot_ask, without_details
from worker.company import Company
from worker.contact_store import ContactStore
from worker.hands import Hands
from worker.openings import Entry, Opener
from worker.pace import Pace
from worker.persist import persistently
from worker.pools import Gate
from worker.prepare import Prepared, prepare
from worker.records import ClaimedJob
from worker.retry import AskAgain, Decision, Done, Dropped, Tally, asking_policy, count, decide
from worker.store import JobStore


class Evaluator:
    """Evaluates bundles with one store and one provider a model, shared by all threads of a process.

    `serves` says whether a queue is served now, all are if nothing else is set: a bundle of another one, which came too
    late, goes back untouched. `patience` is a factor on how long what failed is left alone.
    """

    def __init__(
        self,
        store: JobStore,
        open_provider: Opener,
        *,
        contacts: ContactStore,
        gate: Gate | None = None,
        stopping: threading.Event,
        slots: int = 1,
        patience: float = 1.0,
    ) -> None:
        self.store = store
        self.stopping = stopping
        self.company = Company()
        self.pace = Pace()
        self.policy = asking_policy(self._sleep)
        self.access = Access(
            contacts,
            open_provider,
            store=store,
            gate=gate,
            stopping=stopping,
            most_slots=slots,
            patience=patience,
        )
        self.serves: Callable[[str], bool] = lambda _: True
        self._hands = Hands()

    def evaluate(self, job_ids: Sequence[int]) -> str:
        """Evaluate what can still be claimed of `job_ids`; returns the summary that monitors show."""
        jobs = persistently(lambda: self.store.claim(job_ids))
        self._hands.take(jobs)
        outcomes: Counter[str] = Counter()
        way = _Way(self, jobs)
        try:
            while way.left and way.may_go_on():
                outcomes[way.settle_next()] += 1
                self._hands.drop([way.left.popleft()])
        finally:
            # Also after an error that nobody foresaw: what was not finished must not wait for its lease.
            way.end()
            if outcomes.total() > outcomes["put back"]:
                self.access.wants.ended(jobs[0].queue)
            if way.left:
                outcomes["given back"] = len(way.left)
                self._give_back(list(way.left))
        return " ".join(f"{what} {times}" for what, times in outcomes.items()) or "nothing to do"

    def give_back_all(self) -> None:
        """Give back whatever is still held; calls in flight are not waited for."""
        self._give_back(self._hands.jobs)

    def holds(self, queue: str) -> bool:
        """Whether jobs of `queue` are in hand."""
        return self._hands.hold(queue)

    def _sleep(self, seconds: float) -> None:
        """Wait, but not beyond the order to stop."""
        self.stopping.wait(seconds)

    def _give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        persistently(lambda: self.store.give_back(jobs))
        self._hands.drop(jobs)


class _Way:
    """One bundle on its way: the jobs that are left, and the one whose call was already noted as begun."""

    def __init__(self, evaluator: Evaluator, jobs: Sequence[ClaimedJob]) -> None:
        self.left = deque(jobs)
        self._evaluator = evaluator
        self._store = evaluator.store
        self._ends = time.monotonic() + (jobs[0].rules.bundles.budget_s if jobs else 0.0)
        self._begun: _Begun | None = None
        # Asked when the jobs are in hand: a host looks at what it holds before it goes to another model.
        self._closed = bool(jobs) and not evaluator.serves(jobs[0].queue)
        self._alone: bool | None = None  # how we are in the process's company; None: not in it

    def may_go_on(self) -> bool:
        """Whether a further call may begin: nobody told us to stop, there is time left, and the model may be asked."""
        return not self._closed and not self._evaluator.stopping.is_set() and time.monotonic() <= self._ends

    def settle_next(self) -> str:
        """Ask the next job until the retry rules say that it is enough, or the time is over; what became of it."""
        job = self.left[0]
        if job.answered:
            persistently(lambda: self._store.finish(job))
            return "answered"
        started = time.monotonic()
        asking = _Asking(job)
        decision = self._step(asking)
        if isinstance(decision, AskAgain):
            made = [decision]
            decision = self._evaluator.policy(lambda: made.pop() if made else self._step(asking))
        if not isinstance(decision, Dropped):
            self._evaluator.pace.note(job.queue, time.monotonic() - started)
        return asking.last_outcome if isinstance(decision, Done) else "put back"

    def _step(self, asking: "_Asking") -> Decision:
        """One call and its commit; Dropped without one where the time is over or the job is not ours or not wanted."""
        job = asking.job
        begun = self._already_begun(job) or self._begin(job, asking.tally)
        if begun is None:
            persistently(lambda: self._store.give_back([job]))
            return Dropped()
        if begun.entry is None:
            asked = cannot_ask(begun.prepared)
        else:
            asked = self._evaluator.access.ask(begun.entry, job, asking.tally, begun.prepared)
        decision = asking.judge(asked)
        self._keep(job, asked, decision, asking.tally)
        return decision

    def _already_begun(self, job: ClaimedJob) -> "_Begun | None":
        """The call that was begun together with the last commit, if it is this job's and may still be made."""
        begun = self._begun
        if begun is None or begun.job is not job or not self.may_go_on():
            return None
        self._begun = None
        return begun

    def end(self) -> None:
        """Leave the company of the process's other calls, and make no call that was begun."""
        if self._begun is not None and self._begun.entry is not None:
            self._evaluator.access.abandon(self._begun.entry)
        self._begun = None
        if self._alone is not None:
            self._evaluator.company.leave(alone=self._alone)
            self._alone = None

    def _begin(self, job: ClaimedJob, tally: Tally) -> "_Begun | None":
        """Have the call permitted and noted as begun. In company from before that until after the last commit: a call
        that is noted while a suspect is asked would be accused of that one's deeds."""
        self.end()
        prepared = prepare(job, tally)
        entry = None
        if prepared.prompt is not None:
            entry = self._evaluator.access.enter(job, prepared, until=self._ends) if self.may_go_on() else None
            self._closed = self._closed or entry is None
        joined = self.may_go_on() and self._join(job) and self.may_go_on()
        if joined and persistently(lambda: self._store.begin_call(job)):
            return _Begun(job=job, prepared=prepared, entry=entry)
        if entry is not None:
            self._evaluator.access.abandon(entry)
        return None

    def _join(self, job: ClaimedJob) -> bool:
        """Come into the company of the process's other calls, or be alone, as the job wants it."""
        # A suspect outwaits the longest call of the others, and its time begins when it is alone.
        until = self._ends + job.rules.model.timeout_s if job.suspect else self._ends
        if self._evaluator.company.enter(alone=job.suspect, until=until):
            self._alone = job.suspect
            if job.suspect:
                self._ends = time.monotonic() + job.rules.bundles.budget_s
        return self._alone is not None

    def _keep(self, job: ClaimedJob, asked: Asked, decision: Decision, tally: Tally) -> None:
        """Commit the attempt and what follows from it, and in the same breath begin the call that comes next."""
        attempt = asked.attempt
        if asked.deployment is not None:
            deployment = asked.deployment
            attempt = replace(attempt, deployment=persistently(lambda: self._store.deployment_id(deployment)))
        begun = self._following(decision, tally)
        then = None if begun is None else begun.job
        try:
            may = persistently(lambda: self._store.keep(job, attempt, decision, then=then))
        except (DataError, IntegrityError):
            may = persistently(lambda: self._store.keep(job, without_details(attempt), decision, then=then))
        if begun is not None and begun.entry is not None and not may:
            self._evaluator.access.abandon(begun.entry)
        self._begun = begun if may else None

    def _following(self, decision: Decision, tally: Tally) -> "_Begun | None":
        """The call that can begin at once; None where something must be waited for or looked at first."""
        if not self.may_go_on() or self._evaluator.company.disturbed:
            return None
        if isinstance(decision, AskAgain):
            return self._at_once(self.left[0], tally) if decision.wait_s == 0 else None
        following = self.left[1] if len(self.left) > 1 else None
        if following is None or following.answered or following.suspect or self._alone:
            return None
        return self._at_once(following, following.tally)

    def _at_once(self, job: ClaimedJob, tally: Tally) -> "_Begun | None":
        prepared = prepare(job, tally)
        if prepared.prompt is None:
            return None
        entry = self._evaluator.access.enter(job, prepared, until=self._ends, wait=False)
        return None if entry is None else _Begun(job=job, prepared=prepared, entry=entry)


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A call that is permitted and noted as begun; without `entry` where the prompt could not be rendered."""

    job: ClaimedJob
    prepared: Prepared
    entry: Entry | None


class _Asking:
    """What the calls of one job in one claim have come to so far."""

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.tally: Tally = job.tally
        self.last_outcome = "failed"

    def judge(self, asked: Asked) -> Decision:
        """Count the call and decide what follows from it."""
        self.tally = count(self.tally, asked.verdict)
        outcome = asked.attempt.outcome
        self.last_outcome = "failed" if outcome == "no_completion" else outcome
        return decide(self.tally, asked.verdict, self.job.rules.retry, jitter=random.random())
