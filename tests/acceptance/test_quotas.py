"""Quotas through the whole system: worker processes, a dispatcher, Postgres, Valkey, and a provider that counts itself.

BOTHWAYS_QUOTA_WINDOWS sets how many windows are measured, after one of warm-up; with `-s` their figures are told.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from redis import Redis

from contract.pool_state import pool_states
from ops.local.valkey import start_valkey
from ops.progress import read_progress
from tests.acceptance.pooled import Pooled, end, fullest, gemini, pooled
from tests.acceptance.test_study_end_to_end import await_standstill
from tests.builders import item_rows
from tests.fake_gemini import FakeGemini, fake_gemini
from tests.gemini_quota import Arrival, Quota
from tests.jobs import await_that
from worker.pools import EXHAUSTED

WINDOWS = int(os.environ.get("BOTHWAYS_QUOTA_WINDOWS", "3"))
WINDOW_S = 5.0
WORKERS, SLOTS = 4, 16
LATENCY_S = 0.3

REQUESTS, OF_EACH, TOKENS = 100, 50, 20_000
CLAIMED, TRUE = 60, 30
QUOTAS = {
    "requests": Quota(requests=REQUESTS, window_s=WINDOW_S),
    "tokens": Quota(tokens=TOKENS, window_s=WINDOW_S),
    "pair": Quota(requests=OF_EACH, window_s=WINDOW_S),
    "claimed": Quota(requests=TRUE, window_s=WINDOW_S),
    "slow": Quota(requests=6, window_s=60.0),
}
POOLS_OF = {name: (name,) for name in QUOTAS} | {"pair": ("one", "two")}
BUNDLES = {"size": 16, "budget_s": 60}
KEPT = ("requests", "tokens", "pair")
"""The models whose pools know their quota."""

pytestmark = pytest.mark.xdist_group("quota")  # one process measures for all tests of this page


def pool(name: str, key: str = "KEY_OF_ONE", **limits: object) -> dict[str, object]:
    """A pool of the fake Gemini, with windows of five seconds."""
    return {"name": name, "provider": "gemini", "api_key_env": key, "window_s": WINDOW_S} | limits


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of some windows: the fleet, which has ended after so many seconds, and the server of each model."""

    fleet: Pooled
    servers: dict[str, FakeGemini]
    lasted_s: float

    def arrivals(self, model: str) -> list[Arrival]:
        """What arrived in the windows that are measured: the last ones."""
        arrived = self.servers[model].meter.arrivals
        return [arrival for arrival in arrived if arrival.at_s > arrived[-1].at_s - WINDOWS * WINDOW_S]

    def used(self, model: str) -> dict[str, float]:
        """By key, how much of the quota was used."""
        quota, spent = QUOTAS[model], dict.fromkeys(sorted({arrival.key for arrival in self.arrivals(model)}), 0)
        for arrival in self.arrivals(model):
            spent[arrival.key] += _weight(model, arrival)
        return {key: amount / (WINDOWS * (quota.requests or quota.tokens or 1)) for key, amount in spent.items()}

    def fullest(self, model: str) -> dict[str, int]:
        """By key, what the fullest five seconds of all held."""
        accepted = self.servers[model].meter.accepted
        return {
            key: fullest(
                [arrival for arrival in accepted if arrival.key == key],
                WINDOW_S,
                lambda arrival: _weight(model, arrival),
            )
            for key in sorted({arrival.key for arrival in accepted})
        }


def _weight(model: str, arrival: Arrival) -> int:
    return arrival.tokens if QUOTAS[model].tokens else 1


