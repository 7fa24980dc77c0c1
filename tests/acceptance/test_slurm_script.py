"""The script for clusters: Ollama and a worker start together; whatever ends them, nothing is lost or left running."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from producer.dispatch import Dispatcher
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import ROOT, Running, Stage
from tests.jobs import at_work, await_that, plan

pytestmark = pytest.mark.xdist_group("slurm")
stage = end_to_end.stage
SCRIPT = ROOT / "ops" / "slurm" / "gpu_host.sbatch"

OLLAMA = f"""#!{sys.executable}
import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.fake_ollama import BEHAVIOURS, FakeOllama, serve
assert sys.argv[1:] == ["serve"]
with open(os.environ["HOME"] + "/ollama.json", "w") as told:
    json.dump(dict(os.environ), told)
server = FakeOllama(port=int(os.environ["OLLAMA_HOST"].removeprefix("127.0.0.1:")))
server.parallel, server.generation_s = int(os.environ["OLLAMA_NUM_PARALLEL"]), 0.7
serve(server, BEHAVIOURS)
"""
"""Ollama's command. It takes its time for an answer, and its end breaks off what it is answering."""

TELLING_WORKER = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["HOME"] + "/worker.json", "w") as told:
    json.dump(dict(os.environ, ARGUMENTS=" ".join(sys.argv[1:])), told)
"""
"""A worker's command that only writes down what it was given."""

