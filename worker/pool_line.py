"""Standing in line: threads of one process that want the same pools ask for a permit one after the other."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

_LOOK_UP_S = 0.25
"""How often who waits looks whether the worker is stopping."""


class Line:
    """First come, first served: only the thread at the head asks the broker, so that 64 threads do not all poll it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[Event] = deque()

    @contextmanager
    def turn(self, until: float, stopping: Event) -> Iterator[bool]:
        """Wait for the head of the line; False if the instant `until` (monotonic, s) or the stop came first."""
        mine = Event()
        with self._lock:
            self._waiting.append(mine)
            self._waiting[0].set()
        try:
            yield _stand(mine, until, stopping)
        finally:
            with self._lock:
                self._waiting.remove(mine)
                if self._waiting:
                    self._waiting[0].set()


def _stand(mine: Event, until: float, stopping: Event) -> bool:
    while not stopping.is_set():
        left = until - time.monotonic()
        if mine.is_set() or left <= 0:
            return mine.is_set()
        mine.wait(min(left, _LOOK_UP_S))
    return False
