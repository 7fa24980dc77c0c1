"""The stand a benchmark runs on: a Postgres and a Valkey of its own in a temporary folder, and the processes it starts.

Whatever a benchmark does and however it ends, its processes are stopped and the folder is removed.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from celery import Celery
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import Engine as Database
from sqlalchemy import text

from contract.broker import create_celery
from contract.columns import METADATA
from contract.database import open_engine
from contract.errors import StackError
from contract.settings import Settings
from ops.local.engines import Child, launch
from ops.local.postgres import launch_postgres
from ops.local.valkey import launch_valkey
from ops.schema import migrate

GRACE_S = 15.0
LONGEST_S = 1800.0
POLL_S = 0.5

_REGISTER = text("""
    INSERT INTO worker_heartbeat (worker, started_at, seen_at, slots, queues, version)
    SELECT 'made-up-' || number, now(), now() + interval '1 day', :slots,
           (SELECT jsonb_agg(DISTINCT queue) FROM condition), '0'
    FROM generate_series(1, :workers) AS number
""")


@dataclass(frozen=True, kw_only=True)
class Stand:
    """Fresh engines, their addresses, and a client of each."""

    folder: Path
    settings: Settings
    database: Database
    broker: Redis
    ending: ExitStack

    def spawn(self, name: str, module: str, *arguments: str) -> Child:
        """Start `python -m MODULE` on these engines; it ends with the stand, or before."""
        environment = {
            "BOTHWAYS_DATABASE_URL": self.settings.database_url.get_secret_value(),
            "BOTHWAYS_BROKER_URL": self.settings.broker_url.get_secret_value(),
            "BOTHWAYS_STATE": str(self.folder),
        }
        command = [sys.executable, "-m", module, *arguments]
        child = launch(name, command, state=self.folder, env=environment, grace=GRACE_S)
        self.ending.callback(child.stop)
        return child

    def app(self) -> Celery:
        """The Celery application of producer and worker, on this broker."""
        return create_celery(self.settings.broker_url.get_secret_value())

    def broker_bytes(self) -> int:
        """The memory that the broker uses now, by its own count."""
        return int(self.broker.info("memory")["used_memory"])

    def clear(self) -> None:
        """Empty tables and broker."""
        names = ", ".join(f'"{table.name}"' for table in METADATA.sorted_tables)
        with self.database.begin() as connection:
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        self.broker.flushall()


@contextmanager
def fresh_stand() -> Iterator[Stand]:
    """Start the engines in a new folder, with migrated, empty tables; stop everything at the end."""
    with ExitStack() as ending:
        place = tempfile.TemporaryDirectory(prefix="bothways-bench-", ignore_cleanup_errors=True)
        folder = Path(ending.enter_context(place)).resolve()
        valkey, postgres = launch_valkey(folder), launch_postgres(folder)
        for engine in (valkey, postgres):
            ending.enter_context(engine)
        for engine in (valkey, postgres):
            engine.wait_ready()
        database = open_engine(postgres.url)
        ending.callback(database.dispose)
        migrate(database)
        broker = ending.enter_context(Redis.from_url(valkey.url, decode_responses=True))
        settings = Settings(database_url=SecretStr(postgres.url), broker_url=SecretStr(valkey.url))
        yield Stand(folder=folder, settings=settings, database=database, broker=broker, ending=ending)


def register_workers(database: Database, *, workers: int, slots: int) -> None:
    """Heartbeats of workers that do not exist but serve every queue, so that the dispatcher feeds the queues."""
    with database.begin() as connection:
        connection.execute(_REGISTER, {"workers": workers, "slots": slots})


def await_end(child: Child) -> None:
    """Wait until a program has done its work; StackError with its last words if it failed or takes for ever."""
    await_that(lambda: child.code is not None)
    if child.code:
        raise child.failure(f"ended with code {child.code}")


def await_that(it_is_so: Callable[[], bool], *, while_run: tuple[Child, ...] = ()) -> None:
    """Look twice a second until it is so; StackError if one of the children that are to run meanwhile ended."""
    deadline = time.monotonic() + LONGEST_S
    while not it_is_so():
        for child in while_run:
            if child.code is not None:
                raise child.failure(f"ended with code {child.code} before the work was done")
        if time.monotonic() > deadline:
            raise StackError(f"not done within {LONGEST_S:.0f} s")
        time.sleep(POLL_S)
