"""Pins: which digests may answer a queue of a study. The first that answers is pinned, a person may accept others."""

from dataclasses import dataclass

from worker.contact_store import ContactStore
from worker.persist import persistently

MaybeStudy = int | None
"""A study by its id, or none: a model may be looked at for a study that was never run."""


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """Why a queue of a study must stand still, and the digest that is not pinned, if it is that."""

    reason: str
    digest: str | None = None


class Pins:
    """The pins that one process knows; those that others set meanwhile are looked up before anything is refused.

    `set_first`: the first digest that answers is pinned; who only looks pins nothing.
    """

    def __init__(self, store: ContactStore, *, set_first: bool = True) -> None:
        self._store = store
        self._set_first = set_first
        self._known: dict[tuple[int, str], frozenset[str]] = {}

    def refuse(self, study: MaybeStudy, queue: str, digest: str | None) -> Stopped | None:
        """Why an answer by `digest` does not count; None if it does, or if nobody tells who answered."""
        if study is None or digest is None or digest in self._known.get((study, queue), ()):
            return None
        look_up = self._store.pin if self._set_first else self._pinned
        pinned = self._known[study, queue] = persistently(lambda: look_up(study, queue, digest))
        if digest in pinned:
            return None
        others = " or ".join(sorted(pinned))
        return Stopped(reason=f"{digest} answers now, and what is there is by {others}", digest=digest)

    def _pinned(self, study: int, queue: str, digest: str) -> frozenset[str]:
        """The digests that may answer; any may, as long as none is pinned."""
        return self._store.pins(study, queue) or frozenset((digest,))

    def accepts(self, study: MaybeStudy, queue: str, digest: str | None) -> bool:
        """Whether `digest` is pinned; nothing is pinned by asking."""
        return study is not None and digest in persistently(lambda: self._store.pins(study, queue))
