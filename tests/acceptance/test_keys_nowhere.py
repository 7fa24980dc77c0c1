"""Keys stand nowhere and prompts only where they belong, whatever servers answer: rows, broker, logs, output, files.

The servers misbehave in every way that they know and quote all that they were sent. Worker and dispatcher are the real
ones; they only look more often.
"""

import json
import signal
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from redis import Redis
from sqlalchemy import Engine
from sqlalchemy.engine import make_url

from ops.cli.terminal import Exit
from tests import leaks
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import item_rows
from tests.fake_gemini import BEHAVIOURS as GEMINI
from tests.fake_gemini import FakeGemini, fake_gemini
from tests.fake_ollama import BEHAVIOURS as OLLAMA
from tests.fake_ollama import FakeOllama, fake_ollama
from tests.fake_openai import FakeOpenAI, fake_openai
from tests.fake_openai_behaviours import BEHAVIOURS as OPENAI
from tests.fake_turns import joined
from tests.jobs import await_that, change, plan

stage = end_to_end.stage
pytestmark = pytest.mark.xdist_group("keys")

HURRY = """
import producer.dispatch, worker.hosting, worker.queues
producer.dispatch.IDLE_PAUSE_S, worker.hosting.IDLE_S, worker.queues.LOOK_EVERY_S = 0.1, 0.0, 0.2
from ops.cli.main import main
main()
"""
IN_A_HURRY = ("-c", HURRY)
"""A command whose dispatcher and worker look more often than usual, and whose GPU host waits for no model."""

VARIABLES = ("MARKED_OPENAI", "MARKED_GEMINI", "MARKED_HEADER", "MARKED_OPENAI_POOL", "MARKED_GEMINI_POOL")
IN_VAIN = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY")
"""Variables that the libraries would look into by themselves, for servers that they do not belong to."""

BROKEN_KEY = "broken-9d41\nkey-2b77"
BEGINS, ENDS = "beginning-of-prompt-51c8", "end-of-question-e07d"

ENDS_ITS_MODEL = frozenset(
    (
        *("401", "402", "403", "404", "400-key", "redirect", "echo-401", "echo-404", "pro", "rerouted", "location"),
        *("key-invalid", "key-expired", "key-invalid-said", "pull-first", "no-page", "no-thinking", "no-chat"),
        *("top-logprobs", "out-of-memory", "no-memory", "no-cuda-memory", "no-buffer", "not-enough-memory"),
    )
)
"""After these, and all that speaks of 429, the queue rests or is stopped; after the others the next job is asked."""

FAIL_TO_LOAD = ("busy", "html", "out-of-memory", "silent")
"""Models of the GPU host that fail before any job of theirs is asked."""

JOBS = 4
"""Of every model: two items in two orders."""


def key_of(variable: str) -> str:
    """A key that other notations write otherwise; both its ends can be told from anything else."""
    return f"{variable.lower()}-7f3a\"x\\9/q+'{variable.lower()}-c5e2"


def halves(secret: str) -> tuple[str, ...]:
    """The whole and its ends: what is hidden must be hidden whole."""
    return (secret, secret.split('"')[0], secret.split("'")[-1])


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Servers that misbehave at the study's own prompts only, and those that do so from the first contact on."""

    gemini: FakeGemini
    openai: FakeOpenAI
    hosts: tuple[FakeOllama, FakeOllama]
    rude_gemini: FakeGemini
    rude_openai: FakeOpenAI
    locked: FakeOpenAI

    def unmet(self) -> set[str]:
        """The behaviours that no call has met yet."""
        loaded = self.hosts[0].turns.met + self.hosts[1].turns.met
        met = ((GEMINI, self.gemini.turns.met), (OPENAI, self.openai.turns.met), (OLLAMA, loaded))
        return {name for behaviours, counted in met for name in behaviours if not counted[name]}

    def calls(self) -> int:
        """How many calls have met a behaviour."""
        return sum(server.turns.met.total() for server in (self.gemini, self.openai, *self.hosts))


@contextmanager
def serving() -> Iterator[Servers]:
    """All of them."""
    with ExitStack() as stack:
        servers = Servers(
            gemini=stack.enter_context(fake_gemini()),
            openai=stack.enter_context(fake_openai()),
            hosts=(stack.enter_context(fake_ollama()), stack.enter_context(fake_ollama())),
            rude_gemini=stack.enter_context(fake_gemini()),
            rude_openai=stack.enter_context(fake_openai()),
            locked=stack.enter_context(fake_openai()),
        )
        for server in (servers.gemini, servers.openai, *servers.hosts):
            server.turns.only_at = BEGINS
        servers.locked.accepts = "another key"
        yield servers


