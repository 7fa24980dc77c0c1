"""GPU hosts: whole workers beside servers that speak Ollama's protocol, one model at a time, whatever happens."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine

from ops.cli.follow import stuck_reasons
from ops.cli.view import waiting_lines
from ops.local.valkey import start_valkey
from ops.progress import read_progress
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.steering import steer
from producer.study_file import read_study
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import write_study
from tests.fake_http import serving
from tests.fake_ollama import Call, FakeOllama, digest, fake_ollama
from tests.jobs import at_work, dispatching
from worker.contact import CANARY_PROMPT

pytestmark = pytest.mark.xdist_group("hosts")
stage = end_to_end.stage
A_QUEUE = "ollama.a:latest@4096"
FORMAT = [{"format": "closed", "sampling": {"temperature": 0.7, "max_tokens": 8, "seed": 1}}]
LONGEST_S = 60
LOADS_S = float(os.environ.get("BOTHWAYS_LOADS_S", "4"))
UNACKNOWLEDGED = "bothways:unacked"
ANSWERS_BY_DIGEST = """
    SELECT deployment.digest, count(*) AS answers FROM attempt JOIN deployment ON deployment.id = attempt.deployment
    WHERE outcome = 'answered' GROUP BY deployment.digest
"""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What workers of GPU hosts work on."""

    stage: Stage

    def start(self, server: FakeOllama | str, name: str, *, slots: int = 4, grace_s: int = 10) -> Running:
        """A worker beside `server`."""
        url = server if isinstance(server, str) else server.base_url
        beside = replace(self.stage, environment=self.stage.environment | {"BOTHWAYS_OLLAMA_URL": url})
        return beside.start(
            *("worker", "--provider", "ollama", "--slots", str(slots), "--name", name, "--grace", str(grace_s))
        )

    def enqueue(self, *tags: str, name: str = "trial", items: int = 4, **changes: Any) -> None:  # noqa: ANN401
        """A study that asks these models; two jobs an item and model."""
        models = [{"name": tag, "provider": "ollama", "model": tag, "timeout_s": 20} for tag in tags]
        fields: dict[str, Any] = {"models": models, "formats": FORMAT, "study": name}
        study = write_study(self.stage.folder / name, items=items, **(fields | changes))
        enqueue(self.stage.engine, read_study(study))

    def beats(self) -> dict[str, dict[str, Any]]:
        """The newest heartbeat of each worker by its name, and how many seconds old it is."""
        statement = "SELECT *, extract(epoch FROM now() - seen_at)::float AS age_s FROM worker_heartbeat"
        return {row["worker"].split(".")[0]: row for row in self.stage.rows(statement)}

    def notes(self, name: str) -> list[str]:
        """What a host should be known for, as its heartbeat has it."""
        return list(self.beats().get(name, {}).get("notes", []))

    def finished(self) -> int:
        """How many jobs have their result."""
        return self.stage.count("finished_at IS NOT NULL")

    def stops(self) -> list[dict[str, Any]]:
        """What was stopped, and where."""
        return self.stage.rows("SELECT endpoint, reason, digest FROM stop")

    def await_that(self, it_is_so: Callable[[], bool]) -> None:
        """Wait, for a minute at most; then it is told how things stand."""
        deadline = time.monotonic() + LONGEST_S
        while not it_is_so():
            assert time.monotonic() < deadline, (self.stage.states(), self.beats())
            time.sleep(0.1)

    def await_the_end(self) -> None:
        """Wait until every job has its result."""
        self.await_that(lambda: self.stage.count("finished_at IS NULL") == 0)


@pytest.fixture
def hosts(stage: Stage, dispatcher: Dispatcher) -> Iterator[Hosts]:
    """Hosts, with a dispatcher at work."""
    stage.environment["BOTHWAYS_PATIENCE"] = "0.1"
    with at_work(dispatcher):
        yield Hosts(stage=stage)


@contextmanager
def back_at(port: int) -> Iterator[FakeOllama]:
    """A server at the port of an earlier one."""
    with serving(FakeOllama(port)) as server:
        server.tags = {"a:latest": digest("a")}
        server.generation_s = 0.1
        yield server


def server_with(processes: ExitStack, *tags: str) -> FakeOllama:
    """A server with these models that answers a job in a tenth of a second."""
    server = processes.enter_context(fake_ollama())
    server.tags = {f"{tag}:latest": digest(tag) for tag in tags}
    server.generation_s, server.load_s = 0.1, 0.3
    return server


def asked(server: FakeOllama) -> list[Call]:
    """The calls of jobs, in the order in which they ended."""
    return [call for call in server.calls if "Which is right" in call.prompt]


def most_at_once(calls: Sequence[Call]) -> int:
    """How many of them the server was busy with at one moment."""
    return max((sum(other.start <= call.start < other.end for other in calls) for call in calls), default=0)


def together(calls: Sequence[Call]) -> float:
    """The share of calls that were not asked alone all the time."""
    return sum(any(a is not b and b.start < a.end and a.start < b.end for b in calls) for a in calls) / len(calls)


