"""The gate of a pool on a real Valkey: each limit, all of them at once, pauses, days, and the broker's absence."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from redis import Redis

from contract.pool_state import PoolState, pool_states
from contract.pools import Day, Pool, held_key, next_boundaries, pool_key, tokens_key
from contract.tokens import estimate_tokens
from ops.local.valkey import start_valkey
from worker.pool_script import SPENT, PoolScript
from worker.pools import EXHAUSTED, THROTTLED, Denied, Gate, Permit, Used

NAME = "free"


def day_that_begins(in_s: float) -> Day:
    """Days that begin so many seconds from now."""
    return Day(begins=(datetime.now(UTC) + timedelta(seconds=in_s)).time().replace(microsecond=0))


def make_pool(name: str = NAME, **limits: Any) -> Pool:  # noqa: ANN401
    """A pool whose day began three hours ago, if nothing else is said."""
    return Pool.model_validate({"name": name, "provider": "simulated", "day": day_that_begins(-10_800)} | limits)


def make_gate(broker: Redis, *pools: Pool, used: Callable[[Pool, datetime], Used] | None = None) -> Gate:
    """A gate whose pools nobody has used today."""
    unused = Used(requests=0, exhausted=False)
    return Gate(broker, {pool.name: pool for pool in pools}, used or (lambda _pool, _since: unused))


def gate_of(broker: Redis, **limits: Any) -> Gate:  # noqa: ANN401
    """A gate with one pool."""
    return make_gate(broker, make_pool(**limits))


def ask(gate: Gate, *names: str, tokens: int = 1, lease_s: float = 60) -> Permit | Denied:
    """Ask for one call."""
    return gate.permit(names or (NAME,), tokens_in=tokens, tokens_out=0, lease_s=lease_s)


def take(gate: Gate, *names: str, tokens: int = 1, lease_s: float = 60) -> Permit:
    """One call that may go."""
    outcome = ask(gate, *names, tokens=tokens, lease_s=lease_s)
    assert isinstance(outcome, Permit), outcome
    return outcome


def denial(gate: Gate, *names: str, tokens: int = 1) -> Denied:
    """One call that may not."""
    outcome = ask(gate, *names, tokens=tokens)
    assert isinstance(outcome, Denied), outcome
    return outcome


def settle(gate: Gate, permit: Permit, tokens: int = 1) -> None:
    """The call took so many tokens."""
    gate.settle(permit, tokens_in=tokens, tokens_out=0)


def state(broker: Redis, name: str = NAME) -> PoolState:
    """How the pool stands."""
    return pool_states(broker, [name])[name]


def paused_for_s(broker: Redis) -> float:
    """How long the pool is still paused."""
    until = state(broker).paused_until
    return 0.0 if until is None else (until - datetime.now(UTC)).total_seconds()


def lift_pause(broker: Redis) -> None:
    """As if the pause were over."""
    broker.hdel(pool_key(NAME), "paused_until")


def all_that_is_known(broker: Redis) -> tuple[Any, ...]:
    """Everything that the broker holds of the pool."""
    entries = [broker.zrange(key(NAME), 0, -1, withscores=True) for key in (held_key, tokens_key)]
    return (broker.hgetall(pool_key(NAME)), *entries)


# One limit after the other


def test_requests_are_paced_at_the_share_of_the_limit(broker: Redis) -> None:
    gate = gate_of(broker, rpm=6)
    settle(gate, take(gate))

    denied = denial(gate)

    assert (denied.reason, denied.pool) == ("rpm", NAME)
    assert denied.wait_s == pytest.approx(60 / (0.9 * 6) - 0.03 * 60, abs=0.5)


def test_a_window_of_another_length_has_the_same_requests(broker: Redis) -> None:
    gate = gate_of(broker, rpm=6, window_s=600)
    take(gate)

    assert denial(gate).wait_s == pytest.approx(600 / (0.9 * 6) - 0.03 * 600, abs=0.5)


def test_tokens_are_paced_by_what_a_call_is_expected_to_take(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)
    take(gate, tokens=300)

    denied = denial(gate)

    assert denied.reason == "tpm"
    assert denied.wait_s == pytest.approx(300 * 60 / 900 - 0.03 * 60, abs=0.5)


def test_large_calls_do_not_add_up_beyond_the_tokens_of_a_window(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)
    take(gate, tokens=800)
    broker.hset(pool_key(NAME), "tokens_tat", 0)  # as if the pace allowed it

    denied = denial(gate, tokens=200)

    assert denied.reason == "tpm"
    assert denied.wait_s == pytest.approx(63, abs=0.5)
    take(gate, tokens=150)


def test_a_call_larger_than_the_share_goes_when_no_other_is_in_the_window(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)
    take(gate, tokens=10)
    broker.hset(pool_key(NAME), "tokens_tat", 0)
    for tokens in (901, 5000):
        assert denial(gate, tokens=tokens).wait_s == pytest.approx(63, abs=0.5)

    broker.delete(tokens_key(NAME))

    take(gate, tokens=5000)
    assert broker.hget(pool_key(NAME), "logged") == "5000"


def test_tokens_leave_the_window(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000, window_s=1)
    settle(gate, take(gate, tokens=800), 800)
    settle(gate, take_when_it_may(gate, tokens=800), 800)
    time.sleep(1.2)

    take_when_it_may(gate, tokens=800)

    assert broker.zcard(tokens_key(NAME)) == 1
    assert broker.hget(pool_key(NAME), "logged") == "800"


def take_when_it_may(gate: Gate, tokens: int = 1, longest_s: float = 5) -> Permit:
    """One call that is waited for."""
    outcome = await_permit(gate, longest_s, tokens=tokens)
    assert isinstance(outcome, Permit), outcome
    return outcome


def await_permit(
    gate: Gate, longest_s: float, names: Sequence[str] = (NAME,), tokens: int = 1, stopping: Event | None = None
) -> Permit | Denied:
    """Ask for one call, with patience."""
    stopping = stopping or Event()
    return gate.await_permit(names, tokens_in=tokens, tokens_out=0, lease_s=60, longest_s=longest_s, stopping=stopping)


def test_only_so_many_calls_run_at_once(broker: Redis) -> None:
    gate = gate_of(broker, concurrency=2)
    first, _ = take(gate), take(gate)
    assert denial(gate).reason == "concurrency"

    settle(gate, first)

    take(gate)
    assert (denial(gate).reason, state(broker).held) == ("concurrency", 2)


def test_a_killed_holder_frees_its_place_when_its_lease_ends(broker: Redis) -> None:
    gate = gate_of(broker, concurrency=1)
    take(gate, lease_s=1)
    assert denial(gate).reason == "concurrency"
    time.sleep(1.1)

    take(gate)

    assert state(broker).held == 1


def test_a_spent_day_pauses_the_pool_until_the_next_begins(broker: Redis) -> None:
    gate = gate_of(broker, rpd=2, share=1)
    settle(gate, take(gate))
    settle(gate, take(gate))
    assert state(broker).paused_until is None

    denied = denial(gate)

    boundary = next_boundaries(make_pool(rpd=2), datetime.now(UTC))[0]
    assert denied.reason == SPENT
    assert denied.wait_s == pytest.approx(21 * 3600, abs=5)
    assert (state(broker).paused_until, state(broker).reason) == (boundary, SPENT)
    assert state(broker).used_today == 2


def test_of_several_limits_the_longest_wait_is_told(broker: Redis) -> None:
    gate = gate_of(broker, rpm=60, tpm=1000, concurrency=1)
    take(gate, tokens=500)

    assert denial(gate).reason == "tpm"


@pytest.mark.parametrize(
    "limits",
    [{"rpm": 1}, {"tpm": 10}, {"concurrency": 1}, {"rpm": 1, "tpm": 10, "rpd": 100, "concurrency": 1}],
    ids=["rpm", "tpm", "concurrency", "all"],
)
def test_a_denial_changes_nothing(broker: Redis, limits: dict[str, int]) -> None:
    gate = gate_of(broker, **limits)
    take(gate, tokens=9)
    before = all_that_is_known(broker)

    denial(gate)
    denial(gate, tokens=50)

    assert all_that_is_known(broker) == before


def test_limits_hold_for_all_who_ask_at_once(broker: Redis) -> None:
    gates = [gate_of(broker, rpd=60, share=1, concurrency=5, rpm=1_000_000) for _ in range(4)]
    most = []

    def work(number: int) -> int:
        gate, granted = gates[number % 4], 0
        for _ in range(30):
            outcome = ask(gate)
            if isinstance(outcome, Permit):
                granted += 1
                most.append(broker.zcard(held_key(NAME)))
                settle(gate, outcome)
        return granted

    with ThreadPoolExecutor(16) as threads:
        granted = sum(threads.map(work, range(16)))

    assert granted <= 60
    assert max(most) <= 5
    assert (state(broker).used_today, state(broker).held) == (granted, 0)
    while isinstance(ask(gates[0], lease_s=0.001), Permit):
        granted += 1
        time.sleep(0.01)
    assert granted == 60


# Settling


def test_what_a_call_did_not_take_is_given_back(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)

    settle(gate, take(gate, tokens=800), 10)

    take(gate, tokens=800)


def test_what_a_call_took_beyond_its_estimate_is_owed(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)

    settle(gate, take(gate, tokens=10), 700)

    assert denial(gate).wait_s == pytest.approx(700 * 60 / 900 - 0.03 * 60, abs=1.5)
    assert broker.hget(pool_key(NAME), "logged") == "700"


def test_what_nobody_told_stays_as_it_was_reserved(broker: Redis) -> None:
    gate = make_gate(broker, make_pool(tpm=1000, tokens_counted="total"))
    permit = gate.permit([NAME], tokens_in=100, tokens_out=50, lease_s=60)
    assert isinstance(permit, Permit)

    gate.settle(permit, tokens_in=None, tokens_out=20)

    assert (permit.tokens, broker.hget(pool_key(NAME), "logged")) == (150, "120")


def test_a_pool_that_counts_prompts_is_not_charged_for_answers(broker: Redis) -> None:
    gate = make_gate(broker, make_pool(tpm=1000, tokens_counted="input"))
    permit = gate.permit([NAME], tokens_in=100, tokens_out=50, lease_s=60)
    assert isinstance(permit, Permit)

    gate.settle(permit, tokens_in=110, tokens_out=900)

    assert (permit.tokens, broker.hget(pool_key(NAME), "logged")) == (100, "110")


def test_a_refund_is_no_credit(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000)
    permit = take(gate, tokens=300)
    now = time.time() * 1000
    broker.hset(pool_key(NAME), "tokens_tat", str(now - 10_000))  # as if its debt were long paid

    settle(gate, permit, 0)

    assert float(broker.hget(pool_key(NAME), "tokens_tat") or 0) >= now


@pytest.mark.parametrize("end", ["settle", "release", "throttled", "exhausted"])
def test_whatever_becomes_of_a_call_is_told_once(broker: Redis, end: str) -> None:
    gate = gate_of(broker, tpm=1000, concurrency=3)
    take(gate, tokens=1)
    broker.hset(pool_key(NAME), "tokens_tat", 0)
    permit = take(gate, tokens=100)
    ends: dict[str, Callable[[], None]] = {
        "settle": lambda: settle(gate, permit, 50),
        "release": lambda: gate.release(permit),
        "throttled": lambda: gate.throttled(permit, None),
        "exhausted": lambda: gate.exhausted(permit),
    }
    ends[end]()
    once = all_that_is_known(broker)

    for tell in ends.values():
        tell()

    assert all_that_is_known(broker) == once
    assert state(broker).held == 1


def test_settling_after_the_lease_ended_harms_nobody(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000, concurrency=1)
    late = take(gate, tokens=100, lease_s=0.5)
    time.sleep(0.6)
    broker.hset(pool_key(NAME), "tokens_tat", 0)
    take(gate, tokens=100)

    settle(gate, late, 40)

    assert state(broker).held == 1
    assert broker.hget(pool_key(NAME), "logged") == "140"


def test_a_call_that_failed_otherwise_stays_counted(broker: Redis) -> None:
    gate = gate_of(broker, tpm=1000, rpd=100, concurrency=1)

    gate.release(take(gate, tokens=500))

    assert (state(broker).held, state(broker).used_today) == (0, 1)
    assert denial(gate).reason == "tpm"


def test_a_permit_whose_answer_was_lost_is_not_counted_twice(broker: Redis) -> None:
    pool = make_pool(rpm=1, tpm=10, concurrency=1)
    script, call = PoolScript(broker, {NAME: pool}), uuid4().hex

    verdicts = [
        script.tell(NAME, "permit", id=call, tokens=9, lease_ms=1000, days=script.days(pool))[0] for _ in range(2)
    ]

    assert verdicts == ["granted", "granted"]
    assert (state(broker).held, broker.zcard(tokens_key(NAME))) == (1, 1)


# Throttling and pauses


def test_a_throttled_pool_is_paused_for_as_long_as_the_provider_said(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)

    gate.throttled(take(gate), 30)

    assert 29 < paused_for_s(broker) <= 33.5
    assert (denial(gate).reason, state(broker).reason) == (THROTTLED, THROTTLED)


def test_pauses_that_nobody_named_double_with_each_in_a_row(broker: Redis) -> None:
    gate, pauses = gate_of(broker, rpm=1_000_000), []

    for _ in range(6):
        gate.throttled(take(gate), None)
        pauses.append(paused_for_s(broker))
        lift_pause(broker)

    for pause, expected in zip(pauses, [60, 120, 240, 480, 600, 600], strict=True):
        assert expected - 2 < pause < expected * 1.1 + 1


def test_a_completion_ends_the_row_unless_its_call_is_older(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)
    older = take(gate)
    gate.throttled(take(gate), None)
    settle(gate, older)
    lift_pause(broker)
    gate.throttled(take(gate), None)
    assert paused_for_s(broker) > 118
    lift_pause(broker)

    settle(gate, take(gate))
    gate.throttled(take(gate), None)

    assert paused_for_s(broker) < 67


def test_calls_that_were_throttled_together_are_one_strike(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)

    for permit in [take(gate) for _ in range(8)]:
        gate.throttled(permit, None)

    assert paused_for_s(broker) < 67
    assert state(broker).factor == pytest.approx(0.7)


def test_a_throttled_pool_is_slowed_down_once_a_window_and_never_to_a_stop(broker: Redis) -> None:
    gate, factors = gate_of(broker, rpm=1_000_000, window_s=1000), []

    for lowered_ago_ms in (None, 10_000, 1_100_000, 1_100_000):
        lift_pause(broker)
        if lowered_ago_ms is not None:
            broker.hset(pool_key(NAME), "lowered_at", str(time.time() * 1000 - lowered_ago_ms))
        gate.throttled(take(gate), 1)
        factors.append(state(broker).factor)
    broker.hset(pool_key(NAME), mapping={"factor": "0.06", "lowered_at": "0"})
    lift_pause(broker)
    gate.throttled(take(gate), 1)

    assert factors == [0.7, 0.7, 0.49, 0.343]
    assert state(broker).factor == 0.05


def test_the_pace_follows_the_factor(broker: Redis) -> None:
    for limit in ("rpm", "tpm"):
        broker.flushall()
        gate = gate_of(broker, **{limit: 60})
        broker.hset(pool_key(NAME), "factor", "0.1")

        take(gate)

        assert denial(gate).wait_s == pytest.approx(60 / (0.9 * 60 * 0.1) - 0.03 * 60, abs=0.5)


@pytest.mark.parametrize(("windows", "factor"), [(0.5, 0.5), (1.5, 0.52), (5.5, 0.6), (1000, 1.0)], ids=str)
def test_the_pace_recovers_with_each_clean_window(broker: Redis, windows: float, factor: float) -> None:
    gate = gate_of(broker, rpm=1_000_000, window_s=100)
    since = time.time() * 1000 - windows * 100_000
    broker.hset(pool_key(NAME), mapping={"factor": "0.5", "factor_since": str(since)})

    take(gate)
    take(gate)

    assert state(broker).factor == pytest.approx(factor)


def test_a_pool_whose_day_is_spent_by_the_provider_rests_until_the_next(broker: Redis) -> None:
    pool = make_pool(rpm=1_000_000)
    gate = make_gate(broker, pool)

    gate.exhausted(take(gate))

    assert state(broker).paused_until == next_boundaries(pool, datetime.now(UTC))[0]
    assert denial(gate).reason == EXHAUSTED


def test_a_day_that_has_just_begun_may_not_have_begun_for_the_provider(broker: Redis) -> None:
    gate = make_gate(broker, make_pool(rpm=1_000_000, day=day_that_begins(-30)))

    gate.exhausted(take(gate))

    assert 58 < paused_for_s(broker) <= 60


def test_a_shorter_pause_does_not_end_a_longer_one(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)
    first, second = take(gate), take(gate)
    gate.throttled(first, 600)

    gate.throttled(second, 5)

    assert paused_for_s(broker) > 590


def test_a_pause_ends_by_itself(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)
    gate.throttled(take(gate), 1)
    assert denial(gate).reason == THROTTLED

    take_when_it_may(gate, longest_s=3)

    assert (state(broker).paused_until, state(broker).reason) == (None, None)


# Several pools


def test_the_pool_that_can_go_first_is_taken(broker: Redis) -> None:
    gate = make_gate(broker, make_pool("one", rpm=6), make_pool("two", rpm=3), make_pool("three", rpm=1))

    taken = [take(gate, "one", "two", "three").pool for _ in range(3)]
    denied = denial(gate, "one", "two", "three")

    assert taken == ["one", "two", "three"]
    assert (denied.pool, denied.reason) == ("one", "rpm")
    assert denied.wait_s < 10


def test_a_paused_pool_leaves_the_work_to_the_others(broker: Redis) -> None:
    gate = make_gate(broker, make_pool("one", rpm=1_000_000), make_pool("two", rpm=1_000_000))
    gate.throttled(take(gate, "one"), 60)

    assert {take(gate, "one", "two").pool for _ in range(3)} == {"two"}
    assert pool_states(broker, ["one", "two"])["two"].paused_until is None


def test_a_pool_that_the_file_lacks_is_an_error(broker: Redis) -> None:
    with pytest.raises(KeyError):
        ask(gate_of(broker, rpm=1), "another")


# Days


class Attempts:
    """What a database would know of a pool's day; `asked` holds the instants since when."""

    def __init__(self, requests: int = 0, *, exhausted: bool = False) -> None:
        self.told = Used(requests=requests, exhausted=exhausted)
        self.asked: list[datetime] = []

    def __call__(self, _pool: Pool, since: datetime) -> Used:
        """Tell it."""
        self.asked.append(since)
        return self.told


