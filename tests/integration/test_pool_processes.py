"""Four processes share a pool: the provider, who counts for itself, never has to refuse, and the quota is used.

BOTHWAYS_QUOTA_WINDOWS sets how many windows are measured, after one of warm-up.
"""

import json
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.client import HTTPConnection

import pytest
from redis import Redis

from contract.pools import Pool
from tests.fake_quota import Arrival, FakeQuota, Quota, fake_quota
from worker.pools import Denied, Gate, Used

WINDOWS = int(os.environ.get("BOTHWAYS_QUOTA_WINDOWS", "4"))
WINDOW_S = 5.0
PROCESSES = 4
THREADS_A_POOL = 4
REQUESTS = 60
TOKENS = 6000

POOLS = {
    "requests": Pool(name="requests", provider="simulated", rpm=REQUESTS, window_s=WINDOW_S),
    "tokens": Pool(name="tokens", provider="simulated", tpm=TOKENS, window_s=WINDOW_S),
}
QUOTAS = {
    "/requests": Quota(window_s=WINDOW_S, requests=REQUESTS),
    "/tokens": Quota(window_s=WINDOW_S, tokens=TOKENS),
}

pytestmark = pytest.mark.xdist_group("quota")  # one process measures for all tests of this page


def ask_on(broker_url: str, port: int, ends_at: float) -> None:
    """One process: some threads a pool, each of which asks whenever the gate lets it, until `ends_at` (Unix time)."""
    over = threading.Event()
    with (
        Redis.from_url(broker_url, decode_responses=True, socket_timeout=10) as broker,
        ThreadPoolExecutor(2 * THREADS_A_POOL) as threads,
    ):
        gate = Gate(broker, POOLS, never_used)
        asking = [threads.submit(_ask, gate, name, port, over) for name in POOLS for _ in range(THREADS_A_POOL)]
        time.sleep(max(0.0, ends_at - time.time()))
        over.set()
        for each in asking:
            each.result()


def never_used(_pool: Pool, _since: datetime) -> Used:
    """What a database without attempts would say."""
    return Used(requests=0, exhausted=False)


def _ask(gate: Gate, name: str, port: int, over: threading.Event) -> None:
    """Ask with prompts of many sizes, which are estimated ten per cent too high or too low."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    sizes = random.Random(f"{os.getpid()} {threading.get_ident()}")
    while not over.is_set():
        tokens = sizes.choice((20, 50, 100, 200, 400))
        estimate = round(tokens * sizes.uniform(0.9, 1.1))
        permit = gate.await_permit(
            [name], tokens_in=estimate, tokens_out=0, lease_s=30, longest_s=2 * WINDOW_S, stopping=over
        )
        if isinstance(permit, Denied):
            continue
        connection.request("POST", f"/{name}", json.dumps({"tokens": tokens}))
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if answer.status == 200:
            gate.settle(permit, tokens_in=told["tokens"], tokens_out=0)
        else:
            gate.throttled(permit, 1)
    connection.close()


@pytest.fixture(scope="module")
def asked(valkey_url: str) -> Iterator[FakeQuota]:
    """The server after all processes have asked for the windows and the warm-up."""
    with Redis.from_url(valkey_url) as broker:
        broker.flushall()
    with fake_quota(QUOTAS) as server:
        ends_at = time.time() + 3 + (1 + WINDOWS) * WINDOW_S
        spawning = multiprocessing.get_context("spawn")
        processes = [
            spawning.Process(target=ask_on, args=(valkey_url, server.server_port, ends_at)) for _ in range(PROCESSES)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * PROCESSES
        yield server


def measured(server: FakeQuota, name: str) -> list[Arrival]:
    """What arrived in the windows that are measured: the last ones."""
    arrivals = server.arrivals[f"/{name}"]
    ends = max(arrival.at for arrival in arrivals)
    return [arrival for arrival in arrivals if arrival.at > ends - WINDOWS * WINDOW_S]


@pytest.mark.parametrize("name", POOLS)
def test_the_provider_never_has_to_refuse(asked: FakeQuota, name: str) -> None:
    arrivals = asked.arrivals[f"/{name}"]

    assert len(arrivals) > WINDOWS
    assert [arrival for arrival in arrivals if not arrival.allowed] == []


def test_of_the_requests_that_are_allowed_most_are_made(asked: FakeQuota) -> None:
    used = len(measured(asked, "requests")) / (WINDOWS * REQUESTS)

    assert 0.85 <= used <= 0.95


def test_of_the_tokens_that_are_allowed_most_are_used(asked: FakeQuota) -> None:
    used = sum(arrival.tokens for arrival in measured(asked, "tokens")) / (WINDOWS * TOKENS)

    assert 0.85 <= used <= 0.95
