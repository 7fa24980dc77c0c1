"""Who is asked beside whom in one process: a suspect is asked alone, so that its worker's death accuses nobody else."""

import threading
import time


class Company:
    """Calls of one process: any number together, or one alone. Whoever waits to be alone goes before newcomers."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._together = 0
        self._alone = False
        self._waiting_alone = 0

    @property
    def disturbed(self) -> bool:
        """Whether somebody is alone or waits to be: whoever is in company should make no further call before that."""
        return self._alone or self._waiting_alone > 0

    def enter(self, *, alone: bool, until: float) -> bool:
        """Come into company, or be alone; False if that was not to be had by the monotonic instant `until`."""
        return self._enter_alone(until) if alone else self._enter_together(until)

    def leave(self, *, alone: bool) -> None:
        """Go, as one came."""
        with self._change:
            if alone:
                self._alone = False
            else:
                self._together -= 1
            self._change.notify_all()

    def _enter_together(self, until: float) -> bool:
        with self._change:
            free = self._change.wait_for(lambda: not self.disturbed, max(0.0, until - time.monotonic()))
            self._together += free
            return free

    def _enter_alone(self, until: float) -> bool:
        with self._change:
            self._waiting_alone += 1
            free = self._change.wait_for(
                lambda: not self._alone and not self._together, max(0.0, until - time.monotonic())
            )
            self._waiting_alone -= 1
            self._alone = self._alone or free
            self._change.notify_all()
            return free
