"""The command as people call it: what goes wrong ends in one clear line and an exit code, never in a traceback."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

from ops.local.engines import free_port
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.builders import write_study
from tests.fake_openai import fake_openai

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"  # noqa: S105 - what must not be printed
TABLES = ("study", "study_revision", "item", "condition", "job")

# One job whose only completion could not be read; the others are answered.
UNREADABLE = """
    WITH kept AS (
        INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker)
        SELECT gen_random_uuid(), id, 1, 1, now(), 5, 'invalid', 'w' FROM job WHERE position = 0
    ) UPDATE job SET state = CASE position WHEN 0 THEN 'invalid' ELSE 'answered' END
"""

Bothways = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled modules, so that not every start compiles them again."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def no_stack(tmp_path: Path, bytecode: Path) -> dict[str, str]:
    """An environment that names no database and no broker, on an empty state folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BOTHWAYS_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    state = tmp_path / "state"
    state.mkdir()
    return kept | {"BOTHWAYS_STATE": str(state), "PYTHONPYCACHEPREFIX": str(bytecode)}


@pytest.fixture
def stack(no_stack: dict[str, str], database_url: str, broker_url: str) -> dict[str, str]:
    """An environment that names this test's database and broker."""
    return no_stack | {"BOTHWAYS_DATABASE_URL": database_url, "BOTHWAYS_BROKER_URL": broker_url}


@pytest.fixture
def bothways(stack: dict[str, str]) -> Bothways:
    """The command on this test's database and broker."""

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_command(stack | environment, *arguments)

    return call