def test_a_new_day_is_granted_anew(broker: Redis) -> None:
    pool, attempts = make_pool(rpd=1, day=day_that_begins(3)), Attempts()
    gate = make_gate(broker, pool, used=attempts)
    begins = next_boundaries(pool, datetime.now(UTC))[0]
    settle(gate, take(gate))
    assert denial(gate).reason == SPENT

    permit = take_when_it_may(gate, longest_s=6)

    assert permit.granted_ms >= begins.timestamp() * 1000
    assert attempts.asked == [begins - timedelta(days=1), begins]
    assert (denial(gate).reason, state(broker).used_today) == (SPENT, 1)


def test_an_emptied_broker_does_not_grant_the_day_again(broker: Redis) -> None:
    attempts = Attempts(requests=3)
    gate = make_gate(broker, make_pool(rpd=5, share=1), used=attempts)
    take(gate)
    broker.flushall()
    attempts.told = Used(requests=4, exhausted=False)

    take(gate)

    assert denial(gate).reason == SPENT
    assert len(attempts.asked) == 2


def test_an_emptied_broker_does_not_forget_that_the_provider_said_enough(broker: Redis) -> None:
    gate = make_gate(broker, make_pool(rpd=500), used=Attempts(3, exhausted=True))

    assert denial(gate).reason == EXHAUSTED
    assert paused_for_s(broker) == pytest.approx(21 * 3600, abs=5)


