"""The system as services: it starts in any order, loses nothing when a worker is cut off, and keeps its doors shut.

The tests run in this order on one system, from nothing to its reports. Run by `make compose-test`.
"""

import json
import socket
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError

from tests.containers.conftest import FLOWER_PASSWORD, ITEMS, PASSWORD
from tests.containers.engine import ROOT, TAG, Project, engine, run, taken_down
from tests.fake_http import serving
from tests.fake_ollama import FakeOllama, digest

pytestmark = pytest.mark.containers

READY_S = 120.0
SEEN_S = 30.0
OURS = ("producer", "worker-api", "flower")


def await_that(what: Callable[[], bool], within_s: float = READY_S) -> None:
    """Wait until it is so."""
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(1)


def told(system: Project, *command: str) -> Any:  # noqa: ANN401 - whatever the command has in its JSON
    """What a command says in the dispatcher's container, for programs."""
    return json.loads(system.exec("producer", "bothways", *command, "--json"))


def answered(folder: Path) -> set[str]:
    """The calls that simulated models have answered, as they themselves keep account."""
    ledger = folder / "ledger/calls.jsonl"
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    return {line["call"] for line in map(json.loads, lines) if line["event"] == "answered"}


def connected(system: Project, password: str) -> psycopg.Connection[Any]:
    """Postgres as a GPU host reaches it, through its published port."""
    return psycopg.connect(
        host="127.0.0.1",
        port=system.variables["BOTHWAYS_POSTGRES_PORT"],
        user="bothways",
        dbname="bothways",
        password=password,
        autocommit=True,
    )


def test_programs_that_come_first_wait_for_what_they_need_and_say_so(system: Project) -> None:
    system.compose("up", "-d", "--no-build", "--no-deps", "producer", "worker-api")

    await_that(lambda: "waiting: Postgres does not answer at postgres:5432" in system.logs("producer"))
    await_that(lambda: "waiting: Postgres does not answer at postgres:5432" in system.logs("worker-api"))


def test_with_the_rest_all_of_it_comes_up_and_is_well(system: Project) -> None:
    system.compose("up", "-d", "--no-build")

    await_that(lambda: system.logs("worker-api").count("ready.") == 2)
    await_that(lambda: len(told(system, "hosts")) == 2)
    await_that(lambda: _well(system, "producer", "dispatcher."))
    await_that(lambda: _well(system, "worker-api", "api."))


def _well(system: Project, service: str, name: str) -> bool:
    """Whether the service's own check finds `name`; its first beat may come a little after the container."""
    try:
        return name in system.exec(service, "bothways", "health")
    except AssertionError:
        return False


def test_a_worker_that_is_cut_off_and_stopped_during_a_study_costs_no_result(system: Project) -> None:
    system.bothways("run", "simulated.yaml")
    await_that(lambda: told(system, "status", "simulated")[0]["finished"] > 20)

    victim = system.containers("worker-api")[0]
    run([engine(), "network", "disconnect", system.network, victim])
    time.sleep(5)  # it asks on, and nobody hears it
    run([engine(), "stop", "-t", "3", victim])
    system.bothways("run", "simulated.yaml", "--wait")

    (end,) = told(system, "status", "simulated")
    assert (end["planned"], end["finished"], end["done"]) == (2 * ITEMS, 2 * ITEMS, True)
    with closing(connected(system, PASSWORD)) as postgres:
        rows = postgres.execute("""
            SELECT count(*) FILTER (WHERE job.state IN ('answered', 'invalid')),
                   count(*) FILTER (WHERE EXISTS (SELECT FROM attempt WHERE attempt.job = job.id)),
                   (SELECT count(DISTINCT worker) FROM attempt)
            FROM job
        """).fetchone()
    assert rows == (2 * ITEMS, 2 * ITEMS, 2)


def test_a_real_model_is_asked_through_the_containers_to_its_report(system: Project, folder: Path) -> None:
    system.bothways("run", "small.yaml", "--limit", "10", "--wait")
    system.bothways("report", "small")

    report = json.loads((folder / "report" / "small" / "report.json").read_text(encoding="utf-8"))
    assert report["study"]["finished"] == report["study"]["planned"] == 20
    assert (folder / "report" / "small" / "index.html").is_file()
    with closing(connected(system, PASSWORD)) as postgres:
        said = postgres.execute("""
            SELECT count(*) FROM attempt JOIN deployment ON deployment.id = attempt.deployment
            WHERE deployment.endpoint LIKE '%llm:8080%' AND attempt.tokens_out > 0
        """).fetchone()
    assert said is not None
    assert said[0] >= 20


def test_the_image_of_analysis_makes_the_report_too(system: Project, folder: Path) -> None:
    variables = {
        "BOTHWAYS_DATABASE_URL": "postgresql+psycopg://bothways@postgres:5432/bothways",
        "BOTHWAYS_BROKER_URL": "redis://valkey:6379/0",
        "BOTHWAYS_PASSWORD": PASSWORD,
    }
    given = [part for name, value in variables.items() for part in ("-e", f"{name}={value}")]
    place = ["--network", system.network, "-v", f"{folder}:/work", "--user", "0"]
    run([engine(), "run", "--rm", *place, *given, f"bothways-analysis:{TAG}", "report", "simulated", "--out", "again"])

    assert (folder / "again" / "index.html").is_file()