@pytest.fixture(scope="module")
def measured(module_database_url: str, valkey_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """Four workers have asked all models for the windows and the warm-up, and were told to stop."""
    with Redis.from_url(valkey_url) as broker:
        broker.flushall()
    pools = [
        pool("requests", rpm=REQUESTS),
        pool("tokens", tpm=TOKENS),
        pool("one", rpm=OF_EACH),
        pool("two", key="KEY_OF_TWO", rpm=OF_EACH),
        pool("claimed", rpm=CLAIMED),
        pool("slow", rpm=6, window_s=60),
    ]
    with ExitStack() as stack:
        servers = {model: stack.enter_context(fake_gemini(quota=quota)) for model, quota in QUOTAS.items()}
        folder = tmp_path_factory.mktemp("fleet")
        fleet = stack.enter_context(
            pooled(folder, database_url=module_database_url, broker_url=valkey_url, pools=pools)
        )
        for model, server in servers.items():
            server.latency_s = LATENCY_S
            fleet.study(gemini(model, server.base_url, *POOLS_OF[model]), items=_items(), bundles=BUNDLES)
        workers = fleet.start(workers=WORKERS, slots=SLOTS)
        began = time.monotonic()
        await_that(lambda: all(server.meter.arrivals for server in servers.values()), seconds=60)
        time.sleep((1 + WINDOWS) * WINDOW_S)
        assert end(workers) == [0] * WORKERS
        yield Measured(fleet=fleet, servers=servers, lasted_s=time.monotonic() - began)


def _items() -> list[dict[str, object]]:
    """Questions about paragraphs of many lengths, more of them than can be asked."""
    lengths = random.Random(1)
    count = (WINDOWS + 4) * REQUESTS // 2
    return [
        row | {"context": " ".join(f"word{lengths.randrange(99)}" for _ in range(lengths.choice((20, 60, 200, 600))))}
        for row in item_rows(count)
    ]


@pytest.mark.parametrize("model", KEPT)
def test_a_provider_whose_quota_is_known_never_has_to_refuse(measured: Measured, model: str) -> None:
    sys.stdout.write(json.dumps({model: {"used": measured.used(model), "fullest": measured.fullest(model)}}) + "\n")

    assert measured.servers[model].meter.refused == []


@pytest.mark.parametrize(("model", "keys"), [("requests", 1), ("tokens", 1), ("pair", 2)])
def test_of_what_each_project_is_allowed_most_is_used(measured: Measured, model: str, keys: int) -> None:
    used = measured.used(model)

    assert len(used) == keys
    assert all(0.85 <= part <= 0.95 for part in used.values()), used


@pytest.mark.parametrize("model", KEPT)
def test_every_call_is_kept_once_with_the_pool_that_it_went_through(measured: Measured, model: str) -> None:
    attempts = measured.fleet.attempts(f"gemini.{model}")

    calls = len(measured.servers[model].meter.arrivals)
    assert len(attempts) + measured.fleet.canaries(*POOLS_OF[model]) == calls
    assert {attempt["pool"] for attempt in attempts} == set(POOLS_OF[model])
    assert {attempt["outcome"] for attempt in attempts} == {"answered"}
    assert len({attempt["job"] for attempt in attempts}) == len(attempts)
    assert measured.fleet.charged(f"gemini.{model}") == 0


def test_a_quota_smaller_than_the_file_says_is_found_with_few_refusals_that_no_job_is_charged_with(
    measured: Measured,
) -> None:
    meter = measured.servers["claimed"].meter
    attempts = measured.fleet.attempts("gemini.claimed")
    refused = [attempt for attempt in attempts if attempt["outcome"] != "answered"]
    sys.stdout.write(json.dumps({"claimed": {"refused": len(meter.refused), "accepted": len(meter.accepted)}}) + "\n")

    assert 0 < len(meter.refused) <= 0.25 * len(meter.accepted)
    assert {attempt["error_kind"] for attempt in refused} == {"throttled"}
    assert len(refused) == len(meter.refused)
    assert measured.fleet.charged("gemini.claimed") == 0
    answered = measured.fleet.stage.count("queue = 'gemini.claimed' AND state = 'answered'")
    assert answered == len(attempts) - len(refused)


def test_jobs_that_a_slow_pool_lets_wait_do_not_travel_in_circles(measured: Measured) -> None:
    (row,) = measured.fleet.stage.rows("SELECT sum(claim) AS claims FROM job WHERE queue = 'gemini.slow'")
    sys.stdout.write(json.dumps({"slow": {"claims": row["claims"], "seconds": measured.lasted_s}}) + "\n")

    assert measured.servers["slow"].meter.refused == []
    assert measured.fleet.charged("gemini.slow") == 0
    assert row["claims"] < 5 * measured.lasted_s


def test_a_spent_day_lets_the_jobs_wait_untouched_until_the_next_one_begins(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    zone = ZoneInfo("Asia/Kathmandu")
    boundary = datetime.now(zone).replace(microsecond=0) + timedelta(seconds=36)
    day = {"zone": zone.key, "begins": f"{boundary:%H:%M:%S}"}
    pools = [pool("daily", rpm=100, day=day)]
    with (
        fake_gemini(quota=Quota(per_day=12)) as server,
        pooled(tmp_path, database_url=database_url, broker_url=broker_url, pools=pools) as fleet,
    ):
        server.latency_s = 0.1
        fleet.study(gemini("daily", server.base_url, "daily"), items=11)
        fleet.start(workers=1, slots=4)
        await_that(lambda: bool(server.meter.refused), seconds=30)
        await_that(lambda: bool(fleet.stage.rows("SELECT FROM worker_heartbeat WHERE resting <> '{}'")))
        await_standstill(lambda: len(fleet.stage.attempts()), seconds=1)
        state, before, refused = pool_states(fleet.broker, ["daily"])["daily"], _jobs(fleet), len(server.meter.refused)
        status = fleet.stage.start("status", "daily")
        (waiting,) = read_progress(fleet.stage.engine, "daily").waiting
        status.end()
        after = _jobs(fleet)
        left_s = (boundary - datetime.now(zone)).total_seconds()
        assert left_s > 1, "this machine is too slow for the boundary that was chosen"
        time.sleep(left_s - 0.5)
        assert len(server.meter.refused) == refused
        server.meter.new_day()
        await_that(lambda: fleet.stage.states() == {"answered": 22}, seconds=10)

        sys.stdout.write(json.dumps({"daily": {"refused": refused}}) + "\n")
        assert (state.paused_until, state.reason) == (boundary, EXHAUSTED)
        assert 1 <= refused <= 4
        until = f"until {boundary.astimezone(ZoneInfo('UTC')):%H:%M:%S} UTC"
        assert waiting.reason == f"gemini.daily rests {until}: pool daily: {EXHAUSTED}"
        assert f"{until}: pool daily: {EXHAUSTED}" in status.out.read_text(encoding="utf-8")
        assert before == after
        assert {row["state"] for row in before} <= {"answered", "queued", "pending"}
        assert fleet.charged("gemini.daily") == 0
        kinds = [attempt["error_kind"] for attempt in fleet.attempts("gemini.daily")]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == {None: 22, "exhausted": refused}


def _jobs(fleet: Pooled) -> list[dict[str, object]]:
    return fleet.stage.rows("SELECT id, state, claim, losses, calling, not_before FROM job ORDER BY id")


def test_a_broker_that_is_emptied_and_killed_does_not_grant_the_day_again(database_url: str, tmp_path: Path) -> None:
    begun = datetime.now(ZoneInfo("UTC")) - timedelta(hours=3)
    pools = [pool("counted", rpd=40, day={"zone": "UTC", "begins": f"{begun:%H:%M:%S}"})]
    with (
        start_valkey(tmp_path) as valkey,
        fake_gemini() as server,
        pooled(tmp_path, database_url=database_url, broker_url=valkey.url, pools=pools) as fleet,
    ):
        server.latency_s = 0.3
        fleet.study(gemini("counted", server.base_url, "counted"), items=40)
        fleet.start(workers=1, slots=4)
        await_that(lambda: len(server.meter.accepted) >= 8)
        fleet.broker.flushall()
        await_that(lambda: len(server.meter.accepted) >= 16)
        valkey.restart()
        await_that(lambda: len(server.meter.accepted) >= 24)
        valkey.restart(lose_data=True)
        await_that(lambda: pool_states(fleet.broker, ["counted"])["counted"].paused_until is not None, seconds=30)
        await_standstill(lambda: len(server.meter.accepted), seconds=1)

        sys.stdout.write(json.dumps({"counted": len(server.meter.accepted)}) + "\n")
        # Calls between their permit and the note that they begin are unknown to Postgres: one a slot at most.
        assert 30 <= len(server.meter.accepted) <= 36 + 4
        assert len(server.meter.accepted) == len(fleet.attempts("gemini.counted")) + fleet.canaries("counted")
        assert fleet.charged("gemini.counted") == 0


@pytest.mark.long
def test_the_place_of_a_worker_that_was_killed_in_a_call_is_free_when_its_lease_ends(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    pools = [{"name": "places", "provider": "simulated", "concurrency": 2}]
    model = {"name": "sim", "provider": "simulated", "pools": ["places"], "timeout_s": 2, "options": {"latency_s": 1.9}}
    with pooled(
        tmp_path, database_url=database_url, broker_url=broker_url, pools=pools, BOTHWAYS_LEASE_MARGIN_S="5"
    ) as fleet:
        fleet.study(model, items=2, bundles={"size": 1, "budget_s": 2})
        (killed,) = fleet.start(workers=1, slots=4, provider="simulated")
        await_that(lambda: _held(fleet) == 2)
        killed.process.kill()
        killed.end()
        died, held = time.time(), _held(fleet)
        fleet.start(workers=1, slots=4, provider="simulated")
        await_that(lambda: fleet.stage.states() == {"answered": 4}, seconds=40)

        first = min(at for at in _asked_at(fleet) if at > died)
        sys.stdout.write(json.dumps({"places": {"free after": first - died}}) + "\n")
        assert held == 2
        assert first - died > 4.5  # a lease is seven seconds, and no call had begun more than two before


def _held(fleet: Pooled) -> int:
    return pool_states(fleet.broker, ["places"])["places"].held


def _asked_at(fleet: Pooled) -> list[float]:
    return [attempt["started_at"].timestamp() for attempt in fleet.attempts("simulated.sim")]
