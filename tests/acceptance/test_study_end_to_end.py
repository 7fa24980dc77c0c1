"""Whole studies with real worker processes and the real command: counts, kills, signals, and an emptied broker.

The simulated model keeps a ledger of every call that was begun; attempts are what was stored. Comparing the two shows
what was lost and what was paid for twice.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine, text

from contract.settings import Settings
from ops.cli.follow import follow
from ops.cli.terminal import Exit
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study

ROOT = Path(__file__).parents[2]
LONGEST_S = 60
SLOTS = 4


@dataclass(frozen=True, kw_only=True)
class Running:
    """A process of ours, and the files with what it says."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def end(self) -> int:
        """Its exit code, waited for."""
        return self.process.wait(LONGEST_S)

    @property
    def said(self) -> str:
        """What it said on standard error."""
        return self.err.read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A database, a broker and a ledger of one test, and the processes that work on them."""

    engine: Engine
    folder: Path
    ledger: Path
    environment: dict[str, str]
    processes: ExitStack

    def write_study(self, *, items: int | Sequence[dict[str, Any]], latency_s: float = 0.0, **changes: Any) -> Path:  # noqa: ANN401
        """A study on a simulated model."""
        model = {"name": "sim", "provider": "simulated", "timeout_s": 1, "options": {"latency_s": latency_s}}
        return write_study(self.folder / changes.get("study", "trial"), items=items, **({"models": [model]} | changes))

    def start(self, *arguments: str, program: Sequence[str] = ("-m", "ops.cli")) -> Running:
        """The command with these arguments, running until the test ends."""
        name = f"{arguments[0]}-{len(list(self.folder.glob('*.err')))}"
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
            )
        self.processes.callback(process.wait)
        self.processes.callback(process.kill)
        return Running(process=process, out=out, err=err)

    def start_worker(self, name: str = "w1", *, grace_s: int = 10) -> Running:
        """A worker for simulated models."""
        return self.start(
            *("worker", "--provider", "simulated", "--slots", str(SLOTS), "--name", name, "--grace", str(grace_s))
        )

    def run(self, study: Path) -> Running:
        """`bothways run STUDY --wait`, ended."""
        running = self.start("run", str(study), "--wait")
        running.end()
        return running

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """What a statement returns, committed."""
        with self.engine.begin() as connection:
            found = connection.execute(text(statement))
            return [dict(each) for each in found.mappings()] if found.returns_rows else []

    def count(self, condition: str) -> int:
        """How many jobs meet a condition."""
        (found,) = self.rows(f"SELECT count(*) AS jobs FROM job WHERE {condition}")  # noqa: S608 - this page's own
        return int(found["jobs"])

    def states(self) -> Counter[str]:
        """How many jobs are in each state."""
        return Counter(found["state"] for found in self.rows("SELECT state FROM job"))

    def attempts(self) -> set[str]:
        """The ids of the calls that were stored."""
        return {str(found["id"]) for found in self.rows("SELECT id FROM attempt")}

    def calls(self) -> set[str]:
        """The ids of the calls that were begun."""
        if not self.ledger.exists():
            return set()
        lines = [json.loads(line) for line in self.ledger.read_text(encoding="utf-8").splitlines()]
        return {line["call"] for line in lines if line["event"] == "asked"}

    def workers_at_work(self) -> set[str]:
        """The names of the workers that stored anything."""
        return {found["worker"].split(".")[0] for found in self.rows("SELECT DISTINCT worker FROM attempt")}


@pytest.fixture
def stage(engine: Engine, settings: Settings, tmp_path: Path) -> Iterator[Stage]:
    """An empty database and broker, and an environment that names nothing else."""
    ledger = tmp_path / "ledger.jsonl"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BOTHWAYS_", "OPENAI_"))}
    environment |= {
        "BOTHWAYS_DATABASE_URL": settings.database_url.get_secret_value(),
        "BOTHWAYS_BROKER_URL": settings.broker_url.get_secret_value(),
        "BOTHWAYS_STATE": str(tmp_path / "state"),
        "BOTHWAYS_SIMULATED_LEDGER": str(ledger),
    }
    with ExitStack() as processes:
        yield Stage(engine=engine, folder=tmp_path, ledger=ledger, environment=environment, processes=processes)


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for half a minute at most."""
    deadline = time.monotonic() + 30
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def await_standstill(count: Callable[[], int], seconds: float) -> None:
    """Wait until a number has not changed for so long."""
    last, since = count(), time.monotonic()
    deadline = since + 30
    while time.monotonic() - since < seconds:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        if (now := count()) != last:
            last, since = now, time.monotonic()


