"""What a GPU host finds in Postgres and at its server: which queue it takes from, and what it tells of itself."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from contract.models import SimulatedModel
from tests.fake_http import serving
from tests.fake_ollama import FakeOllama, digest, fake_ollama
from tests.jobs import change, plan
from tests.workers import evaluator_on
from worker.hosts import GpuHost, Stock
from worker.providers.ollama_host import OllamaHost
from worker.providers.simulated import SimulatedProvider

FORMAT = [{"format": "closed", "sampling": {"temperature": 0.7, "max_tokens": 8, "seed": 1}}]
A, B = "ollama.a:latest@4096", "ollama.b:latest@4096"


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """A server with the models a and b."""
    with fake_ollama() as server:
        server.tags = {f"{tag}:latest": digest(tag) for tag in "ab"}
        yield server


@pytest.fixture
def stock(server: FakeOllama) -> Iterator[Stock]:
    """What that server has; less patience than usual."""
    host = OllamaHost(server.base_url)
    yield Stock(host, patience=0.02)
    host.close()


def host_with(engine: Engine, stock: Stock) -> GpuHost:
    """A host that has seen what its server has, and holds nothing."""
    stock.look()
    evaluator = evaluator_on(engine, SimulatedProvider(SimulatedModel(provider="simulated", name="s"), ledger=None))
    return GpuHost(engine, stock, evaluator.access.contacts, evaluator.holds, worker="gpu1")


def two_models(engine: Engine, folder: Path, **changes: Any) -> int:  # noqa: ANN401
    """A study of a and b, of which a is to be asked first."""
    models = [{"name": tag, "provider": "ollama", "model": tag} for tag in "ab"]
    study = plan(engine, folder, models=models, formats=FORMAT, **changes)
    change(engine, "UPDATE job SET planned = false WHERE queue = :queue", queue=B)
    return study


@pytest.mark.parametrize(
    ("left", "served"),
    [
        ("state = 'answered', finished_at = now()", []),
        ("state = 'pending', not_before = now() + interval '20 s'", [A]),
        ("state = 'pending', not_before = now() + interval '60 s'", []),
        ("state = 'pending', not_before = 'infinity'", []),
        ("state = 'running', lease_until = now() + interval '60 s'", [A]),
        ("state = 'queued', lease_until = now() + interval '60 s'", [A]),
        ("state = 'pending', planned = false", []),
    ],
    ids=["done", "soon", "later", "for a parent", "with another host", "queued", "not planned"],
)
def test_a_model_is_kept_where_jobs_of_it_may_come_soon(
    engine: Engine, stock: Stock, tmp_path: Path, left: str, served: list[str]
) -> None:
    two_models(engine, tmp_path)
    host = host_with(engine, stock)
    assert host.choose([A, B]) == [A]
    change(engine, "UPDATE job SET planned = true WHERE queue = :queue", queue=B)

    change(engine, f"UPDATE job SET {left} WHERE queue = :queue", queue=A)  # noqa: S608 - this page's own

    assert host.choose([A, B]) == served
    assert host.choose([A, B]) == (served or [B])


def test_a_model_is_kept_for_jobs_whose_parents_are_being_asked(engine: Engine, stock: Stock, tmp_path: Path) -> None:
    two_models(engine, tmp_path)
    host = host_with(engine, stock)
    host.choose([A, B])
    change(engine, "UPDATE job SET planned = true WHERE queue = :queue", queue=B)
    change(
        engine,
        """UPDATE job SET not_before = 'infinity', parent = (SELECT min(id) FROM job WHERE queue = :b)
           WHERE queue = :a""",
        a=A,
        b=B,
    )
    change(
        engine,
        """UPDATE job SET state = 'running', lease_until = now() + interval '60 s'
           WHERE id = (SELECT min(id) FROM job WHERE queue = :queue)""",
        queue=B,
    )

    assert host.choose([A, B]) == [A]


def test_until_its_model_is_warm_a_host_takes_one_bundle(engine: Engine, stock: Stock, tmp_path: Path) -> None:
    two_models(engine, tmp_path)
    host = host_with(engine, stock)

    host.choose([A, B])

    assert host.station.slots == 1
    assert host.station.models == ("a:latest", "b:latest")
    assert (host.serves(A), host.serves(B)) == (True, False)


def test_a_server_that_does_not_answer_keeps_its_models_for_a_while(stock: Stock, server: FakeOllama) -> None:
    stock.look()

    server.behaves = "other-500"
    stock.look()
    kept = dict(stock.digests)
    time.sleep(0.7)
    stock.look()

    assert set(kept) == {"a:latest", "b:latest"}
    assert stock.digests == {}
    assert stock.fault is not None
    assert stock.fault.startswith(f"Ollama at {stock.label}: HTTP 500")


def test_a_server_that_comes_later_is_seen() -> None:
    with serving(FakeOllama()) as gone:
        port, host = gone.server_port, OllamaHost(gone.base_url)
    stock = Stock(host, patience=0.02)
    stopping = threading.Event()
    looking = threading.Thread(target=stock.keep_looking, args=(stopping,))
    looking.start()
    try:
        back = FakeOllama(port)
        back.tags = {"a:latest": digest("a")}
        with serving(back):
            deadline = time.monotonic() + 10
            while not stock.digests:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        stopping.set()
        looking.join()
        host.close()

    assert stock.digests == {"a:latest": digest("a")}