def test_the_day_is_asked_for_once(broker: Redis) -> None:
    attempts = Attempts(requests=3)
    gate = make_gate(broker, make_pool(rpd=500), used=attempts)

    for _ in range(3):
        take(gate)

    assert (len(attempts.asked), state(broker).used_today) == (1, 6)


def test_calls_of_workers_without_the_limit_of_the_day_are_counted_too(broker: Redis) -> None:
    take(make_gate(broker, make_pool(rpd=500)))

    take(gate_of(broker, rpm=1_000_000))

    assert state(broker).used_today == 2


def test_who_counts_the_day_second_changes_nothing(broker: Redis) -> None:
    pool = make_pool(rpd=500)
    first = make_gate(broker, pool, used=Attempts(10))

    def overtaken(_pool: Pool, _since: datetime) -> Used:
        take(first)
        return Used(requests=0, exhausted=True)

    take(make_gate(broker, pool, used=overtaken))

    assert (state(broker).used_today, state(broker).paused_until) == (12, None)


def test_what_hinders_counting_the_day_is_raised_and_grants_nothing(broker: Redis) -> None:
    def away(_pool: Pool, _since: datetime) -> Used:
        raise ConnectionRefusedError

    gate = make_gate(broker, make_pool(rpd=500), used=away)

    with pytest.raises(ConnectionRefusedError):
        ask(gate)
    assert all_that_is_known(broker) == ({}, [], [])