def turns(behaviours: Iterable[str]) -> list[str]:
    """Names of models that meet all of these, each no more of them than it has jobs, and at last one that ends it."""
    passing: list[str] = []
    ending: list[str] = []
    for name in behaviours:
        (ending if name in ENDS_ITS_MODEL or "429" in name else passing).append(name)
    number = max(len(ending), -(-len(passing) // (JOBS - 1)))
    return [joined(passing[each::number] + ending[each : each + 1]) for each in range(number)]


def models_at(servers: Servers) -> list[dict[str, Any]]:
    """The models of the study."""
    gemini = {"provider": "gemini", "base_url": servers.gemini.base_url, "api_key_env": "MARKED_GEMINI", "timeout_s": 3}
    openai = {
        "provider": "openai",
        "base_url": servers.openai.base_url,
        "api_key_env": "MARKED_OPENAI",
        "headers": {"X-Second-Key": "${MARKED_HEADER}"},
        "timeout_s": 3,
    }
    ollama = {"provider": "ollama", "timeout_s": 1.5}
    echoes = ["echo-400", "echo-500", "good"]
    made: list[dict[str, Any]] = [gemini | {"model": name} for name in turns(GEMINI)]
    made += [openai | {"model": name} for name in turns(OPENAI)]
    made += [ollama | {"model": name} for name in [*turns(OLLAMA), *FAIL_TO_LOAD]]
    for provider, common in (("gemini", gemini), ("openai", openai)):
        for last in ("echo-401", "echo-429"):
            made.append(common | {"model": joined([*echoes, last]), "pools": [f"{provider}-{last}"]})
    rude_gemini, rude_openai = {"base_url": servers.rude_gemini.base_url}, {"base_url": servers.rude_openai.base_url}
    made += [gemini | rude_gemini | {"model": name} for name in GEMINI if name.startswith("echo-")]
    made += [openai | rude_openai | {"model": name} for name in OPENAI if name.startswith("echo-")]
    made.append(openai | {"base_url": servers.locked.base_url, "model": "good"})
    made.append(openai | {"base_url": "http://127.0.0.1:9/v1", "model": "good"})
    made.append(openai | {"api_key_env": "MARKED_BROKEN", "model": "good"})
    return [{"name": f"m{number}"} | model for number, model in enumerate(made)]


def list_models(servers: Servers, models: list[dict[str, Any]]) -> None:
    """Let the servers offer what the study names."""
    servers.gemini.names += [model["model"] for model in models if model["provider"] == "gemini"]
    servers.openai.names += [model["model"] for model in models if model["provider"] == "openai"]
    tags = [model["model"] for model in models if model["provider"] == "ollama"]
    for number, host in enumerate(servers.hosts):
        host.tags = {f"{tag}:latest": f"{place:064x}" for place, tag in enumerate(tags) if place % 2 == number}


def pools_file(folder: Path, models: list[dict[str, Any]]) -> Path:
    """A pool for every model that names one, each with its own key."""
    pools = [
        {"name": name, "provider": model["provider"], "api_key_env": f"MARKED_{model['provider'].upper()}_POOL"}
        | {"concurrency": 8}
        for model in models
        for name in model.get("pools", ())
    ]
    path = folder / "pools.yaml"
    path.write_text(yaml.safe_dump({"pools": pools}), encoding="utf-8")
    return path


def items() -> list[dict[str, Any]]:
    """Two items whose prompts are written in many ways, as Italian ones are."""
    marked = {"context": f"{BEGINS}: «L'età dell'oro» \\ \"così\".", "question": f'Qual è l\'"ora"? / {ENDS}'}
    return [row | marked for row in item_rows(2)]


def keep_secrets(stage: Stage, pools: Path) -> None:
    """The variables that every program of the test finds."""
    stage.environment.update({name: key_of(name) for name in (*VARIABLES, *IN_VAIN)})
    stage.environment["MARKED_BROKEN"] = BROKEN_KEY
    stage.environment["BOTHWAYS_POOLS"] = str(pools)


def start_workers(stage: Stage, servers: Servers) -> list[Running]:
    """One worker for the APIs and one beside each host."""
    stage.start("dispatch", program=IN_A_HURRY)
    apis = ("--provider", "openai", "--provider", "gemini", "--slots", "16")
    workers = [stage.start("worker", *apis, program=IN_A_HURRY)]
    for host in servers.hosts:
        stage.environment["BOTHWAYS_OLLAMA_URL"] = host.base_url
        workers.append(stage.start("worker", "--provider", "ollama", program=IN_A_HURRY))
    return workers


def say_everything(stage: Stage) -> dict[str, int]:
    """Every command that tells of a study, ended: its exit code. To draw figures of all models takes long."""
    commands = (
        ("report", "small", "--out", str(stage.folder / "report")),
        ("status",),
        ("status", "trial", "--json"),
        ("show", "trial", "q0", "--model", "m1"),
        ("show", "trial", "q1", "--json"),
    )
    started = [(command[0], stage.start(*command)) for command in commands]
    return {name: running.end() for name, running in started}


def test_keys_stand_nowhere_and_prompts_only_where_they_belong(stage: Stage, broker_url: str) -> None:
    with serving() as servers, Redis.from_url(broker_url) as client, leaks.overhearing(broker_url) as heard:
        models = models_at(servers)
        list_models(servers, models)
        keep_secrets(stage, pools_file(stage.folder, models))
        study = stage.write_study(items=items(), models=models, retry={"faults": 1})
        small = stage.write_study(items=items(), models=models[:2], retry={"faults": 1}, study="small")
        workers = start_workers(stage, servers)
        running = stage.start("run", str(study), "--wait")
        codes = {"run small": stage.start("run", str(small)).end()}
        await_that(lambda: not servers.unmet(), seconds=90)
        calls = servers.calls()
        await_that(lambda: len(stage.attempts()) >= calls)
        running.process.send_signal(signal.SIGINT)
        codes |= {"run": running.end(), "resume": stage.start("resume", "trial").end()}
        at_rest = leaks.broker(client)
        for each in workers:
            each.process.terminate()
        codes["worker"] = max(each.end() for each in workers)

    codes |= say_everything(stage)
    places = leaks.rows(stage.engine) | at_rest | {"broker:commands": heard} | leaks.files(stage.folder)
    secrets = [half for name in (*VARIABLES, *IN_VAIN) for half in halves(key_of(name))]
    password = str(make_url(broker_url).password)
    headers = [each.headers for each in servers.gemini.received] + [each.headers for each in servers.openai.received]
    sent = json.dumps([[*each.values()] for each in headers])

    assert codes == dict.fromkeys(codes, Exit.DONE) | {"run": Exit.INTERRUPTED}
    assert [name for name in VARIABLES if json.dumps(key_of(name))[1:-1] not in sent] == []
    assert leaks.found(places, *secrets, *BROKEN_KEY.split("\n"), password) == []
    prompts = {hit.partition(" in ")[2] for hit in leaks.found(places, BEGINS, ENDS)}
    shown = {f"file:{path}" for path in stage.folder.glob("show-*.out")}
    data = {f"file:{each.parent / 'items.jsonl'}" for each in (study, small)}
    assert prompts == {"item.payload", "prompt.text"} | data | shown


PLANTED = key_of("PLANTED")
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "as JSON": json.dumps,
    "as Python": repr,
    "in an address": quote,
    "in base64": lambda key: b64encode(f"a{key}z".encode()).decode(),
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_key_that_is_planted_is_found_in_every_kind_of_place(
    engine: Engine, broker_url: str, tmp_path: Path, spell: Callable[[str], str]
) -> None:
    planted = spell(PLANTED)
    plan(engine, tmp_path / "study")
    change(engine, "UPDATE study SET name = :planted", planted=planted)
    change(engine, "UPDATE item SET payload = CAST(:value AS jsonb)", value=json.dumps({"in": [planted]}))
    change(engine, "UPDATE condition SET rules = CAST(:value AS jsonb)", value=json.dumps({planted: 1}))
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text(f"<p>{planted}</p>", encoding="utf-8")
    (tmp_path / "worker.err").write_bytes(b"\xff " + planted.encode())
    with Redis.from_url(broker_url) as client, leaks.overhearing(broker_url) as heard:
        client.set("string", planted)
        client.hset("hash", "field", planted)
        client.hset("field", planted, 1)
        client.rpush("list", "first", planted)
        client.sadd("set", planted)
        client.zadd("sorted", {planted: 1})
        client.xadd("stream", {"field": planted})
        client.set(f"key {planted}", 1)
        at_rest = leaks.broker(client)

    places = leaks.rows(engine) | at_rest | {"broker:commands": heard} | leaks.files(tmp_path)

    kinds = ("string", "hash", "field", "list", "set", "sorted", "stream", f"key {planted}", "commands")
    assert {hit.partition(" in ")[2] for hit in leaks.found(places, PLANTED)} == {
        *("study.name", "item.payload", "condition.rules"),
        *(f"broker:{kind}" for kind in kinds),
        *(f"file:{tmp_path / name}" for name in ("report/index.html", "worker.err")),
    }
