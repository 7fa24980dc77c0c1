"""Real engines and commands that are killed: what comes back, where, with what, and what is given up."""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
from redis import Redis

from contract.errors import StackError
from ops.local.engines import Part, launch
from ops.local.keeper import Keeper
from ops.local.model import launch_model
from ops.local.postgres import start_postgres
from ops.local.stack import LocalStack
from ops.local.valkey import start_valkey

WORKER = "print('at work', flush=True); import time; time.sleep(60)"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A keeper at work, and what it said."""

    keeper: Keeper
    said: list[str] = field(default_factory=list)
    gave_up: threading.Event = field(default_factory=threading.Event)


@contextmanager
def kept(*engines: Part, commands: tuple[Part, ...] = ()) -> Iterator[Kept]:
    """A keeper that looks after these until the block ends."""
    said: list[str] = []
    keeper = Keeper(engines=engines, commands=commands, say=said.append)
    watched = Kept(keeper=keeper, said=said)
    keeper.start(watched.gave_up.set)
    try:
        yield watched
    finally:
        keeper.stop()


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for twenty seconds at most."""
    deadline = time.monotonic() + 20
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def family() -> set[psutil.Process]:
    """The processes that descend from this one and run."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
    return found


def libpq(url: str) -> str:
    """The database's address without SQLAlchemy's part."""
    return url.replace("+psycopg", "")


def command(state: Path, name: str, script: str) -> Part:
    """A command as the stack spawns workers."""
    return Part(launch=partial(launch, name, [sys.executable, "-c", script], state=state, grace=1))


def keep_busy(url: str) -> threading.Thread:
    """A connection whose backend computes for long, and so does not notice that its server died."""

    def compute() -> None:
        with suppress(psycopg.OperationalError), psycopg.connect(libpq(url)) as connection:
            connection.execute(
                "SELECT sum(a.n * b.n) FROM generate_series(1, 30000) a(n), generate_series(1, 30000) b(n)"
            )

    thread = threading.Thread(target=compute)
    thread.start()
    with psycopg.connect(libpq(url), autocommit=True) as connection:
        busy = "SELECT FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND wait_event IS NULL"
        await_that(lambda: connection.execute(busy).fetchone() is not None)
    return thread


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path shorter than pytest's own, which leaves room for a socket."""
    with tempfile.TemporaryDirectory() as short:
        yield Path(short).resolve()


@pytest.mark.parametrize("name", ["short", "x" * 100])
def test_a_postgres_that_is_killed_comes_back_at_its_address_with_its_rows(folder: Path, name: str) -> None:
    with start_postgres(folder / name) as postgres, kept(postgres) as watched:
        with psycopg.connect(libpq(postgres.url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        busy = keep_busy(postgres.url)

        postgres.child.kill()
        await_that(lambda: bool(watched.said))

        with psycopg.connect(libpq(postgres.url)) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
        busy.join()
    assert watched.said == ["postgres ended by itself (code 137); started again"]


def test_a_valkey_that_is_killed_comes_back_at_its_port_with_its_password_and_keys(tmp_path: Path) -> None:
    with start_valkey(tmp_path) as valkey, Redis.from_url(valkey.url) as client, kept(valkey) as watched:
        client.set("kept", "yes")

        valkey.child.kill()
        await_that(lambda: bool(watched.said))

        assert client.get("kept") == b"yes"
    assert watched.said == ["valkey ended by itself (code 137); started again"]


def test_a_model_server_that_is_killed_comes_back_at_its_port(tmp_path: Path) -> None:
    with launch_model(tmp_path).wait_ready() as model, kept(model) as watched:
        model.child.kill()
        await_that(lambda: bool(watched.said))

        with closing(HTTPConnection(urlsplit(model.url).netloc, timeout=10)) as connection:
            connection.request("GET", "/v1/models")
            assert connection.getresponse().status == 200
    assert watched.said == ["llm ended by itself (code 137); started again"]


def test_a_worker_that_is_killed_is_started_again_when_the_engines_answer(tmp_path: Path) -> None:
    worker = command(tmp_path, "worker", WORKER)
    with start_valkey(tmp_path) as valkey, worker, kept(valkey, commands=(worker,)) as watched:
        await_that(lambda: worker.child.tail() == "at work")
        before = worker.child

        valkey.child.kill()
        worker.child.kill()
        await_that(lambda: len(watched.said) == 2)
        await_that(lambda: worker.child.tail() == "at work")

        assert worker.child is not before
        assert watched.said == [
            "valkey ended by itself (code 137); started again",
            "worker ended by itself (code 137); started again",
        ]


def test_a_worker_is_left_alone_when_an_engine_dies(tmp_path: Path) -> None:
    worker = command(tmp_path, "worker", WORKER)
    with start_valkey(tmp_path) as valkey, worker, kept(valkey, commands=(worker,)) as watched:
        before = worker.child

        valkey.child.kill()
        await_that(lambda: bool(watched.said))

        assert worker.child is before
        assert worker.child.code is None


def test_what_ends_again_and_again_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    broken = command(tmp_path, "broken", "raise SystemExit('no such thing')")
    with broken, kept(broken) as watched:
        given_up = watched.gave_up.wait(30)

    assert given_up
    assert isinstance(watched.keeper.failure, StackError)
    first, *tail = str(watched.keeper.failure).splitlines()
    assert first.startswith("broken ended by itself (code 1), the last of more than 5 times within 60 s; its log is ")
    assert str(tmp_path / "logs" / "broken.log") in first
    assert tail == ["no such thing"]


@pytest.mark.parametrize("moment_s", [0.0, 0.25, 0.5])
def test_a_stop_during_a_restart_leaves_nothing_running(tmp_path: Path, moment_s: float) -> None:
    before = family()
    with LocalStack(tmp_path) as stack:
        stack.spawn("worker", [sys.executable, "-c", WORKER], env={}, grace=1)
        stack.keep(say=lambda _: None, gave_up=lambda: None)
        for part in stack.parts:
            part.child.kill()
        time.sleep(moment_s)
    assert stack.failure is None
    assert family() == before


def test_an_engine_can_be_restarted_with_or_without_its_data(tmp_path: Path) -> None:
    with start_valkey(tmp_path) as valkey, Redis.from_url(valkey.url) as client:
        client.set("kept", "yes")
        valkey.restart()
        assert client.get("kept") == b"yes"
        valkey.restart(lose_data=True)
        assert client.get("kept") is None


def test_a_postgres_can_be_restarted_but_not_without_its_data(tmp_path: Path) -> None:
    with start_postgres(tmp_path) as postgres:
        with psycopg.connect(libpq(postgres.url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        postgres.restart()
        with pytest.raises(ValueError, match="postgres cannot be started without its data"):
            postgres.restart(lose_data=True)
        with psycopg.connect(libpq(postgres.url)) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
