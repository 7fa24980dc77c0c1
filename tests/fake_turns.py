"""What one model of a fake server does call by call: its name is one behaviour, or several joined by `THEN`."""

import threading
from collections import Counter
from collections.abc import Iterable

THEN = "_then_"


class Turns:
    """The behaviours that calls meet. Of those that a name joins each call takes the next, and the last one stays.

    Calls whose prompt lacks the text `only_at` are answered as "good" is; None where every call meets its behaviour.
    `met` counts those that were met.
    """

    def __init__(self) -> None:
        self.only_at: str | None = None
        self.met: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._taking = threading.Lock()

    def take(self, model: str, prompt: str) -> str:
        """The behaviour that this call of `model` meets."""
        if self.only_at is not None and self.only_at not in prompt:
            return "good"
        names = model.split(THEN)
        with self._taking:
            name = names[min(self._calls[model], len(names) - 1)]
            self._calls[model] += 1
            self.met[name] += 1
        return name


def joined(behaviours: Iterable[str]) -> str:
    """The name of a model that does this, call by call."""
    return THEN.join(behaviours)
