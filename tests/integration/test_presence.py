"""Whether somebody dispatches: told by the dispatchers, read by whoever follows a study."""

import socket
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import Engine

from ops.cli.follow import follow
from ops.cli.terminal import Exit
from ops.local.engines import free_port
from ops.local.valkey import start_valkey
from ops.presence import heard_of
from ops.progress import read_progress
from producer.dispatch import Dispatcher
from producer.leadership import Presence
from tests.jobs import at_work, await_that, beat, change, dispatching, plan, rows


def fault(engine: Engine) -> str | None:
    """Why nothing is being queued."""
    return read_progress(engine, "trial").dispatch_fault


def age(engine: Engine, seconds: int) -> None:
    """Let all dispatchers have been seen so long ago."""
    change(engine, "UPDATE dispatcher_heartbeat SET seen_at = now() - make_interval(secs => :age)", age=seconds)


def test_a_dispatcher_that_leads_is_no_reason_to_wait(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    assert fault(engine) == "no dispatcher is at work"

    Presence(engine).beat(leads=False)
    assert fault(engine) is None
    Presence(engine).beat(leads=True)
    assert fault(engine) is None


def test_a_dispatcher_that_was_not_heard_of_lately_is_none(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    Presence(engine).beat(leads=True)

    age(engine, 75)

    assert fault(engine) == "no dispatcher is at work; the last one was heard of 75 s ago"


def test_what_keeps_the_dispatcher_from_its_work_is_told_unless_another_leads(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    Presence(engine).beat(leads=False, fault="the broker does not answer (ConnectionError)")
    assert fault(engine) == "the broker does not answer (ConnectionError)"

    Presence(engine).beat(leads=True)
    assert fault(engine) is None


def test_the_programs_of_a_machine_are_known_by_its_name(engine: Engine) -> None:
    beat(engine)
    change(engine, "UPDATE worker_heartbeat SET worker = 'gpu.gpu1.cluster.7f3a01'")
    Presence(engine).beat(leads=True)

    assert [heard.name for heard in heard_of(engine, "gpu1.cluster")] == ["gpu.gpu1.cluster.7f3a01"]
    assert [heard.name.split(".")[0] for heard in heard_of(engine, socket.gethostname())] == ["dispatcher"]
    assert heard_of(engine, "gpu1") == []
    assert heard_of(engine, "pu1.cluster") == []
    assert heard_of(engine, "%") == []


def test_a_program_does_not_answer_for_another_of_its_machine(engine: Engine) -> None:
    beat(engine)
    change(engine, "UPDATE worker_heartbeat SET worker = 'api.gpu1.cluster.7f3a01'")
    Presence(engine).beat(leads=True)

    assert len(heard_of(engine, "gpu1.cluster", "api")) == 1
    assert heard_of(engine, "gpu1.cluster", "gpu") == []
    assert heard_of(engine, "gpu1.cluster", "dispatcher") == []
    assert heard_of(engine, "cluster", "api") == []
    assert heard_of(engine, "cluster", "api.gpu1") != []  # a name with a dot is that worker's own doing
    assert len(heard_of(engine, socket.gethostname(), "dispatcher")) == 1


@pytest.mark.parametrize(("ago_s", "lives"), [(29, True), (31, False)])
def test_a_program_that_was_not_heard_of_for_half_a_minute_does_not_live(
    engine: Engine, ago_s: int, *, lives: bool
) -> None:
    beat(engine, ago_s=ago_s)
    change(engine, "UPDATE worker_heartbeat SET worker = 'w.gpu1.7'")

    assert bool(heard_of(engine, "gpu1")) is lives


def test_a_dispatcher_is_seen_from_its_start_to_its_end(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path)

    with at_work(dispatcher):
        await_that(lambda: bool(rows(engine, "SELECT FROM dispatcher_heartbeat WHERE leads AND fault IS NULL")))

    assert rows(engine, "SELECT * FROM dispatcher_heartbeat") == []


def test_heartbeats_that_nobody_renewed_for_a_day_are_forgotten(engine: Engine) -> None:
    beat(engine, worker="old", ago_s=90_000)
    beat(engine, worker="new", ago_s=80_000)

    Presence(engine).leave()

    assert [row["worker"] for row in rows(engine, "SELECT worker FROM worker_heartbeat")] == ["new"]


def test_a_broker_that_is_away_ends_the_waiting_and_is_named(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    with (
        Redis.from_url(nowhere, decode_responses=True) as broker,
        dispatching(engine, broker, nowhere) as dispatcher,
        at_work(dispatcher),
    ):
        await_that(lambda: fault(engine) == "the broker does not answer (ConnectionError)")
        code = follow(engine, "trial", patience_s=1)

    assert code == Exit.STUCK
    assert "the broker does not answer (ConnectionError)" in capsys.readouterr().err


def test_a_broker_that_comes_back_is_dispatched_to_again(engine: Engine, tmp_path: Path) -> None:
    beat(engine)
    with (
        start_valkey(tmp_path / "valkey") as valkey,
        Redis.from_url(valkey.url, decode_responses=True) as broker,
        dispatching(engine, broker, valkey.url) as dispatcher,
        at_work(dispatcher),
    ):
        await_that(lambda: bool(rows(engine, "SELECT FROM dispatcher_heartbeat WHERE leads")))
        valkey.child.kill()
        plan(engine, tmp_path)
        await_that(lambda: (fault(engine) or "").startswith("the broker"))

        valkey.start_again()
        valkey.wait_ready()

        await_that(lambda: fault(engine) is None)
        await_that(lambda: not rows(engine, "SELECT FROM job WHERE state <> 'queued'"))
