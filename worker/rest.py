"""Queues that this process leaves alone for a while: a quota that is spent, a server that fails, a host that cannot.

What rests is told with the heartbeat, so that nobody sends work here and people see why. Other processes learn from
their own calls; nothing in Postgres says that a queue rests, so nothing has to be cleared.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_REST_S = 10.0
LONGEST_REST_S = 600.0
MOST_DOUBLINGS = 20
LONGEST_NAMED_S = 86_400.0
"""Nobody is left alone for longer, whatever a server says."""

LOOK_BACK_S = 60.0
FEWEST_CALLS = 10
FAULTS_IN_A_ROW = 5
"""So many calls without a completion, or more than half of `FEWEST_CALLS` and more in a minute: the server fails."""

HOST_FAULTS = 3
HOST_LOOK_BACK_S = 300.0
"""So many failures at running a model in so many seconds: this host cannot run it."""


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Until when (monotonic seconds) a queue is left alone, and why; `quota`: only because its quota is used up."""

    until: float
    reason: str
    quota: bool = False


@dataclass(kw_only=True)
class _History:
    """What calls of one queue came to lately."""

    calls: deque[tuple[float, bool]] = field(default_factory=deque)
    host_faults: deque[float] = field(default_factory=deque)
    in_a_row: int = 0
    rests: int = 0


class Rests:
    """The queues that rest, and what decides about it; shared by all threads of a process.

    `patience` is a factor on how long what failed rests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, patience: float = 1.0) -> None:
        self._clock = clock
        self._first_s = patience * FIRST_REST_S
        self._longest_s = patience * LONGEST_REST_S
        self._lock = threading.Lock()
        self._resting: dict[str, Rest] = {}
        self._history: dict[str, _History] = {}

    def of(self, queue: str) -> Rest | None:
        """The rest of `queue`; None if it has none or if it is over."""
        with self._lock:
            rest = self._resting.get(queue)
            return rest if rest is not None and rest.until > self._clock() else None

    def now(self) -> dict[str, tuple[float, Rest]]:
        """Seconds left of every rest."""
        with self._lock:
            now = self._clock()
            return {queue: (rest.until - now, rest) for queue, rest in self._resting.items() if rest.until > now}

    def wait_for_quota(self, queue: str, wait_s: float, reason: str) -> None:
        """Leave `queue` alone for `wait_s` seconds at least: nothing is wrong with it."""
        with self._lock:
            self._begin(queue, wait_s, reason, quota=True)

    def well(self, queue: str) -> None:
        """A call of `queue` gave a completion."""
        with self._lock:
            history = self._of(queue)
            history.in_a_row = history.rests = 0
            self._note(history, well=True)

    def fault(self, queue: str, reason: str, *, host: bool = False, lasting: bool = False) -> bool:
        """A call gave none though nobody asked for a pause; whether the queue rests now.

        `host`: it was the host that failed at running the model; `lasting`: it will fail again as it is.
        """
        with self._lock:
            history = self._of(queue)
            history.in_a_row += 1
            self._note(history, well=False)
            if lasting or (host and self._host_fails(history)):
                history.host_faults.clear()
                self._begin(queue, self._longest_s, f"this host cannot run it: {reason}")
            elif history.in_a_row >= FAULTS_IN_A_ROW or self._mostly_faults(history):
                self._rest_longer(queue, history, reason)
            return queue in self._resting and self._resting[queue].until > self._clock()

    def put_off(self, queue: str, reason: str) -> None:
        """A first contact gave no verdict: leave `queue` alone, twice as long with every time."""
        with self._lock:
            self._rest_longer(queue, self._of(queue), reason)

    def _rest_longer(self, queue: str, history: _History, reason: str) -> None:
        rest = self._resting.get(queue)
        if rest is None or rest.until <= self._clock():  # calls that were in flight count once
            history.rests += 1
        history.calls.clear()
        history.in_a_row = 0
        wait_s = self._first_s * 2 ** min(MOST_DOUBLINGS, history.rests - 1)
        self._begin(queue, min(self._longest_s, wait_s), reason)

    def _begin(self, queue: str, wait_s: float, reason: str, *, quota: bool = False) -> None:
        rest = Rest(until=self._clock() + min(wait_s, LONGEST_NAMED_S), reason=reason, quota=quota)
        known = self._resting.get(queue)
        if known is None or known.until < rest.until:
            self._resting[queue] = rest

    def _of(self, queue: str) -> _History:
        return self._history.setdefault(queue, _History())

    def _note(self, history: _History, *, well: bool) -> None:
        now = self._clock()
        history.calls.append((now, well))
        while history.calls[0][0] < now - LOOK_BACK_S:
            history.calls.popleft()

    def _mostly_faults(self, history: _History) -> bool:
        faults = sum(not well for _, well in history.calls)
        return len(history.calls) >= FEWEST_CALLS and 2 * faults > len(history.calls)

    def _host_fails(self, history: _History) -> bool:
        now = self._clock()
        history.host_faults.append(now)
        while history.host_faults[0] < now - HOST_LOOK_BACK_S:
            history.host_faults.popleft()
        return len(history.host_faults) >= HOST_FAULTS
