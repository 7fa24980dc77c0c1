"""A real Flower beside a real worker and dispatcher: what it shows of a bundle, and what it refuses."""

import ast
import json
import os
import stat
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from redis import Redis
from sqlalchemy import Engine, text

from contract.broker import EVALUATE, create_celery
from contract.settings import Settings
from ops.local import engines
from ops.monitoring.flower import USER, password_path, start_flower
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Flower:
    """A Flower that answers, and the password that it made."""

    engine: engines.Engine
    password_file: Path

    @property
    def password(self) -> str:
        return self.password_file.read_text(encoding="utf-8")

    def ask(self, path: str, *, method: str = "GET", password: str | None = None) -> tuple[int, str]:
        """Status and text; with the right login unless another password is given, with none for an empty one."""
        login = b64encode(f"{USER}:{self.password if password is None else password}".encode()).decode()
        headers = {} if password == "" else {"Authorization": f"Basic {login}"}
        with closing(HTTPConnection(urlsplit(self.engine.url).netloc, timeout=10)) as connection:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def bundles(self, state: str = "SUCCESS") -> list[dict[str, Any]]:
        """The tasks that it has seen end so."""
        status, body = self.ask(f"/api/tasks?state={state}")
        assert status == 200
        return list(json.loads(body).values())


@pytest.fixture
def environment(settings: Settings, tmp_path: Path) -> dict[str, str]:
    """What names this test's database and broker to a child."""
    return {
        "BOTHWAYS_DATABASE_URL": settings.database_url.get_secret_value(),
        "BOTHWAYS_BROKER_URL": settings.broker_url.get_secret_value(),
        "BOTHWAYS_STATE": str(tmp_path / "state"),
    }


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """A worker for simulated models."""
    options = ["--provider", "simulated", "--slots", "2", "--grace", "5"]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ops.cli", "worker", *options],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        yield
        process.kill()
        process.wait()


@pytest.fixture
def flower(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flower]:
    """Flower, started as the stack starts it, by somebody whose own settings of Flower would open it."""
    monkeypatch.setenv("FLOWER_UNAUTHENTICATED_API", "true")
    monkeypatch.setenv("FLOWER_URL_PREFIX", "elsewhere")
    monkeypatch.setenv("APP", "another_application")
    monkeypatch.setenv("BROKER_URL", "redis://127.0.0.1:1/0")
    state = tmp_path / "state"
    with start_flower(state, environment) as engine:
        yield Flower(engine=engine, password_file=password_path(state))


@pytest.fixture
def dispatcher(engine: Engine, broker_url: str) -> Iterator[None]:
    """A dispatcher that leads."""
    stopping = threading.Event()
    with Redis.from_url(broker_url, decode_responses=True) as broker:
        leading = threading.Thread(target=Dispatcher(engine, create_celery(broker_url), broker).run, args=(stopping,))
        leading.start()
        yield
        stopping.set()
        leading.join()


def await_that(it_is_so: Callable[[], bool]) -> None:
    """Wait, for twenty seconds at most."""
    deadline = time.monotonic() + 20
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def shown(bundle: dict[str, Any]) -> dict[str, Any]:
    """What Flower shows as the arguments of a bundle."""
    arguments: dict[str, Any] = ast.literal_eval(bundle["kwargs"])
    return arguments


def summary(bundle: dict[str, Any]) -> Counter[str]:
    """How often each word stands in the result: "answered 3 invalid 1"."""
    words = str(ast.literal_eval(bundle["result"])).split()
    return Counter({what: int(times) for what, times in zip(words[::2], words[1::2], strict=True)})


@pytest.mark.usefixtures("worker", "dispatcher")
def test_every_bundle_shows_study_model_dataset_jobs_and_its_summary(
    flower: Flower, engine: Engine, broker_url: str, tmp_path: Path
) -> None:
    model = {"name": "sim", "provider": "simulated", "options": {"invalid_rate": 0.5}}
    enqueue(engine, read_study(write_study(tmp_path / "study", items=9, models=[model])))

    await_that(lambda: sum(shown(bundle)["jobs"] for bundle in flower.bundles()) == 18)
    bundles = flower.bundles()
    with engine.connect() as connection:
        jobs = connection.execute(text("SELECT id, queue, state FROM job")).all()
    states = Counter(job.state for job in jobs)
    message = {"job_ids": [job.id for job in jobs]}
    again = create_celery(broker_url).send_task(
        EVALUATE, kwargs=message, queue=jobs[0].queue, kwargsrepr="{'jobs': 18}"
    )
    await_that(lambda: len(flower.bundles()) == len(bundles) + 1)

    assert [bundle["traceback"] for bundle in flower.bundles("FAILURE")] == []
    for bundle in bundles:
        size = summary(bundle).total()
        assert shown(bundle) == {"study": "trial", "model": "sim", "dataset": "capitals", "jobs": size}
        assert (bundle["name"], bundle["args"]) == (EVALUATE, "()")
    assert sum((summary(bundle) for bundle in bundles), Counter()) == states
    assert {"answered", "invalid"} == set(states)
    (duplicate,) = [bundle for bundle in flower.bundles() if bundle["uuid"] == again.id]
    assert duplicate["result"] == "'nothing to do'"


def test_nobody_reads_without_the_password_and_nobody_changes_anything_with_it(flower: Flower, broker_url: str) -> None:
    pages = ["/", "/tasks", "/broker", "/api/tasks", "/api/workers", "/api/queues/length"]
    operations = [
        *("worker/shutdown/w1", "worker/pool/grow/w1", "worker/queue/cancel-consumer/w1?queue=any"),
        *(f"task/{verb}/{EVALUATE}" for verb in ("apply", "async-apply", "send-task", "rate-limit")),
        *("task/revoke/an-id", "task/abort/an-id"),
    ]

    assert {flower.ask(page, password="")[0] for page in pages} == {401}
    assert {flower.ask(page, password=flower.password[:-1])[0] for page in pages} == {401}
    assert {flower.ask(page)[0] for page in pages} == {200}
    assert {flower.ask(f"/api/{operation}", method="POST")[0] for operation in operations} == {403}
    assert {flower.ask(f"/api/{operation}", method="POST", password="")[0] for operation in operations} == {401}
    with Redis.from_url(broker_url) as broker:
        assert list(broker.scan_iter("bothways:bothways.*")) == []


def test_the_passwords_stand_in_no_process_list_and_in_no_log(flower: Flower, broker_url: str) -> None:
    flower.ask("/tasks", password="")
    flower.ask("/tasks")
    guard = psutil.Process(flower.engine.child.guard.pid)
    processes = [guard, *guard.children(recursive=True)]

    arguments = [argument for process in processes for argument in process.cmdline()]
    log = flower.engine.child.log.read_text(encoding="utf-8")
    variables = [value for process in processes for value in process.environ().values()]

    assert len(processes) == 2
    assert str(flower.password_file) in arguments
    assert "Visit me at" in log
    assert not [place for place in [*arguments, log, *variables] if flower.password in place]
    broker_password = urlsplit(broker_url).password
    assert broker_password is not None
    assert not [place for place in [*arguments, log] if broker_password in place]
    assert stat.S_IMODE(flower.password_file.stat().st_mode) == 0o600


def test_the_password_is_made_once_and_flower_ends_in_good_order(
    flower: Flower, environment: dict[str, str], tmp_path: Path
) -> None:
    first = flower.password

    flower.engine.stop()
    with start_flower(tmp_path / "state", environment):
        second = flower.password

    assert flower.engine.child.code == 0
    assert second == first