def test_a_study_runs_to_its_report_and_a_second_run_asks_nothing(stage: Stage) -> None:
    options = {"knows": 0.5, "prefers_first": 0.9, "invalid_rate": 0.1}
    model = {"name": "sim", "provider": "simulated", "options": options}
    study = stage.write_study(items=40, models=[model], retry={"invalid": 1})
    stage.start_worker()

    first = stage.run(study)
    states, attempts = stage.states(), stage.attempts()
    reporting = stage.start("report", "trial", "--json", "--out", str(stage.folder / "report"))
    report_code = reporting.end()
    began = time.monotonic()
    second = stage.run(study)
    took_s = time.monotonic() - began

    assert (first.process.returncode, report_code, second.process.returncode) == (0, 0, 0), first.said
    assert states["answered"] + states["invalid"] == 80
    assert stage.calls() == attempts
    assert (
        len(attempts)
        == 80
        + stage.rows(
            "SELECT count(*) AS again FROM (SELECT job FROM attempt GROUP BY job HAVING count(*) > 1) AS twice"
        )[0]["again"]
    )
    report = json.loads((stage.folder / "report" / "report.json").read_text(encoding="utf-8"))
    assert report == json.loads(reporting.out.read_text(encoding="utf-8"))
    assert (report["study"]["name"], report["study"]["planned"], report["study"]["finished"]) == ("trial", 80, 80)
    assert stage.attempts() == attempts
    assert stage.states() == states
    assert took_s < 15
    assert "80 as they were" in second.said


def test_what_two_workers_share_out_is_asked_once_though_one_is_killed(stage: Stage) -> None:
    # The lease of a killed worker ends after budget, call and a margin of 30 s; the wait is cut short in the database.
    study = stage.write_study(items=60, latency_s=0.2, bundles={"size": 4, "budget_s": 1})
    killed, _ = stage.start_worker("w1"), stage.start_worker("w2")
    running = stage.start("run", str(study), "--wait")
    await_that(lambda: stage.workers_at_work() == {"w1", "w2"})

    killed.process.kill()
    killed.end()
    await_standstill(lambda: len(stage.attempts()), seconds=2)
    left_over = stage.states()
    stage.rows("UPDATE job SET lease_until = now() WHERE state IN ('queued', 'running')")
    code = running.end()

    assert code == 0, running.said
    assert stage.states() == {"answered": 120}
    assert left_over["running"] > 0
    missing = stage.calls() - stage.attempts()
    losses = sum(found["losses"] for found in stage.rows("SELECT losses FROM job"))
    assert len(missing) <= losses <= SLOTS
    assert stage.attempts() <= stage.calls()
    assert len(stage.attempts()) == 120


def test_a_worker_that_is_told_to_stop_in_mid_bundle_loses_nothing(stage: Stage) -> None:
    study = stage.write_study(items=32, latency_s=0.25, bundles={"size": 16, "budget_s": 60})
    stopped = stage.start_worker("w1", grace_s=10)
    running = stage.start("run", str(study), "--wait")
    await_that(lambda: len(stage.attempts()) >= 4)

    told = time.monotonic()
    stopped.process.send_signal(signal.SIGTERM)
    worker_code = stopped.end()
    took_s = time.monotonic() - told
    states, calls, attempts = stage.states(), stage.calls(), stage.attempts()
    stage.start_worker("w2")
    code = running.end()

    assert worker_code == 0, stopped.said
    assert took_s < 10
    assert states["running"] == 0
    assert 4 <= states["answered"] < 64
    assert calls == attempts
    assert code == 0, running.said
    assert stage.states() == {"answered": 64}
    assert len(stage.attempts()) == len(stage.calls()) == 64
    assert stage.workers_at_work() == {"w1", "w2"}


