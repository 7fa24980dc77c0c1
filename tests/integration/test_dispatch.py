"""The dispatcher on a real Postgres and a real Valkey: what is fed, what comes back, and what a message holds."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest
from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from contract.broker import EVALUATE
from contract.database import open_engine
from ops.local.engines import free_port
from ops.local.valkey import start_valkey
from producer import dispatch
from producer.dispatch import QUEUED_LEASE_S, Dispatcher
from producer.window import FIRST_JOBS_PER_SLOT as JOBS_PER_SLOT
from tests.jobs import (
    QUEUE,
    at_work,
    await_that,
    beat,
    bundles,
    change,
    dispatching,
    plan,
    raw_messages,
    rows,
    states,
)

ROOT = Path(__file__).parents[2]


def test_a_queue_with_a_living_worker_is_fed_in_plan_order(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=5)
    beat(engine)

    queued = dispatcher.tick()

    ids = [row["id"] for row in rows(engine, "SELECT id FROM job ORDER BY position")]
    assert queued == 10
    assert states(engine) == {"queued": 10}
    assert bundles(broker) == [ids[:4], ids[4:8], ids[8:]]


def test_queued_jobs_have_a_lease(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    beat(engine)

    dispatcher.tick()

    (left,) = rows(engine, "SELECT min(lease_until - now()) AS low, max(lease_until - now()) AS high FROM job")
    assert QUEUED_LEASE_S - 60 < left["low"].total_seconds() <= left["high"].total_seconds() <= QUEUED_LEASE_S


def test_a_message_carries_ids_only_and_shows_whose_jobs_they_are(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=2)
    beat(engine)

    dispatcher.tick()

    (message,) = raw_messages(broker)
    ids = [row["id"] for row in rows(engine, "SELECT id FROM job ORDER BY position")]
    args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
    headers = message["headers"]
    assert (args, kwargs) == ([], {"job_ids": ids})
    assert (headers["task"], headers["argsrepr"]) == (EVALUATE, "()")
    assert headers["kwargsrepr"] == "{'study': 'trial', 'model': 'sim', 'dataset': 'capitals', 'jobs': 4}"
    assert message["content-type"] == "application/json"
    assert (headers["eta"], headers["expires"]) == (None, None)
    raw = json.dumps(message) + base64.b64decode(message["body"]).decode()
    assert "Which is right" not in raw
    assert "Paragraph" not in raw


@pytest.mark.parametrize(
    ("queues", "ago_s"),
    [((QUEUE,), 60), (("simulated.other", "openai.sim"), 0)],
    ids=["seen a minute ago", "serving other queues"],
)
def test_a_queue_without_a_living_worker_is_not_fed(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path, queues: tuple[str, ...], ago_s: int
) -> None:
    plan(engine, tmp_path)
    beat(engine, *queues, ago_s=ago_s)

    assert dispatcher.tick() == 0

    assert states(engine) == {"pending": 8}
    assert raw_messages(broker) == []


def test_every_model_has_its_own_queue_and_only_the_served_one_is_fed(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    models = [{"name": name, "provider": "simulated"} for name in ("sim", "second")]
    plan(engine, tmp_path, models=models)
    beat(engine, "simulated.second")

    dispatcher.tick()

    assert bundles(broker) == []
    assert sum(len(ids) for ids in bundles(broker, "simulated.second")) == 8


@pytest.mark.parametrize("slots", [(1,), (1, 2)], ids=["one worker", "two workers"])
def test_the_window_is_bounded_by_the_slots(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path, slots: tuple[int, ...]
) -> None:
    plan(engine, tmp_path, items=150)
    for number, count in enumerate(slots):
        beat(engine, worker=f"w{number}", slots=count)

    first, second = dispatcher.tick(), dispatcher.tick()

    window = sum(slots) * JOBS_PER_SLOT
    assert (first, second) == (window, 0)
    assert states(engine) == {"queued": window, "pending": 300 - window}
    assert sum(len(ids) for ids in bundles(broker)) == window


def test_running_jobs_take_up_room_and_finished_ones_make_it(
    engine: Engine, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=100)
    beat(engine)
    dispatcher.tick()
    change(engine, "UPDATE job SET state = 'running' WHERE position < 10")
    change(engine, "UPDATE job SET state = 'answered', lease_until = NULL WHERE position BETWEEN 10 AND 14")

    assert dispatcher.tick() == 4  # there is room for five: one bundle

    assert states(engine) == {"running": 10, "answered": 5, "queued": JOBS_PER_SLOT - 11, "pending": 200 - 36}


def test_two_studies_take_turns(engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path) -> None:
    for name in ("early", "late"):
        plan(engine, tmp_path / name, study=name, items=100)
    beat(engine)

    dispatcher.tick()

    found = rows(
        engine,
        """SELECT study.name, count(*) AS jobs, max(position) AS last FROM job JOIN study ON study.id = job.study
           WHERE job.state = 'queued' GROUP BY study.name ORDER BY study.name""",
    )
    half = JOBS_PER_SLOT // 2
    assert [(row["name"], row["jobs"], row["last"]) for row in found] == [
        ("early", half, half - 1),
        ("late", half, half - 1),
    ]
    shown = Counter(message["headers"]["kwargsrepr"].split("'")[3] for message in raw_messages(broker))
    assert shown == {"early": half // 4, "late": half // 4}


def test_a_small_study_leaves_its_room_to_the_others(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path / "large", study="large", items=100)
    small = plan(engine, tmp_path / "small", study="small", items=2)
    beat(engine)

    assert dispatcher.tick() + dispatcher.tick() == JOBS_PER_SLOT

    (queued,) = rows(engine, "SELECT count(*) AS n FROM job WHERE state = 'queued' AND study = :study", study=small)
    assert queued["n"] == 4


def test_a_job_waits_until_its_time_has_come(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    change(engine, "UPDATE job SET not_before = now() + interval '1 hour' WHERE position < 3")
    change(engine, "UPDATE job SET not_before = now() - interval '1 second' WHERE position = 3")
    beat(engine)

    assert dispatcher.tick() == 5

    found = rows(engine, "SELECT state, not_before FROM job ORDER BY position")
    assert [row["state"] for row in found] == ["pending"] * 3 + ["queued"] * 5
    assert found[3]["not_before"] is None


@pytest.mark.parametrize(
    ("statement", "fed"),
    [
        pytest.param("UPDATE study SET state = 'paused'", 0, id="study paused"),
        pytest.param("UPDATE study SET state = 'cancelled'", 0, id="study cancelled"),
        pytest.param("UPDATE condition SET state = 'paused' WHERE variant = '21'", 4, id="condition paused"),
        pytest.param("UPDATE condition SET state = 'cancelled' WHERE variant = '21'", 4, id="condition cancelled"),
        pytest.param("UPDATE job SET planned = false WHERE position < 6", 2, id="no longer planned"),
        pytest.param(
            "INSERT INTO stop (study, queue, reason, since) SELECT id, 'simulated.sim', 'wrong key', now() FROM study",
            0,
            id="queue stopped",
        ),
        pytest.param(
            "INSERT INTO stop (study, queue, reason, since) SELECT id, 'simulated.two', 'wrong key', now() FROM study",
            8,
            id="another queue stopped",
        ),
    ],
)
def test_what_is_not_wanted_now_is_not_fed(
    engine: Engine, dispatcher: Dispatcher, tmp_path: Path, statement: str, fed: int
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    change(engine, statement)

    assert dispatcher.tick() == fed

    assert states(engine)["queued"] == fed


@pytest.mark.parametrize(
    ("state", "calling", "losses", "ends"),
    [
        pytest.param("queued", False, 0, ("pending", 0), id="message lost"),
        pytest.param("running", False, 0, ("pending", 0), id="worker lost between calls"),
        pytest.param("running", True, 0, ("pending", 1), id="worker lost in a call"),
        pytest.param("running", False, 4, ("pending", 4), id="between calls, after four losses"),
        pytest.param("running", True, 3, ("pending", 4), id="fourth loss"),
        pytest.param("running", True, 4, ("failed", 5), id="fifth loss"),
    ],
)
def test_an_expired_lease_is_a_loss_only_in_a_call_and_the_fifth_loss_ends_the_job(
    engine: Engine,
    dispatcher: Dispatcher,
    tmp_path: Path,
    state: str,
    calling: bool,
    losses: int,
    ends: tuple[str, int],
) -> None:
    plan(engine, tmp_path, items=1)
    change(
        engine,
        """UPDATE job SET state = :state, calling = :calling, losses = :losses, claim = 7,
               lease_until = now() - interval '1 second' WHERE position = 0""",
        state=state,
        calling=calling,
        losses=losses,
    )

    dispatcher.tick()

    job = rows(engine, "SELECT * FROM job ORDER BY position")[0]
    assert (job["state"], job["losses"]) == ends
    assert (job["calling"], job["lease_until"], job["claim"]) == (False, None, 7)
    assert (job["finished_at"] is not None) == (ends[0] == "failed")


def test_after_postgres_was_away_nothing_is_recovered_before_workers_could_store_what_they_hold(
    engine: Engine, dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(engine, tmp_path, items=1)
    change(engine, "UPDATE job SET state = 'running', calling = true, lease_until = now() - interval '1 s'")

    def be_away() -> None:
        with monkeypatch.context() as away:
            away.setattr(dispatch, "try_to_lead", Mock(side_effect=OperationalError("", {}, Exception())))
            with at_work(dispatcher):
                time.sleep(0.3)

    be_away()
    dispatcher.tick()
    assert states(engine) == {"running": 2}

    monkeypatch.setattr(dispatch, "LATE_S", -1.0)
    be_away()
    dispatcher.tick()
    assert states(engine) == {"pending": 2}


def test_a_lease_that_holds_is_left_alone(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    dispatcher.tick()
    change(engine, "UPDATE job SET state = 'running', calling = true, lease_until = now() + interval '1 minute'")

    dispatcher.tick()

    assert states(engine) == {"running": 8}
    assert raw_messages(broker) == []


def test_a_job_that_was_lost_twice_travels_alone(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=2)
    change(engine, "UPDATE job SET losses = 2 WHERE position = 1")
    beat(engine)

    dispatcher.tick()

    assert [len(ids) for ids in bundles(broker)] == [1, 1, 2]


def test_after_the_broker_was_emptied_everything_queued_is_published_again_at_once(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    dispatcher.tick()
    before = bundles(broker)
    broker.flushall()

    queued = dispatcher.tick()

    assert queued == 8
    assert bundles(broker) == before
    assert states(engine) == {"queued": 8}


def test_after_the_broker_was_emptied_what_runs_goes_on(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    dispatcher.tick()
    change(engine, "UPDATE job SET state = 'running', calling = true WHERE position < 4")
    broker.flushall()

    dispatcher.tick()

    assert states(engine) == {"running": 4, "queued": 4}
    assert [len(ids) for ids in bundles(broker)] == [4]
    assert rows(engine, "SELECT DISTINCT losses FROM job") == [{"losses": 0}]


def test_a_new_leader_publishes_again_what_it_cannot_know_to_be_published(
    engine: Engine, broker: Redis, broker_url: str, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    dispatcher.tick()

    before = bundles(broker)

    with dispatching(engine, broker, broker_url) as other:
        assert other.tick() == 8
        assert other.tick() == 0

    assert bundles(broker) == before * 2


def test_a_broker_that_is_away_while_publishing_leaves_no_job_queued(
    engine: Engine, broker: Redis, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)

    with (
        dispatching(engine, broker, f"redis://127.0.0.1:{free_port()}/0") as dispatcher,
        pytest.raises((RedisError, KombuError)),
    ):
        dispatcher.tick()

    assert states(engine) == {"pending": 8}
    assert rows(engine, "SELECT DISTINCT lease_until FROM job") == [{"lease_until": None}]


def test_a_broker_that_went_away_since_leaves_no_job_queued(engine: Engine, broker: Redis, tmp_path: Path) -> None:
    plan(engine, tmp_path, repeats=1)
    beat(engine)

    with start_valkey(tmp_path / "state") as second, dispatching(engine, broker, second.url) as dispatcher:
        dispatcher.tick()
        plan(engine, tmp_path, repeats=2)
        second.stop()
        with pytest.raises((RedisError, KombuError)):
            dispatcher.tick()

    assert states(engine) == {"queued": 8, "pending": 8}


def test_a_broker_that_takes_no_more_leaves_no_job_queued(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, repeats=1)
    beat(engine)
    dispatcher.tick()
    plan(engine, tmp_path, repeats=2)

    broker.config_set("maxmemory", "1")
    try:
        with pytest.raises((RedisError, KombuError)):
            dispatcher.tick()
    finally:
        broker.config_set("maxmemory", "0")

    assert states(engine) == {"queued": 8, "pending": 8}
    assert dispatcher.tick() == 8


def test_a_dispatcher_survives_a_broker_that_takes_no_more(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    stopping = threading.Event()
    beat(engine)
    plan(engine, tmp_path, repeats=1)
    dispatcher.tick()
    thread = threading.Thread(target=dispatcher.run, args=(stopping,))
    broker.config_set("maxmemory", "1")
    try:
        plan(engine, tmp_path, repeats=2)
        thread.start()
        thread.join(timeout=1)
        broker.config_set("maxmemory", "0")
        await_that(lambda: sum(map(len, bundles(broker))) == 16)
    finally:
        broker.config_set("maxmemory", "0")
        stopping.set()
        thread.join(timeout=10)

    assert states(engine) == {"queued": 16}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hanging"])
def test_a_second_dispatcher_stands_by_and_takes_over_when_the_first_is_gone(
    engine: Engine, database_url: str, broker: Redis, broker_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    def leaders() -> list[str]:
        return [
            row["application_name"]
            for row in rows(
                engine,
                """SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
                   WHERE locktype = 'advisory' AND granted AND datname = current_database()""",
            )
        ]

    def published() -> set[int]:
        return {job for ids in bundles(broker) for job in ids}

    def stands_by(name: str) -> bool:
        asked = "SELECT FROM pg_stat_activity WHERE application_name = :name AND query LIKE '%advisory_lock%'"
        return bool(rows(engine, asked, name=name))

    url = make_url(database_url)
    first_url, second_url = (
        url.update_query_dict({"application_name": name}).render_as_string(hide_password=False)
        for name in ("first", "second")
    )
    environment = os.environ | {
        "BOTHWAYS_STATE": str(tmp_path / "state"),
        "BOTHWAYS_DATABASE_URL": first_url,
        "BOTHWAYS_BROKER_URL": broker_url,
    }
    command = [sys.executable, "-m", "ops.cli", "dispatch"]
    stopping = threading.Event()
    second_engine = open_engine(second_url)
    with (
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as first,
        dispatching(second_engine, broker, broker_url) as second,
    ):
        thread = threading.Thread(target=second.run, args=(stopping,))
        try:
            await_that(lambda: leaders() == ["first"])
            thread.start()
            await_that(lambda: stands_by("second"))
            assert leaders() == ["first"]
            plan(engine, tmp_path)
            beat(engine)
            await_that(lambda: sum(map(len, bundles(broker))) == 8)

            first.send_signal(end)
            await_that(lambda: leaders() == ["second"], seconds=30)
            plan(engine, tmp_path, repeats=2)
            await_that(lambda: len(published()) == 16)
        finally:
            first.kill()
            stopping.set()
            thread.join(timeout=10)
            second_engine.dispose()

    assert not thread.is_alive()
    assert leaders() == []
    assert published() == {row["id"] for row in rows(engine, "SELECT id FROM job")}


def test_a_dispatcher_survives_the_loss_of_its_connection(
    engine: Engine, database_url: str, broker: Redis, broker_url: str, tmp_path: Path
) -> None:
    named = make_url(database_url).update_query_dict({"application_name": "dispatcher"})
    own_engine = open_engine(named.render_as_string(hide_password=False))
    stopping = threading.Event()
    beat(engine)
    with dispatching(own_engine, broker, broker_url) as dispatcher:
        thread = threading.Thread(target=dispatcher.run, args=(stopping,))
        thread.start()
        try:
            plan(engine, tmp_path)
            await_that(lambda: states(engine) == {"queued": 8})

            change(
                engine,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dispatcher'",
            )
            plan(engine, tmp_path, repeats=2)
            await_that(lambda: states(engine) == {"queued": 16})
        finally:
            stopping.set()
            thread.join(timeout=10)
            own_engine.dispose()

    assert not thread.is_alive()
