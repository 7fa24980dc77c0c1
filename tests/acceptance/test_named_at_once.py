"""Models that cannot be asked are named at once, with what is wrong and what to do, and the other models go on."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.cli.follow import follow
from ops.cli.terminal import Exit
from ops.local.engines import free_port
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.fake_gemini import fake_gemini
from tests.fake_openai import FakeOpenAI, fake_openai
from tests.jobs import await_that

stage = end_to_end.stage
pytestmark = pytest.mark.xdist_group("keys")

WRONG, RIGHT = "wrong-key-4471", "right-key-8823"
ITEMS = 2
JOBS = 2 * ITEMS
"""Of every model: its items in two orders."""


def model(name: str, at: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A model that a server calls by another name than the study does."""
    return {"name": name, "provider": "openai", "model": f"{name}-1", "base_url": at, "timeout_s": 5} | more


def five(server: FakeOpenAI, locked: FakeOpenAI, away: str) -> list[dict[str, Any]]:
    """One that can be asked and four that cannot; the servers offer all but one."""
    server.names += ["good-1", "keyless-1"]
    locked.names += ["locked-1"]
    return [
        model("good", server.base_url),
        model("keyless", server.base_url, api_key_env="KEY_OF_KEYLESS"),
        model("locked", locked.base_url, api_key_env="KEY_OF_LOCKED"),
        model("unknown", server.base_url),
        model("away", away),
    ]


def start_worker(stage: Stage) -> Running:
    """A worker for compatible servers that has told of itself."""
    worker = stage.start("worker", "--provider", "openai")
    await_that(lambda: bool(stage.rows("SELECT worker FROM worker_heartbeat")))
    return worker


def end(running: Running) -> int:
    """Stop a process in good order; its exit code."""
    running.process.terminate()
    return running.end()


def told(running: Running) -> dict[str, str]:
    """The reasons to wait that a command told on lines of their own, the first of each model."""
    lines = re.findall(r"^trial: waiting: openai\.(\w+) (.*)$", running.said, re.MULTILINE)
    return dict(reversed(lines))


def noted(running: Running) -> dict[str, str]:
    """What a command found out about models by itself."""
    return dict(re.findall(r"^note: (\w+): (.*)$", running.said, re.MULTILINE))


def prompts(*servers: FakeOpenAI) -> Counter[tuple[str, str]]:
    """How often each model was asked each of the study's prompts."""
    bodies = [received.body for server in servers for received in server.received if received.body]
    asked = Counter((body["model"], body["messages"][0]["content"]) for body in bodies)
    return Counter({key: times for key, times in asked.items() if "Paragraph" in key[1]})


def test_what_cannot_be_asked_is_named_at_once_and_finished_when_that_is_mended(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    with fake_openai() as server, fake_openai() as locked:
        locked.accepts = RIGHT
        stage.environment["KEY_OF_LOCKED"] = WRONG
        study = stage.write_study(items=ITEMS, models=five(server, locked, f"http://127.0.0.1:{port}/v1"))
        stage.start("dispatch")
        worker = start_worker(stage)

        running = stage.start("run", str(study), "--wait", "--wait-for", "5")
        await_that(lambda: len(told(running)) == 4, seconds=15)
        code = running.end()
        standing = follow(stage.engine, "trial", standstill_s=1.0)
        told_at_last = capsys.readouterr().err
        at_rest = stage.states()

        end(worker)
        stage.environment.update({"KEY_OF_KEYLESS": "any-key-5510", "KEY_OF_LOCKED": RIGHT})
        server.names.append("unknown-1")
        with fake_openai(port) as back:
            back.names.append("away-1")
            start_worker(stage)
            resuming = stage.start("resume", "trial").end()
            await_that(lambda: stage.states() == {"answered": 5 * JOBS}, seconds=30)
            again = stage.run(study)
            asked = prompts(server, locked, back)

    assert (code, standing) == (Exit.STUCK, Exit.STUCK)
    assert at_rest["answered"] == JOBS
    assert at_rest.keys() <= {"answered", "pending", "queued"}
    assert told(running) == {
        "keyless": "was stopped: model keyless: the variable KEY_OF_KEYLESS with its key is not set",
        "locked": "was stopped: HTTP 401: Incorrect API key provided: [...]. (look at the key in KEY_OF_LOCKED)",
        "unknown": "was stopped: HTTP 404: The model does not exist. "
        "(no such model there, or the base_url is not the whole one)",
        "away": told(running)["away"],
    }
    assert re.fullmatch(
        rf"rests until [\d:]+ UTC: connection: 127.0.0.1:{port} cannot be reached: .*", told(running)["away"]
    )
    assert "trial: note: mend what was stopped, then: bothways resume trial; " in running.said
    assert noted(running).keys() == told(running).keys()
    assert noted(running)["locked"] == (
        "could not be asked from here: HTTP 401: Incorrect API key provided: [...]. "
        "(look at the key in KEY_OF_LOCKED); the workers will tell"
    )
    assert noted(running)["unknown"].startswith("the server offers no model 'unknown-1'; it offers: ")
    assert noted(running)["unknown"].endswith("; the other models go on")
    assert all(f"  openai.{name} " in told_at_last for name in told(running))
    assert "mend it, then: bothways resume trial" in told_at_last
    assert WRONG not in running.said + worker.said + told_at_last
    assert (resuming, again.process.returncode) == (0, 0), again.said
    assert f"{5 * JOBS} as they were" in again.said
    assert (len(asked), set(asked.values())) == (5 * JOBS, {1})
    assert stage.rows("SELECT id FROM stop") == []


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "like all others"])
def test_a_model_that_no_server_offers_is_refused_before_anything_is_written(stage: Stage, others: int) -> None:
    stage.environment["GEMINI_API_KEY"] = RIGHT
    with fake_gemini() as server:
        models = [
            {"name": f"m{number}", "provider": "gemini", "model": "goood", "base_url": server.base_url}
            for number in range(1 + others)
        ]
        study = stage.write_study(items=ITEMS, models=models)
        refused = stage.start("run", str(study), "--wait")
        code = refused.end()

    line = study.read_text(encoding="utf-8").splitlines().index("  model: goood") + 1
    said = (
        f"bothways: {study}:{line}: models[0].model: the server offers no model 'goood'; did you mean good? it offers: "
    )
    assert code == Exit.USAGE
    assert refused.said.startswith(said)
    assert refused.said.endswith(" more (and 1 more to mend)\n" if others else " more\n")
    assert len(refused.said.splitlines()) == 1
    assert stage.rows("SELECT id FROM study") == []