IDLE_WORKER = '#!/bin/sh\necho "$$" > "$HOME/worker.pid"; exec sleep 600\n'


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of a cluster, with a folder that holds its commands, its home and what is temporary there."""

    stage: Stage
    folder: Path

    def put(self, command: str, text: str) -> None:
        """Put a command on the PATH."""
        path = self.folder / "bin" / command
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def start(self, **variables: str) -> Running:
        """The script as a job begins it, with these variables beside or instead of those of a job that can work."""
        own = {name: value for name, value in self.stage.environment.items() if not name.startswith("SLURM_")}
        environment = own | {
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.defpath}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "BOTHWAYS_SLOTS": "2",
        }
        name = f"job-{len(list(self.folder.glob('*.err')))}"
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                ["bash", SCRIPT],
                env=environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
            )
        self.stage.processes.callback(process.wait)
        return Running(process=process, out=out, err=err)

    def left_over(self) -> list[str]:
        """The processes and temporary files of all that was started here."""
        return [str(each) for each in (*(self.folder / "tmp").iterdir(), *self.running())]

    def running(self) -> list[psutil.Process]:
        """The processes of all that was started here."""
        home = str(self.folder / "home")
        return [each for each in psutil.process_iter() if _environment(each).get("HOME") == home]

    def await_worker(self) -> None:
        """Wait until the idle worker was started."""
        await_that((self.folder / "home" / "worker.pid").exists, seconds=60)

    def told(self, command: str) -> dict[str, str]:
        """The environment that a command was given."""
        text = (self.folder / "home" / f"{command}.json").read_text(encoding="utf-8")
        return dict(json.loads(text))


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


@pytest.fixture
def node(stage: Stage, tmp_path: Path) -> Iterator[Node]:
    """A node with a fake Ollama; the command of the worker is the real one."""
    node = Node(stage=stage, folder=tmp_path / "node")
    for name in ("bin", "home", "tmp"):
        (node.folder / name).mkdir(parents=True)
    node.put("ollama", OLLAMA)
    yield node
    for process in node.running():
        process.kill()


def tell_shell(job: Running) -> None:
    """What Slurm does before the time limit with `--signal=B:TERM`."""
    job.process.send_signal(signal.SIGTERM)


def tell_all(job: Running) -> None:
    """What `scancel` does on clusters that track processes by their parents: the worker is told twice."""
    shell = psutil.Process(job.process.pid)
    for process in (shell, *shell.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            if "serve" not in process.cmdline():  # that one would break off what is asked
                process.send_signal(signal.SIGTERM)


def press_ctrl_c(job: Running) -> None:
    """What a terminal does: the shell and all that stayed in its group are told."""
    os.killpg(job.process.pid, signal.SIGINT)


def test_a_job_that_is_told_to_stop_finishes_its_calls_and_gives_the_rest_back(
    node: Node, dispatcher: Dispatcher
) -> None:
    model = {"name": "a", "provider": "ollama", "model": "good", "timeout_s": 20}
    formats = [{"format": "closed", "sampling": {"temperature": 0.7, "max_tokens": 8, "seed": 1}}]
    plan(node.stage.engine, node.stage.folder / "study", items=300, models=[model], formats=formats)
    ways = (tell_shell, tell_all, press_ctrl_c)
    with at_work(dispatcher):
        jobs = [node.start(SLURM_JOB_ID=str(number)) for number in range(len(ways))]
        await_that(lambda: len(node.stage.workers_at_work()) == len(ways), seconds=60)
        for tell, job in zip(ways, jobs, strict=True):
            tell(job)
        codes = [job.end() for job in jobs]
        left_over, states = node.left_over(), node.stage.states()
    failed = node.stage.rows("SELECT error_message FROM attempt WHERE outcome <> 'answered'")

    assert codes == [0] * len(ways)
    assert all(re.search("told to stop.+\n(.+\n)*gpu_host: the worker has left\n$", job.said) for job in jobs)
    assert left_over == []
    assert set(states) <= {"answered", "pending", "queued"}
    assert set(states) > {"answered"}
    assert node.stage.count("losses > 0") == 0
    assert failed == []


def test_a_job_whose_ollama_dies_stops_its_worker_and_fails(node: Node) -> None:
    node.put("bothways", IDLE_WORKER)
    job = node.start()
    node.await_worker()
    (ollama,) = (each for each in node.running() if each.cmdline()[-1] == "serve")
    ollama.kill()

    assert job.end() == 1
    assert "Ollama ended by itself (code 137); the end of its log:\nserving http://127.0.0.1:" in job.said
    assert node.left_over() == []


def test_a_job_whose_worker_dies_stops_its_ollama_and_fails(node: Node) -> None:
    node.put("bothways", "#!/bin/sh\nsleep 0.5; exit 3\n")
    job = node.start()

    assert job.end() == 3
    assert job.said.endswith("the worker ended by itself (code 3)\n")
    assert node.left_over() == []


def test_a_job_whose_ollama_does_not_start_says_why_and_fails(node: Node) -> None:
    node.put("ollama", "#!/bin/sh\necho 'no such GPU' >&2; exit 7\n")
    job = node.start()

    assert job.end() == 1
    assert job.said == "gpu_host: Ollama ended before it answered (code 7); the end of its log:\nno such GPU\n"
    assert node.left_over() == []


def test_nothing_outlives_a_job_whose_shell_is_killed(node: Node) -> None:
    node.put("bothways", IDLE_WORKER)
    job = node.start()
    node.await_worker()
    job.process.kill()

    await_that(lambda: node.running() == [])


def test_jobs_on_one_node_have_an_ollama_each(node: Node) -> None:
    node.put("ollama", OLLAMA.replace("import json", "import time; time.sleep(1)\nimport json", 1))
    node.put("bothways", IDLE_WORKER)
    jobs = [node.start(SLURM_JOB_ID=str(number)) for number in (7, 8)]
    await_that(lambda: all("Ollama answers" in job.said for job in jobs), seconds=60)
    for job in jobs:
        tell_shell(job)

    assert [job.end() for job in jobs] == [0, 0]
    assert len({port for job in jobs for port in re.findall(r"127\.0\.0\.1:\d+", job.said)}) == 2
    assert node.left_over() == []


def test_a_worker_finds_the_control_machine_and_only_it_gets_the_password(node: Node) -> None:
    node.put("bothways", TELLING_WORKER)
    password = node.folder / "password"
    password.write_text("s3cret\n", encoding="utf-8")
    password.chmod(0o600)
    own = {"BOTHWAYS_DATABASE_URL": "", "BOTHWAYS_BROKER_URL": "", "BOTHWAYS_CONTROL": "control.example.org"}
    job = node.start(**own, BOTHWAYS_PASSWORD_FILE=str(password), BOTHWAYS_GRACE="40", SLURM_JOB_ID="9")
    job.end()
    worker, ollama = node.told("worker"), node.told("ollama")

    assert worker["ARGUMENTS"] == "worker --provider ollama --slots 2 --grace 40 --await 60 --name slurm-9"
    assert worker["BOTHWAYS_DATABASE_URL"] == "postgresql+psycopg://bothways@control.example.org:5432/bothways"
    assert worker["BOTHWAYS_BROKER_URL"] == "redis://control.example.org:6379/0"
    assert worker["BOTHWAYS_PASSWORD"] == "s3cret"  # noqa: S105 - this page's own
    assert worker["BOTHWAYS_OLLAMA_URL"] == f"http://{ollama['OLLAMA_HOST']}"
    assert (ollama["OLLAMA_NUM_PARALLEL"], ollama["OLLAMA_MAX_LOADED_MODELS"]) == ("2", "1")
    assert not {"BOTHWAYS_PASSWORD", "BOTHWAYS_DATABASE_URL", "BOTHWAYS_BROKER_URL"} & set(ollama)
    assert "s3cret" not in job.said


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"BOTHWAYS_DATABASE_URL": "", "BOTHWAYS_SLOTS": ""},
            r"missing: BOTHWAYS_CONTROL \(.+\); the password \(.+/.config/bothways/password, .+\); BOTHWAYS_SLOTS \(.+",
        ),
        ({"BOTHWAYS_BROKER_URL": "", "BOTHWAYS_PASSWORD": "secret"}, r"missing: BOTHWAYS_CONTROL \([^;]+; give .+"),
        ({"BOTHWAYS_SLOTS": "many"}, "BOTHWAYS_SLOTS must be a whole number from 1, not many"),
        ({"BOTHWAYS_GRACE": "4"}, "BOTHWAYS_GRACE must be whole seconds from 5, not 4"),
        ({"BOTHWAYS_PASSWORD_FILE": "/none"}, "there is no /none, which BOTHWAYS_PASSWORD_FILE names"),
        ({"BOTHWAYS_PASSWORD_FILE": __file__}, r".+ must be yours, and nobody else may read it: chmod 600 .+"),
        ({"BOTHWAYS_VENV": "/none"}, r"there is no bothways in /none/bin: .+"),
        ({"PATH": os.defpath}, r"there is no bothways on the PATH: set BOTHWAYS_VENV .+"),
    ],
)
def test_a_job_that_cannot_work_says_in_one_line_what_is_missing(
    variables: dict[str, str], message: str, node: Node
) -> None:
    job = node.start(**variables)

    assert job.end() == 2
    assert re.fullmatch(f"gpu_host: {message}\n", job.said), job.said
    assert node.left_over() == []
