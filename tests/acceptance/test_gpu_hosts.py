"""GPU hosts: whole workers beside servers that speak Ollama's protocol, one model at a time, whatever happens."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import write_study
from tests.fake_http import serving
from tests.fake_ollama import Call, FakeOllama, digest, fake_ollama
from tests.jobs import at_work
from worker.contact import CANARY_PROMPT

pytestmark = pytest.mark.xdist_group("hosts")
stage = end_to_end.stage
FORMAT = [{"format": "closed", "sampling": {"temperature": 0.7, "max_tokens": 8, "seed": 1}}]
LONGEST_S = 60


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What workers of GPU hosts work on."""

    stage: Stage

    def start(self, server: FakeOllama | str, name: str, *, slots: int = 8, grace_s: int = 10) -> Running:
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
        return {row["worker"].rsplit(".", 1)[0]: row for row in self.stage.rows(statement)}

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


def turns(calls: Sequence[Call]) -> list[str]:
    """The models in the order in which they were asked; one that came back stands there twice."""
    tags = [call.tag.split(":")[0] for call in sorted(calls, key=lambda call: call.start)]
    return [tag for number, tag in enumerate(tags) if number == 0 or tags[number - 1] != tag]


def overlap(calls: Sequence[Call]) -> bool:
    """Whether two models were asked at one moment."""
    return any(a.start < b.end and b.start < a.end for a in calls for b in calls if a.tag != b.tag)


def test_a_host_serves_the_models_of_a_study_one_after_the_other(hosts: Hosts) -> None:
    with ExitStack() as processes:
        server = server_with(processes, "a", "b", "c")
        server.parallel, server.load_s = 2, 0.5
        hosts.enqueue("a", "b", "c", items=12)
        hosts.start(server, "gpu1")
        began = time.monotonic()
        hosts.await_the_end()
        print("took", time.monotonic() - began)
        print(hosts.beats())

    calls = asked(server)
    assert hosts.stage.states() == {"answered": 72}
    assert sorted(server.loads) == ["a:latest", "b:latest", "c:latest"]
    assert len(calls) == 72
    assert sorted(turns(calls)) == ["a", "b", "c"]
    assert not overlap(server.calls)
    assert most_at_once(calls) == 2
    (beat,) = hosts.beats().values()
    assert beat["slots"] == 2
    for tag in "abc":
        of = [c for c in calls if c.tag == f"{tag}:latest"]
        print(
            tag,
            max(c.end for c in of) - min(c.start for c in of),
            min(c.start for c in of) - began,
            max(c.end for c in of) - began,
        )
