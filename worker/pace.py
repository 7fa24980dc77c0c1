"""How fast this process gets on: seconds a job by queue, told with its heartbeat."""

import threading

WEIGHT_OF_NEWEST = 0.05


class Pace:
    """A moving mean of what one job took in one slot, by queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = {}

    def note(self, queue: str, seconds: float) -> None:
        """One more job of `queue` took so many seconds."""
        with self._lock:
            mean = self._seconds.get(queue, seconds)
            self._seconds[queue] = mean + WEIGHT_OF_NEWEST * (seconds - mean)

    def now(self) -> dict[str, float]:
        """Seconds a job by queue; a queue of which no job was done is absent."""
        with self._lock:
            return {queue: round(seconds, 6) for queue, seconds in self._seconds.items()}
