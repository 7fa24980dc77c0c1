"""How many more bundles of each queue a process can use, where a quota decides how fast they go.

A thread that waits for a permit does nothing and is missing elsewhere. So of a queue with pools a worker wants a line
that is just long enough never to run empty: one thread, and one for each bundle that ends before the next comes.
"""

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

REFILL_S = 3.0
"""A bundle is here so long after it was wanted, at the latest: heartbeat, dispatcher, broker."""


class Wants:
    """The threads of one process by what they do, queue by queue."""

    def __init__(self, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._lock = threading.Lock()
        self._standing: Counter[str] = Counter()
        self._calling: Counter[str] = Counter()
        self._ended: defaultdict[str, deque[float]] = defaultdict(deque)

    @contextmanager
    def standing(self, queue: str) -> Iterator[None]:
        """A thread waits for what its next call needs: a first contact, a permit."""
        with self._counted(self._standing, queue):
            yield

    @contextmanager
    def calling(self, queue: str) -> Iterator[None]:
        """A thread makes a call."""
        with self._counted(self._calling, queue):
            yield

    def ended(self, queue: str) -> None:
        """A bundle of which something was asked is done."""
        with self._lock:
            self._ended[queue].append(self._clock())

    def now(self, queues: Collection[str]) -> dict[str, int]:
        """How many more bundles of each of these queues, all with pools, are wanted at once; no more than the slots.

        Where nobody stands in line it may be that more calls could run at once: then twice as many are tried.
        """
        with self._lock:
            return {queue: self._wanted(queue) for queue in queues}

    def _wanted(self, queue: str) -> int:
        ended = self._ended[queue]
        while ended and ended[0] < self._clock() - REFILL_S:
            ended.popleft()
        standing, line = self._standing[queue], 1 + len(ended)
        wanted = line - standing if standing else max(line, self._calling[queue])
        return min(self._slots, max(0, wanted))

    @contextmanager
    def _counted(self, threads: Counter[str], queue: str) -> Iterator[None]:
        with self._lock:
            threads[queue] += 1
        try:
            yield
        finally:
            with self._lock:
                threads[queue] -= 1
