"""The guard: the command ends when it is told to and when the parent is gone, and takes its own children along."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ops.local import guard

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
POLITE = (
    "import signal,time; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print('up', flush=True); time.sleep(60)"
)
PARENT = "import subprocess,sys,time; subprocess.Popen(['sleep','60']); print('up', flush=True); time.sleep(60)"


@contextmanager
def guarded(script: str, *, grace: float = 5) -> Iterator[subprocess.Popen[bytes]]:
    """A guard over a Python script that has said that it is up."""
    command = [sys.executable, guard.__file__, "--grace", str(grace), "--", sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process
        finally:
            process.terminate()


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie has ended, however late the init process of this machine takes note."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_exit_code_is_the_commands() -> None:
    command = [sys.executable, guard.__file__, "--", sys.executable, "-c", "raise SystemExit(3)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(10) == 3


def test_sigterm_is_passed_on() -> None:
    with guarded(POLITE) as process:
        process.terminate()
        assert process.wait(5) == 7


def test_end_of_stdin_stops_the_command() -> None:
    with guarded(POLITE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(5) == 7


def test_a_command_that_does_not_stop_is_killed_after_the_grace() -> None:
    with guarded(STUBBORN, grace=0.2) as process:
        start = time.monotonic()
        process.terminate()
        assert process.wait(5) == 128 + signal.SIGKILL
        assert time.monotonic() - start >= 0.2


def test_sigint_is_ignored_by_the_guard_and_does_not_reach_the_command() -> None:
    with guarded(POLITE) as process:
        process.send_signal(signal.SIGINT)
        (command,) = psutil.Process(process.pid).children()
        assert os.getpgid(command.pid) != os.getpgid(process.pid)
        process.terminate()
        assert process.wait(5) == 7


def test_children_of_the_command_end_with_it() -> None:
    with guarded(PARENT) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        assert [member.name() for member in family][-1] == "sleep"
        process.terminate()
        process.wait(5)
        deadline = time.monotonic() + 5
        while any(is_alive(member) for member in family):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_guard_needs_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    command = [sys.executable, "-I", "-S", guard.__file__, "--", "true"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.wait(10) == 0
