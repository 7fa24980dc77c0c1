"""Windows, shares and bundles on a real Postgres and a real Valkey: who is fed how much, and what the broker holds."""

import json
from collections import Counter
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import Engine

from contract.broker import list_key
from producer import dispatch
from producer.dispatch import LOST_AFTER_S, Dispatcher
from producer.window import FIRST_JOBS_PER_SLOT, MOST_JOBS_PER_SLOT
from tests.jobs import QUEUE, beat, bundles, change, plan, raw_messages, rows, states


def by_study(engine: Engine, state: str = "queued") -> Counter[str]:
    """How many jobs of each study are in a state."""
    found = rows(
        engine,
        "SELECT study.name FROM job JOIN study ON study.id = job.study WHERE job.state = :state",
        state=state,
    )
    return Counter(row["name"] for row in found)


def finish(engine: Engine, jobs: int) -> None:
    """Let workers finish the jobs that were queued first."""
    change(
        engine,
        """UPDATE job SET state = 'answered', finished_at = now(), lease_until = NULL WHERE id IN (
           SELECT id FROM job WHERE state = 'queued' ORDER BY lease_until, id LIMIT :jobs)""",
        jobs=jobs,
    )


def test_studies_share_a_queue_by_their_weights(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path / "heavy", study="heavy", items=200, weight=3)
    plan(engine, tmp_path / "light", study="light", items=200)
    beat(engine, slots=2)

    for _ in range(20):
        dispatcher.tick()
        finish(engine, 16)

    done = by_study(engine, "answered")
    assert sum(done.values()) == 320
    assert 0.65 < done["heavy"] / 320 < 0.85


