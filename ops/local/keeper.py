"""Starts again, at its address, what ended by itself, and knows when that is in vain."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from contract.errors import StackError
from ops.local.engines import Part

_LOOK_EVERY_S = 0.2
_LONGEST_PAUSE_S = 4.0


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a part may end by itself within how many seconds."""

    deaths: int
    within_s: float


FOR_ENGINES = Patience(deaths=5, within_s=60)
FOR_COMMANDS = Patience(deaths=8, within_s=60)
"""More than for engines: it may be the jobs that kill a worker, one after the other."""


def pause_before_start(deaths: Sequence[float], patience: Patience) -> float | None:
    """Seconds to wait before the next start, None to give up; `deaths` are the times of all so far, the newest last."""
    recent = sum(death > deaths[-1] - patience.within_s for death in deaths)
    if recent > patience.deaths:
        return None
    return min(2.0 ** (recent - 2), _LONGEST_PAUSE_S) if recent > 1 else 0.0


@dataclass(kw_only=True)
class _Watched:
    """A part, the times it ended at, and what it is waited for."""

    part: Part
    patience: Patience
    deaths: list[float] = field(default_factory=list)
    code: int | None = None  # of its last end
    start_at: float | None = None  # None: it was started
    answer_by: float | None = None  # None: it answered

    @property
    def serves(self) -> bool:
        return self.start_at is None and self.answer_by is None


class Keeper:
    """A thread that looks after the parts of a stack from `start` to `stop`."""

    def __init__(self, *, engines: Sequence[Part], commands: Sequence[Part], say: Callable[[str], None]) -> None:
        self._engines = [_Watched(part=part, patience=FOR_ENGINES) for part in engines]
        self._commands = [_Watched(part=part, patience=FOR_COMMANDS) for part in commands]
        self._say = say
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keeper")
        self._kept: Future[None] | None = None

    def start(self, gave_up: Callable[[], None]) -> None:
        """Look after them from now on; `gave_up` is called from the keeper's thread, once, when it is in vain."""
        self._kept = self._thread.submit(self._keep)
        self._kept.add_done_callback(lambda kept: gave_up() if kept.exception() else None)

    def stop(self) -> None:
        """Start nothing any more; returns when that is sure."""
        self._stopping.set()
        self._thread.shutdown()

    @property
    def failure(self) -> BaseException | None:
        """Why it gave up; None as long as it has not."""
        return self._kept.exception() if self._kept is not None and self._kept.done() else None

    def _keep(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY_S):
            for engine in self._engines:
                self._look(engine)
            # A worker that finds no Postgres or no broker at its start ends at once.
            engines_serve = all(engine.serves for engine in self._engines)
            for command in self._commands:
                self._look(command, may_start=engines_serve)

    def _look(self, watched: _Watched, *, may_start: bool = True) -> None:
        now = time.monotonic()
        if watched.start_at is not None:
            if may_start and now >= watched.start_at:
                _start_again(watched, now)
        elif watched.part.child.code is not None:
            _note_death(watched, now)
        elif watched.answer_by is not None:
            if watched.part.is_ready():
                watched.answer_by = None
                self._say(f"{watched.part.child.name} ended by itself (code {watched.code}); started again")
            elif now > watched.answer_by:
                raise watched.part.child.failure(
                    f"was started again and did not answer for {watched.part.ready_within:.0f} s"
                )


def _start_again(watched: _Watched, now: float) -> None:
    try:
        watched.part.start_again()
    except OSError as error:
        raise StackError(f"{watched.part.child.name} could not be started again: {error}") from error
    watched.start_at, watched.answer_by = None, now + watched.part.ready_within


def _note_death(watched: _Watched, now: float) -> None:
    child, patience = watched.part.child, watched.patience
    watched.deaths.append(now)
    watched.code = child.code
    pause = pause_before_start(watched.deaths, patience)
    if pause is None:
        often = f"the last of more than {patience.deaths} times within {patience.within_s:.0f} s"
        raise StackError(
            f"{child.name} ended by itself (code {child.code}), {often}; its log is {child.log}:\n{child.tail()}"
        )
    watched.start_at = now + pause