def turns(calls: Sequence[Call]) -> list[str]:
    """The models in the order in which they were asked; one that came back stands there twice."""
    tags = [call.tag.split(":")[0] for call in sorted(calls, key=lambda call: call.start)]
    return [tag for number, tag in enumerate(tags) if number == 0 or tags[number - 1] != tag]


def overlap(calls: Sequence[Call]) -> bool:
    """Whether two models were asked at one moment."""
    return any(a.start < b.end and b.start < a.end for a in calls for b in calls if a.tag != b.tag)


def test_a_host_serves_the_models_of_a_study_one_after_the_other(hosts: Hosts, broker: Redis) -> None:
    beats: list[dict[str, Any]] = []
    reserved = []

    def ended() -> bool:
        beats.extend(hosts.beats().values())
        reserved.append(broker.hlen(UNACKNOWLEDGED))
        return hosts.stage.count("finished_at IS NULL") == 0

    with ExitStack() as processes:
        server = server_with(processes, "a", "b", "c")
        server.parallel, server.load_s, server.generation_s = 2, 0.5, 0.15
        server.size_vram = server.size // 4
        hosts.enqueue("a", "b", "c", items=8, bundles={"size": 2, "budget_s": 5})
        hosts.start(server, "gpu1", slots=8)
        hosts.await_that(ended)

    calls = asked(server)
    assert hosts.stage.states() == {"answered": 48}
    assert len(calls) == 48
    assert sorted(server.loads) == ["a:latest", "b:latest", "c:latest"]
    assert sorted(turns(calls)) == ["a", "b", "c"]
    assert not overlap(server.calls)
    assert most_at_once(calls) == 2
    assert together(calls) > 0.5
    assert {beat["slots"] for beat in beats} == {1, 2}
    assert max(reserved) <= 2
    assert any(f"{server.label} runs 75% of a on its CPU" in " ".join(beat["notes"]) for beat in beats)


def test_hosts_share_the_models_and_none_is_asked_for_one_that_it_lacks(hosts: Hosts) -> None:
    with ExitStack() as processes:
        first, second = server_with(processes, "a", "b", "d"), server_with(processes, "a", "b")
        hosts.enqueue("a", "b", "c", "d", items=10)
        hosts.start(first, "gpu1")
        hosts.start(second, "gpu2")
        hosts.await_that(lambda: hosts.stage.states() == {"answered": 60, "pending": 20})
        (reason,) = stuck_reasons(read_progress(hosts.stage.engine, "trial"))

    assert turns(asked(first))[0] != turns(asked(second))[0]
    for server in (first, second):
        assert len(server.loads) == len(set(server.loads))
        assert not overlap(server.calls)
    assert {call.tag for call in asked(second)} <= {"a:latest", "b:latest"}
    assert reason.startswith("no worker serves ollama.c:latest@4096: no host has c:latest (")
    assert f"{first.label} has a:latest, b:latest, d:latest" in reason


def test_a_host_that_cannot_run_a_model_or_lost_it_leaves_it_to_another(hosts: Hosts) -> None:
    hosts.stage.environment["BOTHWAYS_PATIENCE"] = "0.008"  # ten minutes are five seconds
    with ExitStack() as processes:
        first, second = server_with(processes, "a"), server_with(processes, "a")
        hosts.enqueue("a", items=16)
        hosts.start(first, "gpu1")
        hosts.start(second, "gpu2")
        hosts.await_that(lambda: len(asked(first)) >= 3 and len(asked(second)) >= 3)

        first.runs = "runner-crash"
        hosts.await_that(lambda: A_QUEUE in hosts.beats()["gpu1"]["resting"])
        rest = hosts.beats()["gpu1"]["resting"][A_QUEUE]
        hosts.await_the_end()
        first.runs, crashed = None, len(first.calls)
        hosts.await_that(lambda: not hosts.beats()["gpu1"]["resting"])

        hosts.enqueue("a", name="another", items=60)
        hosts.await_that(lambda: len(asked(first)[6:]) >= 3)
        first.runs = "pull-first"
        before = len(asked(first))
        hosts.await_that(lambda: len(hosts.stops()) == 1)
        second.generation_s = 0.02
        hosts.await_the_end()

    assert rest["reason"].startswith("this host cannot run it: HTTP 500 from")
    (failed,) = hosts.stage.rows("SELECT count(*) AS calls FROM attempt WHERE error_kind = 'transient'")
    assert 3 <= failed["calls"] <= 4
    again = [call.prompt for call in first.calls[crashed:]]
    assert "Which is right" not in "".join(again[: again.index(CANARY_PROMPT)])
    assert [stop["endpoint"] for stop in hosts.stops()] == [first.label]
    assert len(asked(first)) <= before + 1
    assert hosts.stage.states() == {"answered": 152}


