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

from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import item_rows, write_study
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
    assert 0 < model["takes"]["seconds"] <= 86_400
    assert told["takes"] == model["takes"]
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
    assert "alone about 2 min by 4 slots of workers" in planned(tmp_path / "study.yaml", stack).stdout


def to_do(study: Path, environment: dict[str, str], *options: str) -> int:
    """How many jobs a plan says are left."""
    return int(model_told(planned(study, environment, "--json", *options))["jobs"])


def test_only_what_the_study_still_asks_counts_as_done(stack: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=10, repeats=2)
    # Of ten items with two orders and two repeats, the first three and the last two are done in the first repeat.
    change(
        engine,
        """UPDATE job SET state = 'answered', finished_at = now(), planned = repeat > 1 FROM item
           WHERE item.id = job.item AND repeat = 1 AND source_id IN ('q0', 'q1', 'q2', 'q8', 'q9')""",
    )
    edited = item_rows(10)
    edited[0]["question"] = "Which is right, all things considered?"

    assert to_do(write_study(tmp_path, items=10, repeats=2), stack) == 40 - 10
    assert to_do(tmp_path / "study.yaml", stack, "--limit", "4") == 16 - 6
    assert to_do(write_study(tmp_path, items=edited, repeats=2), stack) == 40 - 8
    change(engine, "UPDATE job SET state = 'answered', finished_at = now() WHERE repeat = 2")
    assert to_do(write_study(tmp_path, items=10, repeats=1), stack) == 20 - 10


@pytest.mark.parametrize(("retries", "left"), [(1, 0), (2, 6), (3, 12)])
def test_what_a_raised_retry_count_asks_again_is_not_done(
    stack: dict[str, str], engine: Engine, tmp_path: Path, retries: int, left: int
) -> None:
    plan(engine, tmp_path, items=10, retry={"invalid": 1})
    change(engine, "UPDATE job SET state = 'answered', finished_at = now()")
    change(engine, "UPDATE job SET state = 'invalid', round = 2 WHERE position < 14")
    # Two jobs were not asked in their last round, six have two invalid answers in it, and six have three.
    change(
        engine,
        """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker)
           SELECT gen_random_uuid(), job.id, CASE WHEN position < 2 THEN 1 ELSE 2 END, 1, now(), 5, 'invalid', 'w'
           FROM job CROSS JOIN generate_series(1, 3) AS call
           WHERE position < 14 AND (call < 3 OR position >= 8)""",
    )
    study = write_study(tmp_path, items=10, retry={"invalid": retries})

    assert to_do(study, stack) == left
    assert enqueue(engine, read_study(study)).reopened == left


def test_the_pace_is_that_of_the_latest_calls(stack: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    study = plan(engine, tmp_path, items=50)
    beat(engine, "simulated.sim", slots=1)
    for latency_ms, ago_s in ((9000, 3600), (1000, 0), (9000, 7200)):
        change(
            engine,
            """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker)
               SELECT gen_random_uuid(), job.id, 1, 1, now() - make_interval(secs => :ago), :latency, 'answered', 'w'
               FROM job CROSS JOIN generate_series(1, 20) WHERE study = :study""",
            study=study,
            latency=latency_ms,
            ago=ago_s,
        )

    assert model_told(planned(tmp_path / "study.yaml", stack, "--json"))["takes"]["seconds"] == 100.0


def test_the_whole_study_names_what_is_not_known_of_it(alone: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(yaml.safe_dump(POOLS), encoding="utf-8")
    models = [{"name": "paid", "provider": "simulated", "pools": ["a"]}, {"name": "free", "provider": "simulated"}]
    study = write_study(tmp_path, models=models)

    done = planned(study, alone | {"BOTHWAYS_POOLS": str(tmp_path / "quotas.yaml")})
    told = json.loads(planned(study, alone | {"BOTHWAYS_POOLS": str(tmp_path / "quotas.yaml")}, "--json").stdout)

    line = done.stdout[done.stdout.index("in all: ") :].replace("\n", " ")
    assert "how long is not known because of free; $" in line
    assert "without free, whose costs are not known" in line
    assert (told["takes"], told["time_not_known_of"], told["costs_not_known_of"]) == (None, ["free"], ["free"])


def test_a_mistake_in_the_file_is_refused_as_by_a_run(alone: dict[str, str], tmp_path: Path) -> None:
    done = planned(write_study(tmp_path, repeats=0), alone)

    assert done.returncode == 2
    assert "repeats: " in done.stderr
