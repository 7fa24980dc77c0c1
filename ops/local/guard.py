"""Keeps a command from outliving the process that wanted it: `python -m ops.local.guard [--grace S] -- COMMAND ...`.

The command runs in a session of its own, so a Ctrl-C in the terminal does not reach it. It is asked to stop when the
guard gets SIGTERM, or when the guard's stdin ends, which also happens when the parent dies by SIGKILL. After the grace
everything left in the command's process group is killed. The guard exits with the command's code, 128+N for signal N.

Standard library only, and nothing of ours: it is started by its path, from whatever folder the user is in.
"""

import argparse
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress


class Guard:
    """One command and the two ways to end it."""

    def __init__(self, *, grace: float, stop_signal: signal.Signals) -> None:
        self._grace = grace
        self._stop_signal = stop_signal
        self._child: subprocess.Popen[bytes] | None = None
        self._asked = False

    def run(self, command: Sequence[str], user: str | None = None) -> int:
        """Run the command to its end, as `user` if one is given; its exit code."""
        # A handler and not SIG_IGN: an ignored signal would stay ignored in the command.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._ask())
        signal.signal(signal.SIGALRM, lambda *_: self._kill_group())
        account = pwd.getpwnam(user) if user else None
        self._child = subprocess.Popen(  # noqa: S603 - the command is what our caller wants run
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )
        if self._asked:  # SIGTERM came while the child was being made
            self._send()
        threading.Thread(target=_await_end_of_parent, daemon=True).start()
        code = self._child.wait()
        self._kill_group()
        return code if code >= 0 else 128 - code

    def _ask(self) -> None:
        if not self._asked:  # a second request would mean "at once" to Celery
            self._asked = True
            self._send()

    def _send(self) -> None:
        if self._child is not None:
            self._child.send_signal(self._stop_signal)
            signal.setitimer(signal.ITIMER_REAL, max(self._grace, 0.01))  # 0 would mean never

    def _kill_group(self) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError, PermissionError):  # PermissionError: how macOS says that all are gone
                os.killpg(self._child.pid, signal.SIGKILL)


def _await_end_of_parent() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="ops.local.guard", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--grace", type=float, default=10.0, help="seconds between the request to stop and SIGKILL")
    parser.add_argument("--signal", default="SIGTERM", help="the signal that asks the command to stop")
    parser.add_argument("--user", help="the account to run the command as; only root can")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    guard = Guard(grace=options.grace, stop_signal=signal.Signals[options.signal])
    return guard.run(options.command, options.user)


if __name__ == "__main__":
    sys.exit(main())
