"""Real workers that die, hold their bundles too long, or lose their database: what it costs, and whom."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from contract.database import open_engine
from ops.local.engines import Engine as LocalEngine
from ops.local.postgres import start_postgres
from ops.local.valkey import start_valkey
from ops.schema import migrate
from producer.enqueue import enqueue
from producer.study_file import read_study
from producer.window import LOSSES_POISON
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import ROOT, Running, Stage, await_that

stage = end_to_end.stage

AWAY_S = float(os.environ.get("BOTHWAYS_POSTGRES_AWAY_S", "6"))

# The command with a broker that delivers again what was not acknowledged within five seconds.
IMPATIENT = """
import contract.broker
contract.broker.visibility_timeout_s = lambda: 5
from ops.cli.main import main
main()
"""


def test_a_job_that_kills_its_worker_each_time_ends_alone(stage: Stage) -> None:
    stage.environment["BOTHWAYS_LEASE_MARGIN_S"] = "1"
    options = {"latency_s": 0.2, "kills": "A) wrong 77"}
    model = {"name": "sim", "provider": "simulated", "timeout_s": 1, "options": options}
    study = stage.write_study(items=400, models=[model], bundles={"size": 16, "budget_s": 4})
    enqueue(stage.engine, read_study(study))
    stage.start("dispatch")
    deaths = 0

    worker = stage.start("worker", "--provider", "simulated", "--slots", "64")
    deadline = time.monotonic() + 180
    while stage.count("finished_at IS NULL"):
        assert time.monotonic() < deadline, (deaths, stage.states())
        if worker.process.poll() is not None:
            deaths += 1
            worker = stage.start("worker", "--provider", "simulated", "--slots", "64")
        time.sleep(0.2)

    assert stage.states() == {"failed": 1, "answered": 799}
    (poison,) = stage.rows("SELECT losses FROM job WHERE state = 'failed'")
    assert deaths == poison["losses"] == LOSSES_POISON + 1
    assert stage.count("state = 'answered' AND losses > 2") == 0
    assert stage.count("state = 'answered' AND losses > 0") > 16
    assert stage.rows("SELECT job FROM attempt GROUP BY job HAVING count(*) > 1") == []


def test_a_bundle_that_is_delivered_again_while_it_runs_is_asked_once(stage: Stage) -> None:
    study = stage.write_study(items=15, latency_s=0.95, bundles={"size": 15, "budget_s": 60})
    enqueue(stage.engine, read_study(study))

    def start(*arguments: str) -> Path:
        log = stage.folder / f"{arguments[0]}-{arguments[-1]}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-c", IMPATIENT, *arguments], cwd=ROOT, env=stage.environment, stdout=said, stderr=said
            )
        stage.processes.callback(process.wait)
        stage.processes.callback(process.kill)
        return log

    logs = [start("worker", "--provider", "simulated", "--slots", "1", "--name", name) for name in ("w1", "w2")]
    start("dispatch")
    deadline = time.monotonic() + 90
    while stage.count("finished_at IS NULL"):
        assert time.monotonic() < deadline, stage.states()
        time.sleep(0.2)

    assert stage.states() == {"answered": 30}
    assert len(stage.calls()) == len(stage.attempts()) == 30
    ended = [re.findall(r"Task bothways\.evaluate\[(\S+)\] succeeded", log.read_text()) for log in logs]
    deliveries = [message for messages in ended for message in messages]
    assert len(deliveries) > len(set(deliveries))  # otherwise nothing came twice, and this proves nothing


def test_a_worker_with_free_slots_and_bundles_in_hand_outlives_its_broker(stage: Stage, tmp_path: Path) -> None:
    with start_valkey(tmp_path) as valkey:
        stage.environment["BOTHWAYS_BROKER_URL"] = valkey.url
        worker = stage.start("worker", "--provider", "simulated", "--slots", "8")
        stage.start("dispatch")
        for number in (1, 2):
            enqueue(stage.engine, read_study(stage.write_study(items=4, study=f"trial-{number}", latency_s=0.9)))
            await_that(lambda: stage.count("calling") > 0)
            valkey.restart()
            await_that(lambda: stage.count("finished_at IS NULL") == 0)

        assert stage.states() == {"answered": 16}
        assert worker.said.count("Connection to broker lost") == 2
        assert worker.process.poll() is None
        assert len(stage.attempts()) == len(stage.calls()) == 16


@pytest.fixture
def shaky(stage: Stage, tmp_path: Path) -> Iterator[tuple[Stage, LocalEngine]]:
    """A stage on a database of its own, which may be killed."""
    with start_postgres(tmp_path / "postgres") as postgres, ExitStack() as processes:
        engine = open_engine(postgres.url)
        processes.callback(engine.dispose)
        migrate(engine)
        environment = stage.environment | {"BOTHWAYS_DATABASE_URL": postgres.url}
        yield (
            Stage(engine=engine, folder=tmp_path, ledger=stage.ledger, environment=environment, processes=processes),
            postgres,
        )


def test_while_postgres_is_away_completions_are_kept_and_no_call_is_made(shaky: tuple[Stage, LocalEngine]) -> None:
    stage, postgres = shaky
    stage.environment["BOTHWAYS_LEASE_MARGIN_S"] = "1"  # every lease ends meanwhile
    study = stage.write_study(items=100, latency_s=0.3, bundles={"size": 8, "budget_s": 60})
    enqueue(stage.engine, read_study(study))
    workers: list[Running] = [stage.start_worker(name) for name in ("w1", "w2")]
    stage.start("dispatch")
    await_that(lambda: len(stage.attempts()) >= 20)

    postgres.child.kill()
    time.sleep(1.5)  # calls in flight end, and every slot now holds a completion that it cannot store
    asked = len(stage.calls())
    time.sleep(AWAY_S)
    asked_meanwhile = len(stage.calls()) - asked
    postgres.start_again()
    postgres.wait_ready()
    deadline = time.monotonic() + 60
    while stage.count("finished_at IS NULL"):
        assert time.monotonic() < deadline, stage.states()
        time.sleep(0.2)

    assert asked_meanwhile == 0
    assert [worker.process.poll() for worker in workers] == [None, None]
    assert stage.states() == {"answered": 200}
    assert stage.calls() == stage.attempts()
    assert len(stage.attempts()) == 200
    assert stage.count("losses > 0") == 0
