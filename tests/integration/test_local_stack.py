"""The embedded stack for real: what survives, what is refused, and that nothing outlives its owner."""

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
from redis import AuthenticationError, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contract.errors import StackError
from ops.local.postgres import start_postgres
from ops.local.stack import LocalStack
from ops.local.valkey import start_valkey

ROOT = Path(__file__).parents[2]

# A program that runs a stack until Ctrl-C, with a child that ends only by force; then it tells who ended before that.
DRIVER = """
import signal, sys, time
from pathlib import Path
from ops.local.stack import LocalStack

with LocalStack(Path(sys.argv[1])) as stack:
    stack.spawn("sleeper", ["sh", "-c", "trap '' TERM; echo asleep; exec sleep 60"], env={}, grace=1)
    try:
        while not Path(sys.argv[1], "logs/sleeper.log").read_text():
            time.sleep(0.02)
        print("up", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print([part.child.name for part in stack.parts if part.child.code is not None], flush=True)
print("down", flush=True)
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One state folder for all tests, so that the cluster is made once; a name that would break a careless path."""
    return tmp_path_factory.mktemp("local") / "a state, 100% mine"


@contextmanager
def driver(state: Path) -> Iterator[subprocess.Popen[str]]:
    """The program above, up, leading a process group of its own as a terminal's foreground job does."""
    command = [sys.executable, "-c", DRIVER, str(state)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie has ended, however late the init process of this machine takes note."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def libpq(url: str) -> str:
    """The database's address without SQLAlchemy's part."""
    return url.replace("+psycopg", "")


def ask_model(base_url: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request to the model's server."""
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    with closing(connection):
        connection.request("POST" if body else "GET", address.path + path, json.dumps(body) if body else None)
        answer: dict[str, Any] = json.load(connection.getresponse())
        return answer


def test_rows_and_keys_survive_a_restart(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")  # a locale that no machine has must not matter
    monkeypatch.setenv("PGPORT", "1")
    with LocalStack(state) as stack:
        first = stack.addresses
        with psycopg.connect(libpq(first.database_url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 'è' AS word")
        with Redis.from_url(first.broker_url) as client:
            client.set("kept", "yes")
    with pytest.raises(StackError, match="is not running"):
        _ = stack.addresses
    with LocalStack(state) as stack:
        with psycopg.connect(libpq(stack.addresses.database_url)) as connection:
            assert connection.execute("SELECT word, upper(word) FROM kept").fetchone() == ("è", "È")
        with Redis.from_url(stack.addresses.broker_url) as client:
            assert client.get("kept") == b"yes"


def test_running_stack_keeps_its_promises(state: Path) -> None:
    with LocalStack(state) as stack:
        file = state / "stack.env"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text(encoding="utf-8").splitlines() == [
            f"BOTHWAYS_DATABASE_URL={stack.addresses.database_url}",
            f"BOTHWAYS_BROKER_URL={stack.addresses.broker_url}",
            f"BOTHWAYS_EMBEDDED_URL={stack.addresses.embedded_url}",
        ]
        with pytest.raises(StackError, match=f"in use by process {os.getpid()}"):
            LocalStack(state).start()
        assert file.exists()

        with Redis.from_url(stack.addresses.broker_url) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert client.config_get("bind") == {"bind": "127.0.0.1"}
            port = client.get_connection_kwargs()["port"]
        for password in ("wrong", None):
            client = Redis(port=port, password=password, retry=Retry(NoBackoff(), 0))
            with client, pytest.raises(AuthenticationError):
                client.ping()

        listed = ask_model(stack.addresses.embedded_url, "/models")
        assert [model["id"] for model in listed["data"]] == ["smollm2-135m-instruct"]
        body = {"model": "smollm2-135m-instruct", "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
        answer = ask_model(stack.addresses.embedded_url, "/chat/completions", body)
        assert answer["choices"][0]["message"]["content"]

        stack.spawn(
            "broken", [sys.executable, "-c", "import os; raise SystemExit(os.environ['WHY'])"], {"WHY": "oh"}, 1
        )
        *engines, broken = [part.child for part in stack.parts]
        await_that(lambda: broken.code is not None)
        assert [child.code for child in engines] == [None, None, None]
        assert (broken.name, broken.code, broken.tail()) == ("broken", 1, "oh")
        assert broken.log == state / "logs" / "broken.log"
    assert not file.exists()


def test_ctrl_c_reaches_no_child_and_a_second_one_changes_nothing(state: Path) -> None:
    with driver(state) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        assert {"valkey-server", "postgres", "sleep"} <= {member.name() for member in family}
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "[]\n"
        await_that(lambda: not (state / "stack.env").exists())  # it is stopping, and waits for the stubborn child
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "down\n"
        assert process.wait(5) == 0
        assert not any(is_alive(member) for member in family)


def test_sigkill_leaves_nothing_and_the_next_start_works(state: Path) -> None:
    with driver(state) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        await_that(lambda: not any(is_alive(member) for member in family))
    assert (state / "stack.env").exists()
    with LocalStack(state) as stack, psycopg.connect(libpq(stack.addresses.database_url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_servers_whose_guards_were_killed_too_are_no_obstacle(tmp_path: Path) -> None:
    postgres, valkey = start_postgres(tmp_path), start_valkey(tmp_path)
    servers = [server for each in (postgres, valkey) for server in psutil.Process(each.child.guard.pid).children()]
    for engine in (postgres, valkey):
        engine.child.guard.kill()
        engine.stop()
    assert all(is_alive(server) for server in servers)
    with start_postgres(tmp_path) as postgres, start_valkey(tmp_path) as valkey, Redis.from_url(valkey.url) as client:
        assert client.ping()
    assert not any(is_alive(server) for server in servers)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a path shorter than pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder).resolve()


def test_cluster_may_move_to_a_path_too_long_for_a_socket(short_folder: Path) -> None:
    short, long = short_folder / "short", short_folder / ("x" * 100)
    with start_postgres(short) as postgres, psycopg.connect(libpq(postgres.url)) as connection:
        assert connection.info.host == str(short / "postgres")
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    short.rename(long)
    with start_postgres(long) as postgres, psycopg.connect(libpq(postgres.url)) as connection:
        folder = Path(connection.info.host)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    assert not folder.exists()