def test_a_call_that_outlasts_the_grace_is_given_back_and_the_worker_leaves(stage: Stage) -> None:
    model = {"name": "sim", "provider": "simulated", "timeout_s": 120, "options": {"latency_s": 60}}
    study = stage.write_study(items=8, models=[model])
    worker = stage.start_worker(grace_s=5)
    stage.start("run", str(study), "--wait")
    await_that(lambda: len(stage.calls()) == SLOTS)

    told = time.monotonic()
    worker.process.send_signal(signal.SIGTERM)
    worker.end()
    took_s = time.monotonic() - told

    assert took_s < 5
    assert stage.states()["running"] == 0
    assert stage.count("calling OR losses > 0") == 0
    assert stage.rows("SELECT worker FROM worker_heartbeat") == []


def test_ctrl_c_ends_the_command_in_one_line_and_the_study_goes_on_when_run_again(stage: Stage) -> None:
    study = stage.write_study(items=24, latency_s=0.2)
    stage.start_worker()
    interrupted = stage.start("run", str(study), "--wait")
    await_that(lambda: len(stage.attempts()) >= 4)

    interrupted.process.send_signal(signal.SIGINT)
    code = interrupted.end()
    at_the_end = stage.states()
    again = stage.run(study)

    assert code == Exit.INTERRUPTED
    assert at_the_end["answered"] < 48
    assert "Traceback" not in interrupted.said
    assert interrupted.said.strip().splitlines()[-1].startswith("no longer watching; ")
    assert again.process.returncode == 0, again.said
    assert stage.states() == {"answered": 48}
    assert len(stage.attempts()) == len(stage.calls()) == 48


def test_a_model_that_no_worker_serves_ends_the_waiting_and_is_named(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    # The command waits a minute for a worker that may be starting; it has no option to wait less, its function has.
    enqueue(stage.engine, read_study(stage.write_study(items=2)))

    code = follow(stage.engine, "trial", patience_s=0.2)

    assert code == Exit.STUCK
    assert "no worker serves simulated.sim" in capsys.readouterr().err


def test_the_exit_code_says_what_became_of_the_jobs(stage: Stage) -> None:
    faulty = {"name": "faulty", "provider": "simulated", "options": {"fault_rate": 1.0}}
    vague = {"name": "vague", "provider": "simulated", "options": {"invalid_rate": 1.0}}
    keyed = {"name": "keyed", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    studies = {
        "failing": stage.write_study(items=4, study="failing", models=[faulty], retry={"faults": 1}),
        "unreadable": stage.write_study(items=4, study="unreadable", models=[vague]),
        "locked": stage.write_study(items=4, study="locked", models=[keyed | {"api_key_env": "THE_KEY"}]),
    }
    stage.start("worker", "--slots", str(SLOTS))

    runs = {name: stage.start("run", str(study), "--wait") for name, study in studies.items()}
    codes = {name: running.end() for name, running in runs.items()}

    assert codes == {"failing": Exit.SOME_FAILED, "unreadable": Exit.DONE, "locked": Exit.STUCK}
    by_study = stage.rows("""
        SELECT study.name, job.state, count(*) AS jobs FROM job JOIN study ON study.id = job.study
        GROUP BY study.name, job.state ORDER BY study.name
    """)
    assert [tuple(found.values()) for found in by_study] == [
        ("failing", "failed", 8),
        ("locked", "pending", 8),
        ("unreadable", "invalid", 8),
    ]
    assert "openai.keyed was stopped" in runs["locked"].said
    assert "THE_KEY" in runs["locked"].said


def test_a_broker_that_is_emptied_in_mid_run_costs_nothing(stage: Stage, broker_url: str) -> None:
    study = stage.write_study(items=40, latency_s=0.2)
    stage.start_worker()
    running = stage.start("run", str(study), "--wait")
    await_that(lambda: len(stage.attempts()) >= 8)

    with Redis.from_url(broker_url) as client:
        client.flushall()
    at_that_moment = stage.states()
    code = running.end()

    assert at_that_moment["queued"] > 0
    assert code == 0, running.said
    assert stage.states() == {"answered": 80}
    assert len(stage.attempts()) == len(stage.calls()) == 80
