"""A child process under the guard, and the parts of the stack: what a child runs, and can be started again."""

import http.client
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from contract.errors import StackError
from ops.local import guard

_POLL_S = 0.05
_TAIL_BYTES = 2000


@dataclass(frozen=True, kw_only=True)
class Child:
    """One command under its guard. The guard's stdin is the life line: closed by `ask_to_stop`, or by our death."""

    name: str
    log: Path
    grace: float
    guard: subprocess.Popen[bytes]

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return self.guard.poll()

    def ask_to_stop(self) -> None:
        """Ask, without waiting; the guard kills what is left after the grace."""
        if self.guard.stdin is not None:
            self.guard.stdin.close()

    def stop(self) -> None:
        """Ask and wait; over in little more than the grace. A second call does nothing."""
        self.ask_to_stop()
        try:
            self.guard.wait(self.grace + 5)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()

    def kill(self) -> None:
        """End the command as a crash does, with `kill -9`, and wait for the end."""
        import psutil  # of the extra `local`, as the engines are

        while self.code is None:
            with suppress(psutil.NoSuchProcess):
                for process in psutil.Process(self.guard.pid).children():  # none yet when the guard is just starting
                    process.kill()
            time.sleep(_POLL_S)

    def tail(self) -> str:
        """The end of what it wrote since it was started."""
        with suppress(FileNotFoundError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").strip()
        return ""

    def failure(self, what: str) -> StackError:
        """The error that says what went wrong with this child, with its last words and where to read the rest."""
        last = self.tail().splitlines()[-1:]
        return StackError(f"{self.name}: {what}{': ' + last[0] if last else ''} (the whole log: {self.log})")


def launch(
    name: str,
    command: Sequence[str],
    *,
    state: Path,
    grace: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: str | None = None,
    stop_signal: str = "SIGTERM",
) -> Child:
    """Start a command under the guard with its output in STATE/logs/NAME.log; the log of the run before is kept."""
    logs = state / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    log = logs / f"{name}.log"
    if log.exists():
        log.replace(logs / f"{name}.previous.log")
    # -I -S: the guard needs the standard library only, starts faster so, and cannot be led astray by the environment.
    options = ["--grace", str(grace), "--signal", stop_signal, *(["--user", user] if user else [])]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own commands
            [sys.executable, "-I", "-S", guard.__file__, *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    return Child(name=name, log=log, grace=grace, guard=process)


def _at_once() -> bool:
    return True


@dataclass(kw_only=True, eq=False)
class Part:
    """What one child runs, from when this is made until `stop`. A child that ended can be followed by another."""

    launch: Callable[[], Child]
    is_ready: Callable[[], bool] = _at_once
    ready_within: float = 0.0
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        self.child = self.launch()

    def start_again(self) -> None:
        """Run it once more, where it was, in place of the child that ended; without waiting for an answer."""
        self.child.stop()
        self.child = self.launch()

    def wait_ready(self) -> Self:
        """Return when it answers; when it ended or took too long, stop it and raise StackError."""
        deadline = time.monotonic() + self.ready_within
        try:
            while not self.is_ready():
                if self.child.code is not None:
                    raise self.child.failure(f"ended with code {self.child.code} instead of starting")
                if time.monotonic() > deadline:
                    raise self.child.failure(f"did not answer within {self.ready_within:.0f} s")
                time.sleep(_POLL_S)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it and wait for the end; a second call does nothing."""
        self.child.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(kw_only=True, eq=False)
class Engine(Part):
    """A service: its address stays the same however often it is started again."""

    url: str
    data: Path | None = None  # what a restart can lose
    scratch: Path | None = None  # a temporary folder that goes when the engine stops

    def restart(self, *, lose_data: bool = False) -> None:
        """Kill it as a crash does, start it again at its address and wait until it answers.

        `lose_data` empties it in between; only an engine that can lose its data knows the word.
        """
        if lose_data and self.data is None:
            raise ValueError(f"{self.child.name} cannot be started without its data")
        self.child.kill()
        if lose_data and self.data is not None:
            shutil.rmtree(self.data)
        self.start_again()
        self.wait_ready()

    def stop(self) -> None:
        """End it, wait for the end, and remove its scratch folder; a second call does nothing."""
        super().stop()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def find_package(name: str) -> Path:
    """The folder of an installed package, found without importing it; StackError when the extra is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise StackError(f"the embedded stack needs the package {name}: pip install 'bothways[local]'")
    return Path(spec.origin).parent


def answers(port: int, path: str) -> bool:
    """Whether a server on this machine answers `path` with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
