"""Which model a GPU host serves now: one at a time, because loading one pushes another out. Pure, with its own clock.

A host stays with a model until nothing of it is left, or until others have waited for too long; then it takes nothing
new, ends what it holds, and goes to the model that the fewest other hosts serve and that has waited longest.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

IDLE_S = 30.0
"""A model of which nothing has been left for so long is given up, if others wait."""

LONGEST_HOLD_S = 900.0
"""A model may be held for so long before another one that has waited as long gets its turn."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One queue that the host could serve: whether jobs wait in it, and how many other hosts serve it."""

    queue: str
    waiting: bool
    hosts: int


class Hosting:
    """The queue that one host serves, decided anew with every look."""

    def __init__(self, host: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._since = 0.0
        self._idle_since: float | None = None
        self._waiting_since: dict[str, float] = {}
        self._leaving = False
        self.current: str | None = None

    def serve(self, works: Sequence[Work], *, held: bool) -> str | None:
        """The queue to take from now; None if none, or until what is `held` in hand of the last one has ended."""
        now = self._clock()
        waiting = {work.queue for work in works if work.waiting}
        # What is being served does not wait: when it is left, it stands last in line.
        since = {queue: self._waiting_since.get(queue, now) for queue in waiting if queue != self.current}
        self._waiting_since = since | ({self.current: now} if self.current in waiting else {})
        known = {work.queue for work in works}
        self._leaving = self._leaving or self._must_leave(now, known, waiting, held=held)
        if self._leaving:
            if held:
                return None
            self.current, self._leaving = None, False
        if self.current is None:
            self._take(now, [work for work in works if work.waiting])
        return self.current

    def _must_leave(self, now: float, known: set[str], waiting: set[str], *, held: bool) -> bool:
        if self.current is None:
            return False
        if self.current not in known:
            return True
        others = waiting - {self.current}
        if self.current in waiting or held:
            self._idle_since = None
            patience_ends = now - LONGEST_HOLD_S
            return self._since <= patience_ends and any(self._waiting_since[each] <= patience_ends for each in others)
        self._idle_since = now if self._idle_since is None else self._idle_since
        return bool(others) and now - self._idle_since >= IDLE_S

    def _take(self, now: float, works: Sequence[Work]) -> None:
        if not works:
            return
        chosen = min(works, key=lambda work: (work.hosts, self._waiting_since[work.queue], self._lot(work.queue)))
        self.current, self._since, self._idle_since = chosen.queue, now, None

    def _lot(self, queue: str) -> str:
        """Something that differs by host, so that hosts that start together begin with different models."""
        return sha256(f"{self._host} {queue}".encode()).hexdigest()
