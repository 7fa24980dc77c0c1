"""What a server left behind that was killed: its pid file, and processes that still hold its folder."""

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psutil import Process

_POLL_S = 0.05
_ENDS_WITHIN_S = 30


def end_leftovers(pid_file: Path, *, program: str, stop_signal: int) -> None:
    """End the server of an earlier run that its guard did not end, what its crash orphaned, and remove its pid file.

    Two servers on one folder would ruin it, and Postgres refuses to start while a backend of the dead one is at work.
    Only a process of that name which works in the pid file's folder is taken for ours: after a restart of the machine
    the number may be anybody's.
    """
    import psutil  # of the extra `local`, which our callers have found by now

    folder = pid_file.parent.resolve()
    with suppress(FileNotFoundError, ValueError, IndexError, psutil.Error):
        server = psutil.Process(int(pid_file.read_text(encoding="utf-8").split()[0]))
        if _is_ours(server, program, folder):
            _end(server, stop_signal)
    for orphan in _at_work_in(folder, program):
        _end(orphan, signal.SIGKILL)
    pid_file.unlink(missing_ok=True)


def _at_work_in(folder: Path, program: str) -> Iterator["Process"]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or somebody else's
            if _is_ours(process, program, folder):
                yield process


def _is_ours(process: "Process", program: str, folder: Path) -> bool:
    return process.name().startswith(program) and Path(process.cwd()) == folder


def _end(process: "Process", stop_signal: int) -> None:
    import psutil

    with suppress(psutil.NoSuchProcess):
        process.send_signal(stop_signal)
        deadline = time.monotonic() + _ENDS_WITHIN_S
        # Not psutil's wait: in a container without an init process an ended orphan stays a zombie for ever.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(_POLL_S)