@pytest.mark.long
def test_a_model_that_was_replaced_is_refused_until_a_person_accepts_it(hosts: Hosts) -> None:
    with ExitStack() as processes:
        server = server_with(processes, "a")
        hosts.enqueue("a", items=40)
        hosts.start(server, "gpu1")
        hosts.await_that(lambda: len(asked(server)) >= 5)

        server.tags["a:latest"] = "b" * 64
        hosts.await_that(lambda: bool(hosts.stops()))
        (stop,) = hosts.stops()
        hosts.await_that(lambda: hosts.stage.count("state = 'running'") == 0)
        left = hosts.stage.count("finished_at IS NULL")
        time.sleep(1)
        assert hosts.stage.count("finished_at IS NULL") == left

        server.generation_s = 0.02
        steer(hosts.stage.engine, "trial", "active", accept_digest=True)
        hosts.await_the_end()

    assert (stop["endpoint"], stop["digest"]) == (server.label, "b" * 64)
    assert left > 0
    told = {row["digest"]: row["answers"] for row in hosts.stage.rows(ANSWERS_BY_DIGEST)}
    assert told == {digest("a"): 80 - left, "b" * 64: left}


@pytest.mark.long
def test_an_ollama_that_is_away_or_slow_is_named_and_waited_for(hosts: Hosts) -> None:
    with serving(FakeOllama()) as server:
        port, url, label = server.server_port, server.base_url, server.label
    hosts.enqueue("a", items=20)
    hosts.start(url, "gpu1", slots=2)
    away = f"Ollama at {label}: connection: {label} cannot be reached"
    hosts.await_that(lambda: hosts.notes("gpu1") == [away])
    progress = read_progress(hosts.stage.engine, "trial")
    assert stuck_reasons(progress) == [f"no worker serves ollama.a:latest@4096: {away}"]
    assert waiting_lines(progress)[-1] == f"note: {away}"

    with back_at(port) as server:
        server.load_s = LOADS_S
        hosts.await_that(lambda: bool(server.loads))
        server.tags_s = LOADS_S
        ages = []
        for _ in range(round(10 * LOADS_S)):
            ages.append(hosts.beats()["gpu1"]["age_s"])
            time.sleep(0.1)
        server.tags_s = 0.0
        hosts.await_that(lambda: hosts.finished() >= 10)
    hosts.await_that(lambda: hosts.notes("gpu1") == [away])
    with back_at(port):
        hosts.await_the_end()
        hosts.await_that(lambda: hosts.notes("gpu1") == [])

    assert max(ages) < 3
    assert hosts.stage.states() == {"answered": 40}


@pytest.mark.long
def test_what_a_host_holds_goes_back_when_it_is_stopped_or_killed(hosts: Hosts) -> None:
    hosts.stage.environment["BOTHWAYS_LEASE_MARGIN_S"] = "1"
    model = {"name": "a", "provider": "ollama", "model": "a", "timeout_s": 3}
    with ExitStack() as processes:
        first, second, third = (server_with(processes, "a") for _ in range(3))
        third.tags, third.generation_s = {}, 0.02
        hosts.enqueue("a", items=16, models=[model], bundles={"size": 4, "budget_s": 2})
        stopped, killed = hosts.start(first, "gpu1", grace_s=5), hosts.start(second, "gpu2")
        hosts.start(third, "gpu3")
        hosts.await_that(lambda: len(asked(first)) >= 1 and len(asked(second)) >= 1 and "gpu3" in hosts.beats())

        first.generation_s = second.generation_s = 30.0
        time.sleep(0.5)
        killed.process.kill()
        stopped.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        code = stopped.end()
        took_s = time.monotonic() - began
        third.tags = {"a:latest": digest("a")}
        hosts.await_the_end()

    assert (code, "gpu1" in hosts.beats()) == (0, False)
    assert took_s < 6
    assert hosts.stage.states() == {"answered": 32}
    assert hosts.stage.count("losses > 0") == 1
    assert hosts.stage.workers_at_work() == {"gpu1", "gpu2", "gpu3"}


@pytest.mark.long
def test_models_in_turn_are_never_asked_at_once_though_the_broker_is_away(
    stage: Stage, engine: Engine, tmp_path: Path
) -> None:
    with (
        start_valkey(tmp_path / "valkey") as valkey,
        Redis.from_url(valkey.url, decode_responses=True) as broker,
        dispatching(engine, broker, valkey.url) as dispatcher,
        at_work(dispatcher),
        ExitStack() as processes,
    ):
        stage.environment["BOTHWAYS_BROKER_URL"] = valkey.url
        stage.environment["BOTHWAYS_PATIENCE"] = "0.002"  # a quarter of an hour is two seconds
        hosts, server = Hosts(stage=stage), server_with(processes, "a", "b")
        server.parallel, server.load_s = 2, 0.1
        hosts.enqueue("a", "b", items=20, bundles={"size": 4, "budget_s": 5})
        worker = hosts.start(server, "gpu1")
        hosts.await_that(lambda: len(asked(server)) >= 8)
        valkey.restart()
        hosts.await_the_end()

    calls = asked(server)
    said_since = worker.said.partition("Connection to broker lost")[2]
    assert stage.states() == {"answered": 80}
    assert len(server.loads) == len(turns(calls)) >= 3
    assert not overlap(server.calls)
    assert most_at_once(calls) == 2
    assert f"Canceling queue ollama.{turns(calls)[0]}" in said_since
