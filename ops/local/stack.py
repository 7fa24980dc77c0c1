"""The embedded stack: Postgres, Valkey and a small model as children of this process, all state in one folder.

    with LocalStack(Path(".bothways")) as stack:
        stack.spawn("worker", [...], env={...}, grace=30)
        stack.keep(say=print, gave_up=...)

However this process ends, its children end: each has a guard that notices.
"""

import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from contract.errors import StackError
from contract.settings import STACK_FILE
from ops.local.engines import Engine, Part, launch
from ops.local.files import write_private
from ops.local.keeper import Keeper
from ops.local.model import launch_model
from ops.local.postgres import launch_postgres
from ops.local.valkey import launch_valkey

_LEAST_FREE_BYTES = 300 * 2**20


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where the engines are; the first two contain secrets."""

    database_url: str
    broker_url: str
    embedded_url: str


class LocalStack:
    """The engines on one state folder, and the children that work with them. Start and stop in the main thread."""

    def __init__(self, state: Path) -> None:
        self._state = state.expanduser().resolve()
        self._lock: int | None = None
        self._engines: list[Engine] = []
        self._spawned: list[Part] = []
        self._keeper: Keeper | None = None
        self._addresses: Addresses | None = None

    @property
    def addresses(self) -> Addresses:
        """Where the engines are; StackError when the stack is not running."""
        if self._addresses is None:
            raise StackError(f"the stack on {self._state} is not running")
        return self._addresses

    @property
    def parts(self) -> tuple[Part, ...]:
        """The engines, then the spawned commands."""
        return (*self._engines, *self._spawned)

    @property
    def failure(self) -> BaseException | None:
        """Why keeping the parts alive was given up; None as long as it was not."""
        return self._keeper.failure if self._keeper is not None else None

    def start(self) -> None:
        """Start every engine, wait until all answer, write STATE/stack.env. On any error what was started is stopped.

        StackError: another process has the folder, it cannot be written, its disk is full, a package is missing, an
        engine does not start.
        """
        try:
            self._state.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self._state / "lock")
            _check_disk(self._state)
            # Postgres last: a first start waits for initdb, and the others load meanwhile. `stop` uses the same order.
            for launch_engine in (launch_model, launch_valkey, launch_postgres):
                self._engines.append(launch_engine(self._state))
            model, valkey, postgres = [engine.wait_ready() for engine in self._engines]
            self._addresses = Addresses(database_url=postgres.url, broker_url=valkey.url, embedded_url=model.url)
            write_private(self._state / STACK_FILE, _dotenv(self._addresses))
        except OSError as error:
            self.stop()
            raise StackError(f"the stack could not be started on {self._state}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the spawned children together, then the model, Valkey, Postgres. A second Ctrl-C changes nothing.

        Takes at most the graces of all and some seconds; a second call does nothing.
        """
        with _uninterrupted():
            if self._lock is None:
                return
            if self._keeper is not None:
                self._keeper.stop()
            self._addresses = None
            (self._state / STACK_FILE).unlink(missing_ok=True)
            for command in self._spawned:
                command.child.ask_to_stop()
            for command in self._spawned:
                command.stop()
            for engine in self._engines:
                engine.stop()
            self._spawned.clear()
            self._engines.clear()
            os.close(self._lock)
            self._lock = None

    def spawn(self, name: str, command: Sequence[str], env: Mapping[str, str], grace: float) -> None:
        """Run a further command until `stop`, its output in STATE/logs/NAME.log; `env` is added to our environment."""
        self._spawned.append(Part(launch=partial(launch, name, command, state=self._state, env=env, grace=grace)))

    def keep(self, *, say: Callable[[str], None], gave_up: Callable[[], None]) -> None:
        """Until `stop`, start again at its address what of the parts of now ends by itself, and say so in one line.

        When that is in vain, `failure` says why and `gave_up` is called once. Both calls come from another thread.
        """
        self._keeper = Keeper(engines=self._engines, commands=self._spawned, say=say)
        self._keeper.start(gave_up)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _lock(path: Path) -> int:
    """Take the folder, or refuse at once. The lock goes with the process, so an unclean end leaves none behind."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode().strip()
        os.close(descriptor)
        raise StackError(
            f"{path.parent} is in use by process {holder}: stop that one, or choose another folder with BOTHWAYS_STATE"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _check_disk(state: Path) -> None:
    free = shutil.disk_usage(state).free
    if free < _LEAST_FREE_BYTES:
        raise StackError(
            f"{state} has {free // 2**20} MB left on its disk and the stack needs {_LEAST_FREE_BYTES // 2**20} MB:"
            " free some, or choose another folder with BOTHWAYS_STATE"
        )


def _dotenv(addresses: Addresses) -> str:
    return (
        f"BOTHWAYS_DATABASE_URL={addresses.database_url}\n"
        f"BOTHWAYS_BROKER_URL={addresses.broker_url}\n"
        f"BOTHWAYS_EMBEDDED_URL={addresses.embedded_url}\n"
    )


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C in this block; only the main thread gets it, and only there can it be ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
