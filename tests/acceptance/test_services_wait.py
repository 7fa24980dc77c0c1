"""How workers, dispatchers and the monitor begin: with all they need, after a wait that they tell of, or not at all."""

import signal
import socket
from dataclasses import replace

import pytest

from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Stage
from tests.jobs import await_that

stage = end_to_end.stage

SERVICES = {
    "worker": ("worker", "--provider", "simulated"),
    "dispatch": ("dispatch",),
}
OLD_TABLES = "UPDATE alembic_version SET version_num = '0002'"
NEW_TABLES = "UPDATE alembic_version SET version_num = '0004'"
THOSE_OF_A_LATER_VERSION = "UPDATE alembic_version SET version_num = '9999'"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_does_not_begin_on_tables_of_another_version(stage: Stage, service: str) -> None:
    stage.rows(OLD_TABLES)
    behind = stage.start(*SERVICES[service])
    assert behind.end() == 3
    assert "has the tables of an older version: run `bothways migrate`" in behind.said

    stage.rows(THOSE_OF_A_LATER_VERSION)
    ahead = stage.start(*SERVICES[service], "--await", "60")
    assert ahead.end() == 3
    assert "are of a newer version than this one" in ahead.said
    assert "waiting" not in ahead.said


@pytest.mark.parametrize(("service", "begun"), [("worker", "ready."), ("dispatch", "leading")])
def test_a_service_waits_for_the_tables_and_then_begins(stage: Stage, service: str, begun: str) -> None:
    stage.rows(OLD_TABLES)

    running = stage.start(*SERVICES[service], "--await", "60")
    await_that(lambda: "waiting: the database at " in running.said)
    stage.rows(NEW_TABLES)
    await_that(lambda: begun in running.said)

    running.process.terminate()
    assert running.end() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_service_that_waits_leaves_when_it_is_told_to(stage: Stage, number: signal.Signals, code: int) -> None:
    stage.rows(OLD_TABLES)

    running = stage.start("dispatch", "--await", "60")
    await_that(lambda: "waiting: " in running.said)
    running.process.send_signal(number)

    assert running.end() == code
    assert "Traceback" not in running.said


@pytest.mark.parametrize("service", ["worker", "monitor"])
def test_a_password_that_the_broker_refuses_is_not_waited_on(stage: Stage, service: str) -> None:
    address = stage.environment["BOTHWAYS_BROKER_URL"]
    place = address.rpartition("@")[2]
    wrong = {"BOTHWAYS_BROKER_URL": f"redis://{place}", "BOTHWAYS_PASSWORD": "wrong", "BOTHWAYS_FLOWER_PASSWORD": "x"}
    there = replace(stage, environment=stage.environment | wrong)

    if service == "monitor":
        running = there.start("--port", "1", "--await", "60", program=("-m", "ops.monitoring"))
    else:
        running = there.start(*SERVICES[service], "--await", "60")

    assert running.end() == (1 if service == "monitor" else 3)
    assert f"the broker at {place.partition('/')[0]} refuses the password: set BOTHWAYS_PASSWORD right" in running.said
    assert len(running.said.splitlines()) == 1


def test_a_broker_that_accepts_and_does_not_answer_is_told_and_not_waited_on_for_ever(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        deaf = replace(stage, environment=stage.environment | {"BOTHWAYS_BROKER_URL": f"redis://{place}/0"})

        running = deaf.start("dispatch", "--await", "1")

        assert running.end() == 3
        assert f"the broker does not answer at {place}" in running.said


def test_a_setting_that_cannot_be_used_is_not_waited_on(stage: Stage) -> None:
    wrong = replace(stage, environment=stage.environment | {"BOTHWAYS_MACHINE": "no such name"})

    running = wrong.start("dispatch", "--await", "60")

    assert running.end() == 3
    assert running.said.startswith("bothways: BOTHWAYS_MACHINE: ")


@pytest.mark.parametrize("command", [("run", "studies/simulated.yaml"), ("cancel", "trial")])
def test_a_command_of_another_version_touches_nothing(stage: Stage, command: tuple[str, ...]) -> None:
    stage.rows(THOSE_OF_A_LATER_VERSION)

    running = stage.start(*command)

    assert running.end() == 3
    assert "are of a newer version than this one" in running.said
    assert stage.rows("SELECT FROM study") == []


def test_the_monitor_does_not_begin_without_a_password(stage: Stage) -> None:
    running = stage.start("--port", "1", program=("-m", "ops.monitoring"))

    assert running.end() == 1
    assert running.said == "Flower needs a password: --password-file, or BOTHWAYS_FLOWER_PASSWORD\n"


def test_a_machine_without_a_program_of_ours_is_not_well(stage: Stage) -> None:
    alone = stage.start("health")
    assert alone.end() == 4
    assert "no worker or dispatcher of " in alone.said

    stage.start("dispatch")
    await_that(lambda: bool(stage.rows("SELECT FROM dispatcher_heartbeat")))
    beside = stage.start("health")
    assert beside.end() == 0
    assert beside.out.read_text(encoding="utf-8").startswith("dispatcher.")