def test_shares_even_out_though_each_round_has_room_for_one_bundle(
    engine: Engine, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        plan(engine, tmp_path / name, study=name, items=100)
    beat(engine)

    for _ in range(60):
        dispatcher.tick()
        finish(engine, 4)

    assert all(70 <= jobs <= 90 for jobs in by_study(engine, "answered").values())


def test_a_small_study_is_done_while_a_huge_one_runs(engine: Engine, dispatcher: Dispatcher, tmp_path: Path) -> None:
    plan(engine, tmp_path / "huge", study="huge", items=2000)
    beat(engine)
    dispatcher.tick()
    plan(engine, tmp_path / "small", study="small", items=10)

    for _ in range(8):
        finish(engine, 16)
        dispatcher.tick()

    assert by_study(engine, "answered")["small"] == 20


def test_a_stream_of_small_studies_does_not_starve_a_huge_one(
    engine: Engine, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path / "huge", study="huge", items=300)
    beat(engine)
    for number in range(12):
        plan(engine, tmp_path / f"small{number}", study=f"small{number}", items=8)
        dispatcher.tick()
        finish(engine, 16)

    done = by_study(engine, "answered")
    # Each newcomer comes first until it holds as much as the others; a fifth is left for what was there before.
    assert done["huge"] >= 12 * 16 / 5


def test_bundles_keep_prompt_prefixes_together(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    # Two items share each paragraph: four jobs, of which a bundle of six could take one and a half.
    plan(engine, tmp_path, items=8, bundles={"size": 6, "budget_s": 5})
    beat(engine)

    dispatcher.tick()

    prefixes = {row["id"]: row["prefix"] for row in rows(engine, "SELECT id, prefix FROM job")}
    assert [len({prefixes[number] for number in ids}) for ids in bundles(broker)] == [1, 1, 1, 1]
    assert [len(ids) for ids in bundles(broker)] == [4, 4, 4, 4]


@pytest.mark.parametrize(
    ("pace", "window", "longest"),
    [
        pytest.param("{}", FIRST_JOBS_PER_SLOT, 4, id="not told yet"),
        pytest.param('{"simulated.sim": 0.001}', MOST_JOBS_PER_SLOT, 4, id="a fast model"),
        pytest.param('{"simulated.sim": 2.5}', 48, 2, id="a slow model"),
        pytest.param('{"simulated.sim": 60}', 2, 1, id="a very slow model"),
    ],
)
def test_windows_and_bundles_follow_the_pace_that_workers_tell(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path, pace: str, window: int, longest: int
) -> None:
    plan(engine, tmp_path, items=100)
    beat(engine)
    change(engine, "UPDATE worker_heartbeat SET pace = CAST(:pace AS jsonb)", pace=pace)

    while dispatcher.tick():
        pass

    assert states(engine)["queued"] == window
    assert max(len(ids) for ids in bundles(broker)) == longest


def want(engine: Engine, worker: str, bundles: int) -> None:
    """A worker's next heartbeat, with how many bundles it wants."""
    change(
        engine,
        "UPDATE worker_heartbeat SET seen_at = clock_timestamp(), wants = CAST(:wants AS jsonb) WHERE worker = :worker",
        worker=worker,
        wants=json.dumps({QUEUE: bundles}),
    )


def test_where_a_quota_decides_workers_get_the_bundles_that_they_want_once(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=100)
    beat(engine, slots=16, worker="one")
    beat(engine, slots=16, worker="other")
    fed = []

    for wishes in ({"one": 2, "other": 1}, {}, {"one": 3}, {"one": 0, "other": 0}):
        for worker, wanted in wishes.items():
            want(engine, worker, wanted)
        dispatcher.tick()
        fed.append([len(ids) for ids in bundles(broker)])
        broker.delete(list_key(QUEUE))
        change(engine, "UPDATE job SET state = 'running' WHERE state = 'queued'")

    assert fed == [[4, 4, 4], [], [4, 4, 4], []]


def test_bundles_that_nobody_has_taken_yet_are_not_wanted_twice(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=100)
    beat(engine, slots=16)

    for _ in range(3):
        want(engine, "w", 2)
        dispatcher.tick()

    assert [len(ids) for ids in bundles(broker)] == [4, 4]


def test_a_worker_that_no_quota_holds_up_is_fed_for_all_its_slots(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path, items=100)
    beat(engine, slots=2, worker="free")
    beat(engine, slots=16, worker="held up")
    want(engine, "held up", 1)

    dispatcher.tick()

    assert [len(ids) for ids in bundles(broker)] == [4, 4, 4]


def test_a_lost_message_costs_half_a_minute_where_its_queue_is_empty(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    dispatcher.tick()
    broker.delete(list_key(QUEUE))

    assert dispatcher.tick() == 0
    change(engine, "UPDATE job SET lease_until = lease_until - make_interval(secs => :age)", age=LOST_AFTER_S)

    assert dispatcher.tick() == 8
    assert sum(len(ids) for ids in bundles(broker)) == 8


def test_what_waits_long_behind_others_is_not_taken_for_lost(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    plan(engine, tmp_path)
    beat(engine)
    dispatcher.tick()
    change(engine, "UPDATE job SET lease_until = lease_until - make_interval(secs => :age)", age=LOST_AFTER_S)

    assert dispatcher.tick() == 0
    assert len(raw_messages(broker)) == 2


def test_the_broker_holds_a_bounded_number_of_messages_however_often_leases_end(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "MOST_MESSAGES", 10)
    monkeypatch.setattr(dispatch, "FEWEST_MESSAGES", 0)
    plan(engine, tmp_path, items=100)
    beat(engine)

    for _ in range(6):
        dispatcher.tick()
        change(engine, "UPDATE job SET lease_until = now() - interval '1 second' WHERE state = 'queued'")

    assert len(raw_messages(broker)) == 10


def test_a_full_queue_that_stands_still_stops_no_other(
    engine: Engine, broker: Redis, dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "MOST_MESSAGES", 10)
    models = [{"name": name, "provider": "simulated"} for name in ("sim", "second")]
    plan(engine, tmp_path, items=20, models=models)
    broker.lpush(list_key(QUEUE), *("stuck" for _ in range(200)))
    beat(engine, QUEUE, "simulated.second")

    dispatcher.tick()

    assert broker.llen(list_key(QUEUE)) == 200
    assert sum(len(ids) for ids in bundles(broker, "simulated.second")) == FIRST_JOBS_PER_SLOT