@pytest.mark.parametrize("off_by", [timedelta(days=-3), timedelta(days=2)], ids=["behind", "ahead"])
def test_a_worker_with_another_date_is_denied(broker: Redis, off_by: timedelta) -> None:
    pool = make_pool(rpd=500)
    script = PoolScript(broker, {NAME: pool})
    days = [day + off_by for day in script.days(pool)]

    verdict, _, reason = script.tell(NAME, "permit", id=uuid4().hex, tokens=0, lease_ms=1000, days=days)

    assert (verdict, reason) == ("denied", "the clocks of broker and worker differ")


def test_a_worker_whose_clock_is_ahead_begins_no_new_day(broker: Redis) -> None:
    pool = make_pool(rpd=1, day=day_that_begins(60))
    script, gate = PoolScript(broker, {NAME: pool}), make_gate(broker, pool)
    take(gate)
    _, begins, following = script.days(pool)

    ahead = (begins, following, following + timedelta(days=1))
    verdict, _, reason = script.tell(NAME, "permit", id=uuid4().hex, tokens=0, lease_ms=1000, days=ahead)

    assert (verdict, reason) == ("denied", SPENT)


# The broker


def test_without_the_broker_nobody_may_call(tmp_path: Path) -> None:
    with (
        start_valkey(tmp_path / "valkey") as valkey,
        Redis.from_url(valkey.url, decode_responses=True, socket_timeout=2) as client,
    ):
        gate = gate_of(client, rpm=1_000_000, concurrency=5)
        permit = take(gate)
        valkey.child.kill()

        denied = denial(gate)
        settle(gate, permit)

    assert denied.reason.startswith("the broker does not answer (")
    assert denied.pool == NAME


