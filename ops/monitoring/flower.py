"""Flower, the monitor of Celery, as a child process: read-only, behind a password, heard on this machine only.

The child is `python -m ops.monitoring`, which adds our Celery application and the password. The password stands in a
file and in the memory of that process, and nowhere else.
"""

import importlib.util
import os
import secrets
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from contract.errors import StackError
from ops.local.engines import Engine, answers, free_port, launch
from ops.local.files import write_private

USER = "bothways"
LOOPBACK = "127.0.0.1"

_GRACE_S = 3.0  # it has nothing to save
_READY_WITHIN_S = 30.0
_MAX_TASKS = 10_000  # bundles, not jobs
_PURGE_OFFLINE_AFTER_S = 300


def start_flower(state: Path, env: Mapping[str, str]) -> Engine:
    """Flower, answering; `env` names database and broker. StackError: it is not installed, or it does not start."""
    if importlib.util.find_spec("flower") is None:
        raise StackError("the monitor needs the package flower: pip install 'bothways[monitor]'")
    port = free_port()
    engine = Engine(
        url=f"http://127.0.0.1:{port}",
        launch=partial(launch, "flower", command(port, kept_password(state)), state=state, env=env, grace=_GRACE_S),
        is_ready=partial(answers, port, "/healthcheck"),
        ready_within=_READY_WITHIN_S,
    )
    return engine.wait_ready()


def command(port: int, password_file: Path) -> list[str]:
    """The command line of the child: it says where the password is, never what it is."""
    # -P: a folder `ops` where the user happens to be must not hide ours.
    python = [sys.executable, "-P", "-m", "ops.monitoring"]
    return [*python, "--port", str(port), "--password-file", str(password_file)]


def flower_options(port: int, address: str = LOOPBACK) -> list[str]:
    """What Flower itself is told; nothing here is a secret."""
    return [
        f"--address={address}",
        f"--port={port}",
        "--read_only",
        f"--max_tasks={_MAX_TASKS}",
        f"--purge_offline_workers={_PURGE_OFFLINE_AFTER_S}",
        # Our workers send events unasked; a monitor that only reads broadcasts nothing.
        "--enable_events=false",
        "--tasks_columns=kwargs,result,state,received,started,runtime,worker,uuid",
        # By default it would run a flowerconfig.py that lies in the current folder.
        f"--conf={os.devnull}",
    ]


def flower_environment(environment: Mapping[str, str], password: str) -> dict[str, str]:
    """`environment` with the login as Flower's only variable: others of the user's could open what we close.

    StackError: a password that would leave the door open, since Flower takes what follows a comma for another login.
    """
    if not password or "," in password:
        raise StackError("Flower's password must not be empty and must have no comma")
    kept = {name: value for name, value in environment.items() if not name.startswith("FLOWER_")}
    return kept | {"FLOWER_BASIC_AUTH": f"{USER}:{password}"}


def password_path(state: Path) -> Path:
    """The file that holds the password, readable by its owner only."""
    return state / "flower" / "password"


def kept_password(state: Path) -> Path:
    """The password's file; the password is made once, so that a browser may remember it."""
    path = password_path(state)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        write_private(path, secrets.token_hex(24))
    return path
