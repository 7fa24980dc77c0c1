"""A stage for whole workers that share pools, and what their provider counted for itself."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from redis import Redis

from contract.broker import create_celery
from contract.database import open_engine
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import write_study
from tests.gemini_quota import Arrival
from tests.jobs import at_work

KEYS = {"KEY_OF_ONE": "secret-1", "KEY_OF_TWO": "secret-2"}
"""The variables with the keys of two projects."""

Pool = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Workers with a pools file, on a stage, and a client of its broker."""

    stage: Stage
    broker: Redis

    def study(self, model: dict[str, Any], **changes: Any) -> None:  # noqa: ANN401
        """Enqueue a study that bears the name of its one model."""
        name = model["name"]
        path = write_study(self.stage.folder / name, **({"study": name, "models": [model]} | changes))
        enqueue(self.stage.engine, read_study(path))

    def start(self, *, workers: int, slots: int, provider: str = "gemini") -> list[Running]:
        """So many worker processes of so many slots."""
        return [
            self.stage.start("worker", "--provider", provider, "--slots", str(slots), "--name", f"w{number}")
            for number in range(1, workers + 1)
        ]

    def attempts(self, queue: str) -> list[dict[str, Any]]:
        """The stored calls of a queue, the first one first."""
        return self.stage.rows(
            f"SELECT attempt.* FROM attempt JOIN job ON job.id = attempt.job WHERE job.queue = '{queue}' "  # noqa: S608
            "ORDER BY attempt.started_at"
        )

    def canaries(self, *pools: str) -> int:
        """How many first-contact calls went through pools."""
        rows = self.stage.rows("SELECT pool FROM canary")
        return sum(row["pool"] in pools for row in rows)

    def charged(self, queue: str) -> int:
        """How many jobs of a queue were charged with anything that was nobody's fault: a loss, a wait of their own."""
        return self.stage.count(f"queue = '{queue}' AND (losses > 0 OR not_before IS NOT NULL OR state = 'failed')")


@contextmanager
def pooled(
    folder: Path, *, database_url: str, broker_url: str, pools: Sequence[Pool], **environment: str
) -> Iterator[Pooled]:
    """An environment with these pools, and a dispatcher at work; all processes end with it."""
    pools_file = folder / "pools.yaml"
    pools_file.write_text(yaml.safe_dump({"pools": list(pools)}), encoding="utf-8")
    ours = ("BOTHWAYS_", "GEMINI_", "GOOGLE_", "OPENAI_")
    given = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    ledger = folder / "ledger.jsonl"
    given |= {
        "BOTHWAYS_DATABASE_URL": database_url,
        "BOTHWAYS_BROKER_URL": broker_url,
        "BOTHWAYS_STATE": str(folder / "state"),
        "BOTHWAYS_SIMULATED_LEDGER": str(ledger),
        "BOTHWAYS_POOLS": str(pools_file),
    }
    with ExitStack() as ending:
        engine = open_engine(database_url, pool_size=10)
        ending.callback(engine.dispose)
        broker = ending.enter_context(Redis.from_url(broker_url, decode_responses=True))
        app = ending.enter_context(create_celery(broker_url))
        ending.enter_context(at_work(Dispatcher(engine, app, broker)))
        processes = ending.enter_context(ExitStack())
        environment = given | KEYS | environment
        stage = Stage(engine=engine, folder=folder, ledger=ledger, environment=environment, processes=processes)
        yield Pooled(stage=stage, broker=broker)


def gemini(name: str, base_url: str, *pools: str) -> dict[str, Any]:
    """A model of a fake Gemini whose key keeps a quota."""
    return {
        "name": name,
        "provider": "gemini",
        "model": "metered",
        "base_url": base_url,
        "pools": list(pools),
        "timeout_s": 30,
    }


def end(workers: Sequence[Running]) -> list[int]:
    """Tell workers to stop, and wait; their exit codes."""
    for worker in workers:
        worker.process.send_signal(signal.SIGTERM)
    return [worker.end() for worker in workers]


def fullest(arrivals: Sequence[Arrival], window_s: float, weight: Callable[[Arrival], int] = lambda _: 1) -> int:
    """The most that any `window_s` seconds held, wherever they begin."""
    most = held = first = 0
    for arrival in arrivals:
        held += weight(arrival)
        while arrivals[first].at_s <= arrival.at_s - window_s:
            held -= weight(arrivals[first])
            first += 1
        most = max(most, held)
    return most