def test_a_gpu_host_is_seen_on_the_control_machine_within_half_a_minute(system: Project) -> None:
    ports = {name: system.variables[f"BOTHWAYS_{name}_PORT"] for name in ("POSTGRES", "VALKEY")}
    with serving(FakeOllama()) as ollama:
        ollama.tags = {"llama3.1:8b": digest("llama")}
        port = ollama.server_port
        host = Project(
            name=f"{system.name}-gpu",
            files=(ROOT / "ops/docker/gpu-host.yml",),
            variables={
                "BOTHWAYS_CONTROL": "127.0.0.1",
                "BOTHWAYS_PASSWORD": PASSWORD,
                "BOTHWAYS_SLOTS": "2",
                "BOTHWAYS_TAG": TAG,
                "BOTHWAYS_OLLAMA_ADDRESS": f"127.0.0.1:{port}",
                "BOTHWAYS_DATABASE_URL": f"postgresql+psycopg://bothways@127.0.0.1:{ports['POSTGRES']}/bothways",
                "BOTHWAYS_BROKER_URL": f"redis://127.0.0.1:{ports['VALKEY']}/0",
            },
        )
        with taken_down(host):
            host.compose("up", "-d", "--no-build", "--no-deps", "worker")
            await_that(lambda: _hosts(system) == [f"{socket.gethostname()}:{port}"], SEEN_S)
            system.bothways("run", "on-ollama.yaml", "--limit", "5", "--wait")
            assert told(system, "status", "on-ollama")[0]["done"]
    await_that(lambda: _hosts(system) == [], SEEN_S)


def _hosts(system: Project) -> list[str]:
    return [worker["endpoint"] for worker in told(system, "hosts") if worker["endpoint"] is not None]


@pytest.mark.parametrize("password", ["", "wrong"])
def test_neither_postgres_nor_the_broker_lets_anybody_in_without_the_password(system: Project, password: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        connected(system, password)
    broker = Redis(port=int(system.variables["BOTHWAYS_VALKEY_PORT"]), password=password or None)
    with pytest.raises(AuthenticationError), closing(broker):
        broker.ping()


def test_the_broker_keeps_what_it_holds(system: Project) -> None:
    with Redis(port=int(system.variables["BOTHWAYS_VALKEY_PORT"]), password=PASSWORD, decode_responses=True) as broker:
        kept = broker.config_get("appendonly", "appendfsync", "maxmemory-policy")

    assert kept == {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}


@pytest.mark.parametrize(
    ("method", "path", "password", "status"),
    [
        ("GET", "/workers", None, 401),
        ("GET", "/workers", "wrong", 401),
        ("GET", "/workers", FLOWER_PASSWORD, 200),
        ("POST", "/api/task/async-apply/bothways.evaluate", FLOWER_PASSWORD, 403),
    ],
)
def test_flower_shows_and_does_nothing(
    system: Project, method: str, path: str, password: str | None, status: int
) -> None:
    login = (
        {} if password is None else {"Authorization": f"Basic {b64encode(f'bothways:{password}'.encode()).decode()}"}
    )
    with closing(HTTPConnection("127.0.0.1", int(system.variables["BOTHWAYS_FLOWER_PORT"]), timeout=20)) as flower:
        flower.request(method, path, headers=login)

        assert flower.getresponse().status == status


def test_no_command_line_and_no_log_tells_a_password(system: Project) -> None:
    every = [run([engine(), "exec", each, "sh", "-c", "cat /proc/[0-9]*/cmdline"]) for each in system.containers()]
    lines = "".join(every).replace("\0", " ")
    assert "valkey-server" in lines
    assert "bothways worker" in lines
    said = "".join(system.logs(service) for service in ("postgres", "valkey", "migrate", *OURS))

    for secret in (PASSWORD, json.dumps(PASSWORD)[1:-1], FLOWER_PASSWORD):
        assert secret not in lines
        assert secret not in said


def test_none_of_our_programs_is_root(system: Project) -> None:
    assert all(system.exec(service, "id", "-u").strip() != "0" for service in OURS)


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        ("worker", {"openai", "ollama", "google.genai"}, {"polars", "numpy", "matplotlib", "adbc_driver_postgresql"}),
        ("analysis", {"polars", "matplotlib", "adbc_driver_postgresql"}, {"openai", "ollama", "google"}),
        ("producer", {"celery"}, {"openai", "google", "polars", "flower"}),
        ("monitor", {"flower"}, {"openai", "google", "polars"}),
    ],
)
def test_an_image_has_the_libraries_of_its_program_and_no_others(target: str, has: set[str], lacks: set[str]) -> None:
    looked = f"import importlib.util as u; print(*[n for n in {sorted(has | lacks)} if u.find_spec(n)])"
    found = run([engine(), "run", "--rm", "--entrypoint", "python", f"bothways-{target}:{TAG}", "-c", looked])

    assert set(found.split()) == has


def test_stopping_during_a_study_loses_no_answer_and_gives_back_the_rest(system: Project, folder: Path) -> None:
    before = answered(folder)
    system.bothways("run", "slow.yaml", "--limit", "40")
    await_that(lambda: len(answered(folder) - before) > 4)

    system.compose("stop", "-t", "60", "worker-api")

    with closing(connected(system, PASSWORD)) as postgres:
        stored = {str(attempt) for (attempt,) in postgres.execute("SELECT id FROM attempt")}
        running = postgres.execute("SELECT count(*) FROM job WHERE state = 'running'").fetchone()
    assert answered(folder) - before <= stored
    assert running == (0,)


def test_taking_it_down_leaves_nothing(system: Project) -> None:
    system.compose("down", "-v", "-t", "20")

    assert system.containers(every=True) == []
    assert system.name not in run([engine(), "volume", "ls", "-q"])
    assert system.name not in run([engine(), "network", "ls"])
