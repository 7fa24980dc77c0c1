"""`bothways plan`: what a study takes, with a stack and without one; it writes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Engine

from tests.builders import write_study
from tests.jobs import beat, change, plan, rows

ROOT = Path(__file__).parents[2]
POOLS = {
    "pools": [{"name": "a", "provider": "simulated", "rpm": 60, "rpd": 100, "prices": {"input": 100, "output": 1000}}]
}


def planned(study: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """The command on a study file."""
    command = [sys.executable, "-m", "ops.cli", "plan", str(study), *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment without a stack."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOTHWAYS_")}
    return kept | {"BOTHWAYS_STATE": str(tmp_path / "no-state"), "COLUMNS": "120"}


@pytest.fixture
def stack(alone: dict[str, str], database_url: str, broker_url: str, tmp_path: Path) -> dict[str, str]:
    """An environment with a stack and a pools file."""
    (tmp_path / "quotas.yaml").write_text(yaml.safe_dump(POOLS), encoding="utf-8")
    return alone | {
        "BOTHWAYS_DATABASE_URL": database_url,
        "BOTHWAYS_BROKER_URL": broker_url,
        "BOTHWAYS_POOLS": str(tmp_path / "quotas.yaml"),
    }


def model_told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one model of a plan in JSON."""
    (model,) = json.loads(done.stdout)["models"]
    assert isinstance(model, dict)
    return model


def test_a_plan_needs_no_stack_and_says_so(alone: dict[str, str], tmp_path: Path) -> None:
    done = planned(write_study(tmp_path, items=5, repeats=2), alone)

    assert done.returncode == 0
    assert "20 jobs" in done.stdout
    assert "no stack is up here" in done.stderr


def test_a_plan_takes_off_what_is_done_and_writes_nothing(
    stack: dict[str, str], engine: Engine, tmp_path: Path
) -> None:
    models = [{"name": "sim", "provider": "simulated", "pools": ["a"]}]
    plan(engine, tmp_path, items=100, models=models)
    change(engine, "UPDATE job SET state = 'answered', finished_at = now() WHERE position < 50")
    before = rows(engine, "SELECT count(*) AS jobs, max(revision) AS revision FROM job, study")

    done = planned(tmp_path / "study.yaml", stack, "--json")

    told = json.loads(done.stdout)
    assert [(each["jobs"], each["done"], each["to_do"]) for each in told["conditions"]] == [(100, 25, 75)] * 2
    model = model_told(done)
    assert (model["jobs"], model["takes"]["binding"]) == (150, "requests a day of a")
    assert model["takes"]["seconds"] == pytest.approx(86_400 * (150 - 90) / 90)
    assert model["dollars"][1] == pytest.approx(model["dollars"][0] + 150 * 16 * 1000 / 1_000_000)
    assert rows(engine, "SELECT count(*) AS jobs, max(revision) AS revision FROM job, study") == before


def test_a_plan_knows_the_workers_that_are_there_and_their_pace(
    stack: dict[str, str], engine: Engine, tmp_path: Path
) -> None:
    study = plan(engine, tmp_path, items=100)
    beat(engine, "simulated.sim", slots=4)
    change(
        engine,
        """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker)
           SELECT gen_random_uuid(), id, 1, 1, now(), 2000, 'answered', 'w' FROM job WHERE study = :study LIMIT 10""",
        study=study,
    )

    model = model_told(planned(tmp_path / "study.yaml", stack, "--json"))

    assert model["takes"] == {"seconds": 100.0, "binding": "4 slots of workers"}
    assert "about 2 min by 4 slots of workers" in planned(tmp_path / "study.yaml", stack).stdout


def test_a_mistake_in_the_file_is_refused_as_by_a_run(alone: dict[str, str], tmp_path: Path) -> None:
    done = planned(write_study(tmp_path, repeats=0), alone)

    assert done.returncode == 2
    assert "repeats: " in done.stderr
