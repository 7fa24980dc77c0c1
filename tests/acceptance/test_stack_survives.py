"""The embedded stack as users start it, while its parts are killed: what goes on, what is asked, how it gives up."""

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from contract.database import open_engine
from ops.cli.terminal import Exit
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage, await_that
from tests.fake_openai import fake_openai

stage = end_to_end.stage

NOT_OURS = ("BOTHWAYS_DATABASE_URL", "BOTHWAYS_BROKER_URL")  # a stack of one's own finds these by its folder


@pytest.fixture
def embedded(stage: Stage, tmp_path: Path) -> Stage:
    """A stage with no engines but those that a command starts on its state folder."""
    environment = {name: value for name, value in stage.environment.items() if name not in NOT_OURS}
    return replace(stage, environment=environment | {"BOTHWAYS_STATE": str(tmp_path / "state")})


@pytest.fixture
def up(embedded: Stage) -> Iterator[Running]:
    """`bothways up`, ready."""
    running = embedded.start("up", "--slots", "4")
    await_that(lambda: "the stack is up" in running.said or running.process.poll() is not None)
    assert running.process.poll() is None, running.said
    yield running
    running.process.send_signal(signal.SIGTERM)
    running.end()


def state_of(stage: Stage) -> Path:
    """The folder of the stack."""
    return Path(stage.environment["BOTHWAYS_STATE"])


def within(stage: Stage) -> Stage:
    """The same stage, asking the database of the stack that runs."""
    lines = (state_of(stage) / "stack.env").read_text(encoding="utf-8").splitlines()
    return replace(stage, engine=open_engine(dict(line.split("=", 1) for line in lines)["BOTHWAYS_DATABASE_URL"]))


def postmaster(stage: Stage) -> psutil.Process:
    """The server of Postgres."""
    return psutil.Process(int((state_of(stage) / "postgres" / "postmaster.pid").read_text(encoding="utf-8").split()[0]))


def break_for_good(stage: Stage) -> None:
    """Kill Postgres and let it find a cluster that it refuses."""
    (state_of(stage) / "postgres" / "PG_VERSION").write_text("1\n", encoding="utf-8")
    postmaster(stage).kill()


def is_worker(arguments: list[str]) -> bool:
    """Whether these are the arguments of the worker for simulated models, not of its guard."""
    return arguments[-2:] == ["--name", "simulated"] and not any("guard" in each for each in arguments)


def child(running: Running, is_it: Callable[[list[str]], bool]) -> psutil.Process | None:
    """The descendant with such arguments; None between two of them."""
    for process in psutil.Process(running.process.pid).children(recursive=True):
        try:
            if is_it(process.cmdline()):
                return process
        except psutil.Error:
            continue
    return None


def answered(ledger: Path) -> Counter[str]:
    """How often each call was answered."""
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    return Counter(line["call"] for line in lines if line["event"] == "answered")


def test_a_postgres_that_is_killed_in_mid_run_costs_no_answer_and_no_second_call(embedded: Stage, up: Running) -> None:
    study = embedded.write_study(items=60, latency_s=0.2)
    running = embedded.start("run", str(study), "--wait")
    await_that(lambda: embedded.ledger.exists() and len(answered(embedded.ledger)) >= 20)
    worker = child(up, is_worker)

    postmaster(embedded).kill()
    code = running.end()
    stage = within(embedded)

    assert code == Exit.DONE, running.said
    assert stage.states() == {"answered": 120}
    assert sorted(answered(embedded.ledger).values()) == [1] * 120
    assert stage.calls() == stage.attempts()
    assert len(stage.attempts()) == 120
    assert stage.count("losses > 0") == 0
    assert "postgres ended by itself (code 137); started again" in up.said
    assert child(up, is_worker) == worker
    stage.engine.dispose()


def test_a_worker_that_is_killed_is_followed_by_another_that_finishes_the_study(embedded: Stage, up: Running) -> None:
    study = embedded.write_study(items=20, latency_s=0.2)
    running = embedded.start("run", str(study), "--wait")
    await_that(lambda: embedded.ledger.exists() and len(answered(embedded.ledger)) >= 8)
    worker = child(up, is_worker)
    assert worker is not None
    stage = within(embedded)

    worker.kill()
    await_that(lambda: "worker-simulated ended by itself (code 137); started again" in up.said)
    stage.rows("UPDATE job SET lease_until = now() WHERE state IN ('queued', 'running')")  # instead of waiting for it
    code = running.end()

    assert code == Exit.DONE, running.said
    assert stage.states() == {"answered": 40}
    stage.engine.dispose()
    up.process.send_signal(signal.SIGINT)
    assert up.end() == Exit.DONE, up.said


def test_a_stack_that_cannot_be_kept_alive_ends_with_the_reason_and_leaves_nothing(
    embedded: Stage, up: Running
) -> None:
    family = psutil.Process(up.process.pid).children(recursive=True)

    break_for_good(embedded)
    code = up.end()

    assert code == Exit.NO_STACK
    first = next(line for line in up.said.splitlines() if line.startswith("bothways: "))
    assert first.startswith("bothways: postgres ended by itself (code 1), the last of more than 5 times within 60 s;")
    assert str(state_of(embedded) / "logs" / "postgres.log") in first
    assert "Traceback" not in up.said
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family)
    assert not (state_of(embedded) / "stack.env").exists()


def test_a_demo_goes_on_to_its_report_when_postgres_is_killed(embedded: Stage) -> None:
    with fake_openai() as server:
        model = {"name": "quick", "provider": "openai", "model": "good", "base_url": server.base_url}
        study = embedded.write_study(items=60, models=[model])
        demo = embedded.start("demo", str(study), "--out", str(embedded.folder / "report"))
        await_that(lambda: len(server.received) > 8)

        postmaster(embedded).kill()
        code = demo.end()

    assert code == Exit.DONE, demo.said
    assert "postgres ended by itself (code 137); started again" in demo.said
    report = json.loads((embedded.folder / "report" / "report.json").read_text(encoding="utf-8"))
    assert (report["study"]["planned"], report["study"]["finished"]) == (120, 120)


def test_a_demo_that_waits_for_a_stack_that_cannot_be_kept_alive_ends_with_the_reason(embedded: Stage) -> None:
    study = embedded.write_study(items=2)  # nobody serves simulated models here: it waits
    demo = embedded.start("demo", str(study), "--out", str(embedded.folder / "report"))
    await_that(lambda: "0 of 4 jobs" in demo.said)

    break_for_good(embedded)
    code = demo.end()

    assert code == Exit.NO_STACK
    assert "bothways: postgres ended by itself (code 1), the last of more than 5 times within 60 s;" in demo.said
    assert "Traceback" not in demo.said
