"""Everything that can die, dies: a study's workers, dispatchers, broker and database, at random and again and again."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

from ops.local.engines import Engine as LocalEngine
from producer.steering import steer
from tests.acceptance.test_study_end_to_end import Running, Stage

GRACE_S = 5


@dataclass(kw_only=True)
class Chaos:
    """The processes of one study, and what is done to them. `seed` decides what happens in which order."""

    stage: Stage
    postgres: LocalEngine
    valkey: LocalEngine
    seed: int
    workers: int
    slots: int
    happened: Counter[str] = field(default_factory=Counter)
    lossy: int = 0
    _working: list[Running] = field(default_factory=list)
    _dispatching: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._events: dict[str, Callable[[], None]] = {
            "worker killed": self._kill_worker,
            "worker told to stop": self._stop_worker,
            "worker hung for longer than its leases": self._hang_worker,
            "dispatcher killed": self._kill_dispatcher,
            "broker killed, data kept": self.valkey.restart,
            "broker killed, data lost": lambda: self.valkey.restart(lose_data=True),
            "database killed": self.postgres.restart,
            "study paused and resumed": self._pause,
        }
        self._left: list[str] = []

    def begin(self) -> None:
        """Start the workers and two dispatchers."""
        for _ in range(self.workers):
            self._working.append(self._start_worker())
        for _ in range(2):
            self._dispatching.append(self.stage.start("dispatch"))

    def go_on(self) -> None:
        """Let one thing happen: each once, in random order, then all over again."""
        if not self._left:
            self._left = self._draw.sample(sorted(self._events), len(self._events))
        name = self._left.pop()
        self._events[name]()
        self.happened[name] += 1

    def pick_up(self, finished: Callable[[], int], *, jobs: int, longest_s: float) -> float:
        """Wait until so many more jobs are finished and for a random moment more; the seconds it took to get there."""
        began, before = time.monotonic(), finished()
        while finished() < before + jobs:
            assert time.monotonic() - began < longest_s, self.happened
            time.sleep(0.1)
        took_s = time.monotonic() - began
        time.sleep(self._draw.uniform(0.0, 0.5))
        return took_s

    @property
    def every_kind_happened(self) -> bool:
        """Whether nothing is left that has not happened yet."""
        return len(self.happened) == len(self._events)

    def _start_worker(self) -> Running:
        options = ("--provider", "simulated", "--slots", str(self.slots), "--grace", str(GRACE_S))
        return self.stage.start("worker", *options)

    def _replace_worker(self, end: Callable[[Running], None]) -> None:
        number = self._draw.randrange(len(self._working))
        end(self._working[number])
        self._working[number] = self._start_worker()

    def _kill_worker(self) -> None:
        def kill(worker: Running) -> None:
            worker.process.kill()
            worker.end()

        self.lossy += 1
        self._replace_worker(kill)

    def _stop_worker(self) -> None:
        def stop(worker: Running) -> None:
            worker.process.send_signal(signal.SIGTERM)
            worker.end()

        self._replace_worker(stop)

    def _hang_worker(self) -> None:
        self.lossy += 1
        worker = self._draw.choice(self._working)
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(7)
        worker.process.send_signal(signal.SIGCONT)

    def _kill_dispatcher(self) -> None:
        number = self._draw.randrange(len(self._dispatching))
        self._dispatching[number].process.kill()
        self._dispatching[number].end()
        self._dispatching[number] = self.stage.start("dispatch")

    def _pause(self) -> None:
        self._steer_until_done("paused")
        time.sleep(1)
        self._steer_until_done("active")

    def _steer_until_done(self, state: str) -> None:
        for _ in range(20):
            try:
                steer(self.stage.engine, "trial", state)  # type: ignore[arg-type]
            except SQLAlchemyError:  # the database was just killed
                time.sleep(0.2)
            else:
                return
        raise AssertionError(state)
