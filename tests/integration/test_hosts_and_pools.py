"""Who is at work and what is left of the quotas, as the commands `hosts` and `pools` tell it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine

from contract.errors import StackError
from contract.pools import Pool
from ops.hosts import read_workers
from ops.pools import read_pools_seen
from tests.jobs import beat, change, plan, rows
from worker.pools import Gate, Permit, Used


def tell(engine: Engine, **columns: Any) -> None:  # noqa: ANN401
    """Let the one worker's heartbeat say more."""
    for column, value in columns.items():
        held = json.dumps(value) if isinstance(value, dict | list) else value
        change(engine, f"UPDATE worker_heartbeat SET {column} = :value", value=held)  # noqa: S608


def pool(**limits: Any) -> Pool:  # noqa: ANN401
    """A pool of the whole quota."""
    return Pool.model_validate({"name": "a", "provider": "simulated", "share": 1.0} | limits)


def take(broker: Redis, limits: Pool) -> Permit:
    """One call through the pool."""
    gate = Gate(broker, {limits.name: limits}, lambda _, __: Used(requests=0, exhausted=False))
    permit = gate.permit([limits.name], tokens_in=1, tokens_out=1, lease_s=60)
    assert isinstance(permit, Permit)
    return permit


def test_a_worker_tells_what_it_serves_since_when_and_how_fast(engine: Engine) -> None:
    beat(engine, "simulated.sim", "simulated.other", slots=4)
    tell(engine, pace={"simulated.sim": 2.0})

    (worker,) = read_workers(engine)

    assert [(served.queue, served.jobs_a_minute) for served in worker.serves] == [
        ("simulated.sim", 120.0),
        ("simulated.other", None),
    ]
    assert (worker.slots, worker.gone, worker.endpoint, worker.models) == (4, False, None, None)
    assert datetime.now(UTC) - worker.since < timedelta(minutes=1)


def test_a_host_tells_its_models_what_it_leaves_alone_and_what_one_should_know(engine: Engine) -> None:
    beat(engine, "ollama.llama")
    until = datetime.now(UTC) + timedelta(minutes=10)
    tell(
        engine,
        endpoint="gpu1:11434",
        models=["llama:8b", "phi:14b"],
        resting={"ollama.phi": {"until": until.isoformat(), "reason": "out of memory", "quota": False}},
        notes=["40 % of llama:8b runs on the CPU"],
    )

    (worker,) = read_workers(engine)

    assert (worker.endpoint, worker.models) == ("gpu1:11434", ("llama:8b", "phi:14b"))
    assert [(rest.queue, rest.until, rest.reason) for rest in worker.resting] == [
        ("ollama.phi", until, "out of memory")
    ]
    assert worker.notes == ("40 % of llama:8b runs on the CPU",)


@pytest.mark.parametrize(("ago_s", "seen", "gone"), [(29, 1, False), (31, 1, True), (3599, 1, True), (3601, 0, True)])
def test_a_silent_worker_is_named_for_an_hour(engine: Engine, ago_s: int, seen: int, *, gone: bool) -> None:
    beat(engine, ago_s=ago_s)

    found = read_workers(engine)

    assert len(found) == seen
    assert all(worker.gone is gone for worker in found)


def test_a_pool_tells_what_is_left_of_its_day(engine: Engine, broker: Redis) -> None:
    limits = pool(rpd=10, concurrency=3)
    take(broker, limits)
    take(broker, limits)

    (seen,) = read_pools_seen(engine, broker, {"a": limits})

    assert (seen.used_today, seen.left_today, seen.state.held) == (2, 8, 2)
    assert seen.state.paused_until is None
    assert seen.day_ends is not None
    assert seen.day_ends > datetime.now(UTC)


def test_a_day_that_the_broker_does_not_know_is_counted_from_what_is_stored(
    engine: Engine, broker: Redis, tmp_path: Path
) -> None:
    study = plan(engine, tmp_path)
    change(
        engine,
        """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker, pool)
           SELECT gen_random_uuid(), id, 1, 1, now(), 1, 'answered', 'w', 'a' FROM job WHERE study = :study LIMIT 3""",
        study=study,
    )

    (seen,) = read_pools_seen(engine, broker, {"a": pool(rpd=10)})

    assert (seen.used_today, seen.left_today) == (3, 7)


def test_a_paused_pool_says_until_when_and_why(engine: Engine, broker: Redis) -> None:
    limits = pool(rpm=1000)
    gate = Gate(broker, {"a": limits}, lambda _, __: Used(requests=0, exhausted=False))
    permit = gate.permit(["a"], tokens_in=1, tokens_out=1, lease_s=60)
    assert isinstance(permit, Permit)
    gate.throttled(permit, 120)

    (seen,) = read_pools_seen(engine, broker, {"a": limits})

    assert seen.state.paused_until is not None
    assert 110 < (seen.state.paused_until - datetime.now(UTC)).total_seconds() < 140
    assert seen.state.reason
    assert seen.state.factor < 1


def test_a_pool_that_a_study_names_is_told_without_the_file_too(engine: Engine, broker: Redis, tmp_path: Path) -> None:
    models = [{"name": "sim", "provider": "simulated", "pools": ["b", "a"]}]
    plan(engine, tmp_path, models=models)

    found = {seen.name: seen for seen in read_pools_seen(engine, broker, {"a": pool(rpm=1)})}

    assert {name: seen.models for name, seen in found.items()} == {"a": ("sim",), "b": ("sim",)}
    assert found["b"].limits is None
    assert (found["b"].used_today, found["b"].left_today) == (None, None)


def test_without_a_broker_nothing_is_claimed(engine: Engine) -> None:
    with Redis(port=1, decode_responses=True) as nowhere, pytest.raises(StackError, match="the broker does not answer"):
        read_pools_seen(engine, nowhere, {"a": pool(rpm=1)})
    assert rows(engine, "SELECT 1 AS one")