def test_a_broker_that_lost_its_scripts_is_given_them_again(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1_000_000)
    permit = take(gate)
    broker.script_flush()

    settle(gate, permit)
    broker.script_flush()

    take(gate)
    assert state(broker).held == 1


def test_a_pool_that_was_never_used_is_not_paused(broker: Redis) -> None:
    assert pool_states(broker, ["one", "two"]) == dict.fromkeys(
        ["one", "two"], PoolState(paused_until=None, paused_s=0.0, reason=None, factor=1.0, used_today=None, held=0)
    )


# Waiting


def test_threads_wait_in_turns_and_do_not_hammer_the_broker(broker: Redis) -> None:
    gate = gate_of(broker, rpm=100, window_s=5)
    broker.config_resetstat()

    with ThreadPoolExecutor(32) as threads:
        outcomes = list(threads.map(lambda _: await_permit(gate, 10), range(32)))

    assert all(isinstance(outcome, Permit) for outcome in outcomes)
    calls = broker.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert calls < 32 * 3


def test_a_wait_that_is_too_long_is_told_at_once(broker: Redis) -> None:
    gate = gate_of(broker, rpm=1)
    take(gate)
    began = time.monotonic()

    outcome = await_permit(gate, 5)

    assert isinstance(outcome, Denied)
    assert time.monotonic() - began < 2


def test_who_was_not_reached_in_line_is_told_what_the_line_waits_for(broker: Redis) -> None:
    gate = gate_of(broker, concurrency=1)
    take(gate)

    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda _: await_permit(gate, 1), range(4)))

    assert {outcome.reason for outcome in outcomes if isinstance(outcome, Denied)} == {"concurrency"}
    assert len(outcomes) == 4


def test_a_worker_that_stops_waits_for_no_permit(broker: Redis) -> None:
    gate, stopping = gate_of(broker, rpm=1), Event()
    take(gate)

    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(await_permit, gate, 300, stopping=stopping) for _ in range(4)]
        time.sleep(0.3)
        began = time.monotonic()
        stopping.set()
        outcomes = [each.result(timeout=10) for each in waiting]

    assert all(isinstance(outcome, Denied) for outcome in outcomes)
    assert time.monotonic() - began < 3


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "1234567", "perché")] == [0, 1, 2, 2]
