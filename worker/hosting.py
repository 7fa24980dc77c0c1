"""Which model a GPU host serves now: one at a time, because loading one pushes another out. Pure, with its own clock.

A host stays with a model until nothing of it is left, or until others have waited for too long; then it takes nothing
new, ends what it holds, and goes to the model that the fewest other hosts serve and that has waited longest.

Nothing is left where no job of the model can be taken, none is in hand, and none may come again soon: then the host
goes to another one at once. Jobs that are with other hosts, that wait for an instant which is near, or for a parent
that is being asked keep the model for a while: to load it again would take longer than to wait for them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

IDLE_S = 30.0
"""For so long a model is kept for jobs that may come again soon, though others wait."""

LONGEST_HOLD_S = 900.0
"""A model may be held for so long before another one that has waited as long gets its turn."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One queue that the host could serve: whether jobs wait in it, and how many other hosts serve it.

    `soon`: whether jobs of it that cannot be taken now may come within `IDLE_S`.
    """

    queue: str
    waiting: bool
    hosts: int
    soon: bool = False


class Hosting:
    """The queue that one host serves, decided anew with every look.

    `patience` is a factor on both times above. Between two models there is a look at which nothing is served: what
    reached the host at the last moment is in hand by the next one.
    """

    def __init__(self, host: str, clock: Callable[[], float] = time.monotonic, *, patience: float = 1.0) -> None:
        self._host = host
        self._clock = clock
        self._idle_s = patience * IDLE_S
        self._longest_hold_s = patience * LONGEST_HOLD_S
        self._since = 0.0
        self._idle_since: float | None = None
        self._waiting_since: dict[str, float] = {}
        self._leaving = False
        self.current: str | None = None

    @property
    def served(self) -> str | None:
        """The queue from which jobs may be taken at this moment."""
        return None if self._leaving else self.current

    def serve(self, works: Sequence[Work], *, held: bool) -> str | None:
        """The queue to take from now; None if none, or until what is `held` in hand of the last one has ended."""
        now = self._clock()
        waiting = {work.queue for work in works if work.waiting}
        # What is being served does not wait: when it is left, it stands last in line.
        since = {queue: self._waiting_since.get(queue, now) for queue in waiting if queue != self.current}
        self._waiting_since = since | ({self.current: now} if self.current in waiting else {})
        if self._leaving and not held:
            self.current, self._leaving = None, False
        if not self._leaving and self.current is not None:
            self._leaving = self._must_leave(now, works, waiting, held=held)
        if self.current is None:
            self._take(now, [work for work in works if work.waiting])
        return self.served

    def _must_leave(self, now: float, works: Sequence[Work], waiting: set[str], *, held: bool) -> bool:
        if self.current not in {work.queue for work in works}:
            return True
        others = waiting - {self.current}
        if self.current in waiting or held:
            self._idle_since = None
            patience_ends = now - self._longest_hold_s
            return self._since <= patience_ends and any(self._waiting_since[each] <= patience_ends for each in others)
        self._idle_since = now if self._idle_since is None else self._idle_since
        soon = any(work.soon for work in works if work.queue == self.current)
        return bool(others) and not (soon and now - self._idle_since < self._idle_s)

    def _take(self, now: float, works: Sequence[Work]) -> None:
        if not works:
            return
        chosen = min(works, key=lambda work: (work.hosts, self._waiting_since[work.queue], self._lot(work.queue)))
        self.current, self._since, self._idle_since = chosen.queue, now, None

    def _lot(self, queue: str) -> str:
        """Something that differs by host, so that hosts that start together begin with different models."""
        return sha256(f"{self._host} {queue}".encode()).hexdigest()
