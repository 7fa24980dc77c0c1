"""`bothways check`: green and red lines, one call at most for each model, nothing secret in them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Engine

from tests.builders import write_study
from tests.fake_gemini import FakeGemini, fake_gemini
from tests.jobs import beat, change, plan, rows

ROOT = Path(__file__).parents[2]
KEY = "key-that-nobody-may-see"


@pytest.fixture
def server() -> Iterator[FakeGemini]:
    """A server of the Gemini API."""
    with fake_gemini() as running:
        yield running


@pytest.fixture
def stack(database_url: str, broker_url: str, tmp_path: Path) -> dict[str, str]:
    """An environment with a stack and a key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOTHWAYS_")}
    return kept | {
        "BOTHWAYS_STATE": str(tmp_path / "state"),
        "BOTHWAYS_DATABASE_URL": database_url,
        "BOTHWAYS_BROKER_URL": broker_url,
        "THE_KEY": KEY,
    }


def model(server: FakeGemini, behaviour: str = "good", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A Gemini model of a study file."""
    values = {"name": behaviour, "provider": "gemini", "model": behaviour, "base_url": server.base_url}
    return values | {"api_key_env": "THE_KEY", "timeout_s": 5} | more


def check(study: Path, stack: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """The command on a study file."""
    command = [sys.executable, "-m", "ops.cli", "check", str(study), *options]
    done = subprocess.run(command, cwd=ROOT, env=stack, capture_output=True, text=True, check=False, timeout=90)
    assert KEY not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def told(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """State and what was said, by subject."""
    return {line["about"]: (line["state"], line["said"]) for line in json.loads(done.stdout)}


def test_a_study_that_can_run_is_green_after_one_call_a_model(
    stack: dict[str, str], engine: Engine, server: FakeGemini, tmp_path: Path
) -> None:
    beat(engine, "gemini.good")
    models = [model(server), model(server, "pro"), model(server, name="again")]
    study = write_study(tmp_path, models=[*models, {"name": "sim", "provider": "simulated"}])

    done = check(study, stack, "--json")

    lines = told(done)
    assert done.returncode == 0, done.stdout
    assert {state for state, _ in lines.values()} <= {"ok", "warn"}
    assert lines["data capitals"] == ("ok", "4 items")
    for about in ("model good", "model pro", "model again", "tables", "broker"):
        assert lines[about][0] == "ok"
    asked = [received.path for received in server.received if "generateContent" in received.path]
    assert len(asked) == 2
    assert rows(engine, "SELECT count(*) AS made FROM canary WHERE worker = 'check'")[0]["made"] == 2
    assert rows(engine, "SELECT count(*) AS jobs FROM job")[0]["jobs"] == 0


WRONG = {
    "404": ("fail", "retired or misspelt"),
    "key-invalid": ("fail", "API key not valid"),
    "max-tokens-empty": ("fail", "options.room"),
    "rerouted": ("fail", "answered though"),
    "503": ("fail", "503"),
    "429-minute": ("warn", "429"),
}


def test_a_model_that_would_not_go_well_is_told_with_what_to_do(
    stack: dict[str, str], engine: Engine, server: FakeGemini, tmp_path: Path
) -> None:
    beat(engine, "gemini.x")
    models = [*(model(server, behaviour) for behaviour in WRONG), model(server)]
    models.append(model(server, name="keyless", api_key_env="NOT_SET"))

    done = check(write_study(tmp_path, models=models), stack, "--json")

    lines = told(done)
    for behaviour, (state, said) in WRONG.items():
        assert lines[f"model {behaviour}"][0] == state
        assert said in lines[f"model {behaviour}"][1]
    assert lines["model good"][0] == "ok"
    assert lines["model keyless"][0] == "fail"
    assert "NOT_SET" in lines["model keyless"][1]
    assert done.returncode == 4


def test_without_calls_the_lists_of_the_servers_are_looked_at(
    stack: dict[str, str], server: FakeGemini, tmp_path: Path
) -> None:
    study = write_study(tmp_path, models=[model(server, "no-such-model")])

    done = check(study, stack, "--no-calls")

    assert "the server offers no model no-such-model" in done.stdout
    assert [received.path for received in server.received if "generateContent" in received.path] == []


def test_a_stop_whose_reason_has_gone_is_cleared(
    stack: dict[str, str], engine: Engine, server: FakeGemini, tmp_path: Path
) -> None:
    plan(engine, tmp_path, models=[model(server), model(server, "404")])
    for queue in ("gemini.good", "gemini.404"):
        change(
            engine,
            "INSERT INTO stop (study, queue, reason, since) SELECT id, :queue, 'wrong key', now() FROM study",
            queue=queue,
        )

    done = check(tmp_path / "study.yaml", stack)

    assert "was stopped, and may be asked again" in done.stdout
    assert [found["queue"] for found in rows(engine, "SELECT queue FROM stop")] == ["gemini.404"]
    assert rows(engine, "SELECT digest FROM pin") == []
    change(engine, "UPDATE stop SET queue = 'gemini.good'")
    edited = write_study(tmp_path, models=[model(server, timeout_s=7)])
    assert "was stopped" not in check(edited, stack).stdout
    assert len(rows(engine, "SELECT id FROM stop")) == 1


def test_what_stands_in_the_way_of_all_is_red(stack: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    study = write_study(tmp_path)

    bad_pools = check(study, stack | {"BOTHWAYS_POOLS": str(tmp_path / "nothing.yaml")})
    change(engine, "DELETE FROM alembic_version")
    behind = check(study, stack)
    no_stack = check(study, stack | {"BOTHWAYS_DATABASE_URL": "postgresql://127.0.0.1:9/nowhere"})
    no_file = check(tmp_path / "nothing.yaml", stack)
    no_broker = check(study, stack | {"BOTHWAYS_BROKER_URL": "redis://127.0.0.1:9/0"}, "--json")

    assert (behind.returncode, no_stack.returncode, no_file.returncode) == (4, 3, 2)
    assert "run `bothways migrate`" in behind.stdout
    assert "nothing.yaml" in no_file.stdout
    assert (bad_pools.returncode, no_broker.returncode) == (2, 3)
    assert "nothing.yaml: there is no such file" in bad_pools.stdout
    assert "the broker does not answer" in told(no_broker)["stack"][1]


def test_pools_are_looked_for_with_their_keys(stack: dict[str, str], server: FakeGemini, tmp_path: Path) -> None:
    pools = [
        {"name": name, "provider": "gemini", "rpm": 60, "api_key_env": key}
        for name, key in (("a", "THE_KEY"), ("b", "NOT_SET"))
    ]
    (tmp_path / "quotas.yaml").write_text(yaml.safe_dump({"pools": pools}), encoding="utf-8")
    environment = stack | {"BOTHWAYS_POOLS": str(tmp_path / "quotas.yaml")}
    models = [model(server, "good", pools=["a"]), model(server, "pro", pools=["b"]), model(server, "503", pools=["c"])]

    lines = told(check(write_study(tmp_path, models=models), environment, "--json"))

    assert lines["pool a"] == ("ok", "open")
    assert lines["pool b"] == ("warn", "its key's variable NOT_SET is not set here")
    assert lines["pool c"] == ("fail", "is not in the pools file")
    assert lines["model good"][0] == "ok"
