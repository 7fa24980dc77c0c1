"""Real services for the tests that need them: one Postgres and one Valkey a test process, a fresh database a test."""

import os
import signal
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import Engine
from sqlalchemy.engine import make_url

from contract.database import open_engine
from contract.settings import Settings
from ops.local.postgres import start_postgres
from ops.local.valkey import start_valkey
from ops.schema import migrate
from producer.dispatch import Dispatcher
from tests.jobs import dispatching

TEMPLATE = "bothways"


def pytest_configure() -> None:
    """A shell that starts pytest in the background lets it ignore Ctrl-C, and its children with it."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long is left to `make long`, and what needs containers to `make compose-test`."""
    left_out = {"long": ("BOTHWAYS_LONG", "long"), "containers": ("BOTHWAYS_CONTAINERS", "compose-test")}
    for marker, (variable, target) in left_out.items():
        if os.environ.get(variable):
            continue
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=f"left to `make {target}`"))


@pytest.fixture(scope="session")
def services() -> Iterator[Path]:
    """A folder for the servers' state. Not pytest's own: another run closes that to the account Postgres runs under."""
    with tempfile.TemporaryDirectory(prefix="bothways-tests-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_url(services: Path) -> Iterator[str]:
    """The address of a Postgres whose database `bothways` holds the migrated, empty tables."""
    with start_postgres(services / "postgres") as server:
        engine = open_engine(server.url)
        migrate(engine)
        engine.dispose()
        yield server.url


@pytest.fixture(scope="session")
def valkey_url(services: Path) -> Iterator[str]:
    """The address of a Valkey, password included."""
    with start_valkey(services / "valkey") as server:
        yield server.url


@contextmanager
def fresh_database(postgres_url: str) -> Iterator[str]:
    """A database copied from the migrated template, for as long as it is needed."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    server = make_url(postgres_url).set(database="postgres", drivername="postgresql")
    admin = server.render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"'.encode())
        yield make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """A database of this test's own."""
    with fresh_database(postgres_url) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(postgres_url: str) -> Iterator[str]:
    """A database for all tests of a page."""
    with fresh_database(postgres_url) as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on this test's database."""
    engine = open_engine(database_url, pool_size=10)
    yield engine
    engine.dispose()


@pytest.fixture
def broker_url(valkey_url: str) -> str:
    """The broker, emptied."""
    with Redis.from_url(valkey_url) as client:
        client.flushall()
    return valkey_url


@pytest.fixture
def broker(broker_url: str) -> Iterator[Redis]:
    """A client of the broker."""
    with Redis.from_url(broker_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def dispatcher(engine: Engine, broker: Redis, broker_url: str) -> Iterator[Dispatcher]:
    """A dispatcher that is asked for one round at a time."""
    with dispatching(engine, broker, broker_url) as made:
        yield made


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path) -> Settings:
    """Settings on this test's database and broker, with a ledger for simulated models."""
    return Settings(
        database_url=SecretStr(database_url),
        broker_url=SecretStr(broker_url),
        simulated_ledger=tmp_path / "ledger.jsonl",
    )