def write_pools(folder: Path, *pools: dict[str, Any]) -> Path:
    """A pools file."""
    path = folder / "pools.yaml"
    path.write_text(yaml.safe_dump({"pools": [*pools]}, sort_keys=False), encoding="utf-8")
    return path


BROKEN = {
    "misspelt": (
        "pools:\n- name: p\n  provider: openai\n  rmp: 5\n",
        ":4: pools[0].rmp: unknown field; did you mean rpm?",
    ),
    "no limit": ("pools:\n- name: p\n  provider: openai\n", ":2: pools[0]: limits nothing; give at least one of rpm, "),
    "a key in it": (
        f"pools:\n- name: p\n  provider: openai\n  rpm: 5\n  api_key_env: {RIGHT}\n",
        ":5: pools[0].api_key_env: must be the name of a variable (capitals, digits, _), never the key itself",
    ),
    "no YAML": ("pools: [\n", ":2: not valid YAML: "),
    "not there": (None, ": there is no such file"),
}


@pytest.mark.parametrize(("written", "said"), BROKEN.values(), ids=BROKEN)
def test_a_pools_file_that_cannot_be_used_ends_run_and_worker_in_one_line(
    stage: Stage, written: str | None, said: str
) -> None:
    path = stage.folder / "pools.yaml"
    if written is not None:
        path.write_text(written, encoding="utf-8")
    stage.environment["BOTHWAYS_POOLS"] = str(path)
    study = stage.write_study(items=ITEMS)

    commands = [
        stage.start("run", str(study), "--wait"),
        stage.start("worker"),
        stage.start("worker", "--provider", "simulated"),
    ]
    codes = [each.end() for each in commands]

    assert codes == [Exit.USAGE] * 3
    for each in commands:
        (line,) = each.said.splitlines()
        assert line.startswith(f"bothways: {path}{said}")
        assert RIGHT not in line
    assert stage.rows("SELECT id FROM study") == []
    assert stage.rows("SELECT worker FROM worker_heartbeat") == []


def test_a_pool_that_the_file_lacks_or_that_is_another_providers_stops_its_model_alone(stage: Stage) -> None:
    with fake_openai() as server:
        server.names += ["good-1", "lacking-1", "crossed-1"]
        pools = (
            {"name": "there", "provider": "openai", "rpm": 6000},
            {"name": "other", "provider": "gemini", "rpm": 60},
        )
        stage.environment["BOTHWAYS_POOLS"] = str(write_pools(stage.folder, *pools))
        models = [
            model("good", server.base_url, pools=["there"]),
            model("lacking", server.base_url, pools=["there", "gone"]),
            model("crossed", server.base_url, pools=["other"]),
        ]
        study = stage.write_study(items=ITEMS, models=models)
        worker = start_worker(stage)
        running = stage.run(study)
        asked = prompts(server)

    assert running.process.returncode == Exit.STUCK
    assert noted(running) == {
        "lacking": f"uses the pool gone, which {stage.folder / 'pools.yaml'} lacks; it has: there, other",
        "crossed": "uses the pool other, which is one of gemini: the workers will ask nothing",
    }
    assert told(running) == {
        "lacking": "was stopped: model lacking uses the pool gone, and the worker's pools file has there, other",
        "crossed": "was stopped: model crossed uses the pool other, which is one of gemini",
    }
    assert stage.states() == {"answered": JOBS, "pending": 2 * JOBS}
    assert {name for name, _ in asked} == {"good-1"}
    assert end(worker) == 0


def test_without_any_pools_file_a_model_with_pools_says_where_one_is_named(stage: Stage) -> None:
    study = stage.write_study(items=ITEMS, models=[model("good", "http://127.0.0.1:9/v1", pools=["there"])])
    start_worker(stage)

    running = stage.run(study)

    assert running.process.returncode == Exit.STUCK
    assert noted(running)["good"] == (
        "uses the pool there, and no pools file is here: the workers need one, named with BOTHWAYS_POOLS"
    )
    assert told(running)["good"].endswith("the worker has no pools file: name one with BOTHWAYS_POOLS")
