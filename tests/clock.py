"""A clock that tests put forward."""


class Clock:
    """A monotonic clock that stands until `now` is changed."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