def run_command(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `bothways` to its end."""
    command = [sys.executable, "-m", "ops.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def the_line(done: subprocess.CompletedProcess[str], *, code: int) -> str:
    """The one line of a command that ended with this code and printed no result."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("bothways: ")
    return line


def counts(engine: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with engine.connect() as connection:
        return {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
            for table in TABLES
        }


def plan(engine: Engine, folder: Path) -> Path:
    """Enqueue a study; returns its file."""
    path = write_study(folder)
    enqueue(engine, read_study(path))
    return path


def change(engine: Engine, statement: str) -> None:
    """Run one statement."""
    with engine.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize("command", [("status",), ("run", "{study}"), ("worker",)], ids=["status", "run", "worker"])
def test_without_a_stack_a_command_says_how_to_get_one(
    no_stack: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    study = write_study(tmp_path / "study")

    done = run_command(no_stack, *(word.format(study=study) for word in command))

    line = the_line(done, code=3)
    assert "start `bothways up` in another terminal, or set BOTHWAYS_DATABASE_URL, BOTHWAYS_BROKER_URL" in line
    assert no_stack["BOTHWAYS_STATE"] in line


@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param("postgresql+psycopg://postgres@/bothways?host={folder}/gone", "does not answer", id="no socket"),
        pytest.param(
            f"postgresql+psycopg://me:{SECRET}@127.0.0.1:{{port}}/bothways", "does not answer", id="nobody listens"
        ),
        pytest.param("nowhere", "BOTHWAYS_DATABASE_URL", id="no address"),
        pytest.param(f"mysql://me:{SECRET}@127.0.0.1/bothways", "BOTHWAYS_DATABASE_URL", id="another database"),
    ],
)
def test_a_database_that_cannot_be_reached_is_named(bothways: Bothways, tmp_path: Path, url: str, said: str) -> None:
    address = url.format(folder=tmp_path, port=free_port())

    line = the_line(bothways("status", BOTHWAYS_DATABASE_URL=address), code=3)

    assert said in line
    assert SECRET not in line


def test_a_database_address_without_a_driver_is_understood(bothways: Bothways, database_url: str) -> None:
    done = bothways("status", "--json", BOTHWAYS_DATABASE_URL=database_url.replace("+psycopg", ""))

    assert (done.returncode, json.loads(done.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param("redis://127.0.0.1:{port}/0", "the broker does not answer at 127.0.0.1:{port}", id="dead"),
        pytest.param(
            f"redis://:{SECRET}@127.0.0.1:{{live}}/0",
            "refuses the password: set BOTHWAYS_PASSWORD right, or BOTHWAYS_BROKER_URL",
            id="password",
        ),
        pytest.param("nowhere", "BOTHWAYS_BROKER_URL", id="no address"),
    ],
)
def test_a_broker_that_cannot_be_used_is_named(
    bothways: Bothways, broker_url: str, tmp_path: Path, url: str, said: str
) -> None:
    ports = {"port": free_port(), "live": make_url(broker_url).port}

    done = bothways("run", write_study(tmp_path), "--wait", BOTHWAYS_BROKER_URL=url.format(**ports))

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("bothways: ")
    assert said.format(**ports) in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


@pytest.mark.parametrize("command", ["status", "run"])
def test_a_database_without_tables_says_what_to_run(
    bothways: Bothways, engine: Engine, tmp_path: Path, command: str
) -> None:
    change(engine, "DROP SCHEMA public CASCADE")
    change(engine, "CREATE SCHEMA public")
    arguments = [write_study(tmp_path)] if command == "run" else []

    line = the_line(bothways(command, *arguments), code=3)

    assert "has no tables yet: run `bothways migrate`" in line


def test_migrating_makes_the_tables(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    change(engine, "DROP SCHEMA public CASCADE")
    change(engine, "CREATE SCHEMA public")

    migrated = bothways("migrate")
    done = bothways("run", write_study(tmp_path))

    assert (migrated.returncode, done.returncode) == (0, 0)
    assert counts(engine)["job"] == 8


@pytest.mark.parametrize("bad", [{"repeats": "many"}, {"models": []}], ids=["type", "empty"])
def test_a_bad_study_file_writes_nothing(
    bothways: Bothways, engine: Engine, tmp_path: Path, bad: dict[str, Any]
) -> None:
    path = write_study(tmp_path, **bad)

    line = the_line(bothways("run", path), code=2)

    (field,) = bad
    assert line.startswith(f"bothways: {path}:")
    assert f" {field}: " in line
    assert counts(engine) == dict.fromkeys(TABLES, 0)


def test_a_bad_study_file_is_told_even_without_a_stack(no_stack: dict[str, str], tmp_path: Path) -> None:
    path = write_study(tmp_path, repeats=0)

    assert f"{path}:19: repeats: " in the_line(run_command(no_stack, "run", path), code=2)


@pytest.mark.parametrize("command", ["status", "report"])
def test_an_unknown_study_is_refused_with_the_known_ones(
    bothways: Bothways, engine: Engine, tmp_path: Path, command: str
) -> None:
    change(engine, "INSERT INTO study (name, revision, created_at) VALUES ('trial', 1, now()), ('other', 1, now())")

    line = the_line(bothways(command, "trail", *(["--out", tmp_path] if command == "report" else [])), code=2)

    assert line == "bothways: no study 'trail' in the database; known: other, trial"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["enqueue"], "No such command 'enqueue'", id="unknown command"),
        pytest.param(["status", "--jsn"], "No such option: --jsn", id="unknown option"),
        pytest.param(["run"], "Missing argument 'STUDY'", id="missing argument"),
        pytest.param(["status", "one", "two"], "unexpected extra argument", id="one argument too many"),
        pytest.param(["run", "study.yaml", "--limit", "0"], "--limit", id="value out of range"),
    ],
)
def test_a_mistyped_command_ends_in_one_usage_message(
    no_stack: dict[str, str], arguments: list[str], said: str
) -> None:
    done = run_command(no_stack, *arguments)

    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("Usage: ") == 1
    assert done.stderr.count("Error: ") == 1
    assert said.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_running_twice_says_that_nothing_is_new(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    path = write_study(tmp_path)

    first, second = bothways("run", path), bothways("run", path)

    assert (first.returncode, second.returncode) == (0, 0)
    assert "study trial, revision 1: jobs 8 new" in first.stderr
    assert "study trial, revision 2: jobs 8 as they were" in second.stderr
    assert "new" not in second.stderr.splitlines()[0]
    assert "no worker serves simulated.sim" in second.stderr
    assert counts(engine)["job"] == 8


def test_the_status_of_a_study_is_shown_and_told_to_programs(
    bothways: Bothways, engine: Engine, tmp_path: Path
) -> None:
    path = plan(engine, tmp_path)
    change(engine, "UPDATE job SET state = 'answered' WHERE position < 3")
    change(engine, "UPDATE job SET planned = false WHERE position = 7")

    shown, told = bothways("status", path), bothways("status", "--json")

    assert (shown.returncode, told.returncode) == (0, 0)
    assert "3 of 7 jobs" in shown.stdout
    assert "1 jobs are no longer planned" in shown.stdout
    (study,) = json.loads(told.stdout)
    assert study["study"] == "trial"
    assert (study["state"], study["revision"], study["workers"], study["faults"]) == ("active", 1, 0, [])
    assert (study["planned"], study["finished"], study["unplanned"], study["done"]) == (7, 3, 1, False)
    (cell,) = study["cells"]
    assert (cell["model"], cell["dataset"], cell["jobs"]) == ("sim", "capitals", {"answered": 3, "pending": 4})
    (waiting,) = study["waiting"]
    assert (waiting["queue"], waiting["stopped"], waiting["served"]) == ("simulated.sim", None, False)
    assert (waiting["activity"], waiting["for_parents"], waiting["rests"]) == ("active", False, None)


def test_a_database_without_a_study_has_an_empty_status(bothways: Bothways) -> None:
    shown = bothways("status")

    assert (shown.returncode, shown.stdout) == (0, "")
    assert "no study yet: bothways run STUDY.yaml" in shown.stderr


def test_a_report_on_nothing_finished_says_that_everything_is_missing(
    bothways: Bothways, engine: Engine, tmp_path: Path
) -> None:
    plan(engine, tmp_path)

    done = bothways("report", "trial", "--out", tmp_path / "report")

    assert done.returncode == 0, done.stderr
    assert "missing" in done.stdout
    figures = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (figures["study"]["planned"], figures["study"]["finished"]) == (8, 0)
    assert {"report.txt", "report.json", "table1.tex", "figure2.pdf", "index.html"} <= {
        path.name for path in (tmp_path / "report").iterdir()
    }


def test_a_model_that_its_server_does_not_offer_is_refused(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    with fake_openai() as server:
        models = [{"name": "small", "provider": "openai", "base_url": server.base_url, "model": "no-such-model"}]
        path = write_study(tmp_path, models=models)
        line = the_line(bothways("run", path), code=2)

    number = path.read_text(encoding="utf-8").splitlines().index("  model: no-such-model") + 1
    assert line.startswith(
        f"bothways: {path}:{number}: models[0].model: the server offers no model 'no-such-model'; it offers: "
    )
    assert counts(engine) == dict.fromkeys(TABLES, 0)


def test_a_model_without_any_server_is_refused(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    path = write_study(tmp_path, models=[{"name": "small", "provider": "openai", "model": "smollm2"}])

    line = the_line(bothways("run", path), code=2)

    assert "models[0].model: names no base_url and no embedded server runs here" in line
    assert counts(engine) == dict.fromkeys(TABLES, 0)


def test_a_server_that_cannot_be_asked_from_here_is_only_mentioned(
    bothways: Bothways, engine: Engine, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    models = [{"name": "small", "provider": "openai", "base_url": address, "model": "smollm2"}]

    done = bothways("run", write_study(tmp_path, models=models))

    assert done.returncode == 0
    assert "note: small: could not be asked from here which models it serves" in done.stderr
    assert counts(engine)["job"] == 8


def test_an_address_that_is_none_is_refused_with_its_field(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    models = [{"name": "small", "provider": "openai", "base_url": "http://host:port/v1", "model": "smollm2"}]

    line = the_line(bothways("run", write_study(tmp_path, models=models)), code=2)

    assert "models[0].base_url: " in line
    assert counts(engine) == dict.fromkeys(TABLES, 0)


def test_a_cancelled_study_is_refused(bothways: Bothways, engine: Engine, tmp_path: Path) -> None:
    path = plan(engine, tmp_path)
    change(engine, "UPDATE study SET state = 'cancelled'")

    assert "the study trial was cancelled" in the_line(bothways("run", path), code=2)


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        pytest.param("UPDATE job SET state = 'answered'", 0, "8 of 8 jobs", id="all answered"),
        pytest.param(UNREADABLE, 0, "7 answered, 1 invalid, 0 refused, 0 failed", id="one could not be read"),
        pytest.param(
            "UPDATE job SET state = CASE position WHEN 0 THEN 'failed' ELSE 'answered' END", 1, "1 failed", id="a fault"
        ),
        pytest.param("UPDATE study SET state = 'paused'", 4, "the study is paused", id="paused"),
    ],
)
def test_the_exit_code_says_how_a_study_ended(
    bothways: Bothways, engine: Engine, tmp_path: Path, statement: str, code: int, said: str
) -> None:
    path = plan(engine, tmp_path)
    change(engine, statement)

    done = bothways("run", path, "--wait")

    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_following_says_that_nothing_is_lost(
    stack: dict[str, str], engine: Engine, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "ops.cli", "run", str(write_study(tmp_path)), "--wait"]

    with subprocess.Popen(command, cwd=ROOT, env=stack, stderr=subprocess.PIPE, text=True) as following:
        assert following.stderr is not None
        assert "8 new" in following.stderr.readline()
        assert "0 of 8 jobs" in following.stderr.readline()
        following.send_signal(signal.SIGINT)
        _, rest = following.communicate(timeout=30)

    assert following.returncode == 130
    assert rest.splitlines()[-1].startswith("no longer watching, and nobody is asking; what is done is kept")
    assert "Traceback" not in rest
    assert counts(engine)["job"] == 8


def test_a_stack_that_was_killed_is_told_apart_from_a_database_that_is_away(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    addresses = "BOTHWAYS_DATABASE_URL=postgresql+psycopg://postgres@/bothways?host=/nowhere&port=5432"
    (state / "stack.env").write_text(f"{addresses}\nBOTHWAYS_BROKER_URL=redis://127.0.0.1:1/0\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOTHWAYS_")}

    line = the_line(run_command(environment | {"BOTHWAYS_STATE": str(state)}, "status"), code=3)

    assert line == f"bothways: the stack on {state} ended without a word: start `bothways up` again, nothing is lost"


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_measured(
    bothways: Bothways, engine: Engine, tmp_path: Path
) -> None:
    plan(engine, tmp_path / "study")
    (tmp_path / "file").touch()

    line = the_line(bothways("report", "trial", "--out", tmp_path / "file" / "report"), code=2)

    assert "cannot be written to: Not a directory; name another folder with --out" in line
