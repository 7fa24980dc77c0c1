"""`bothways fetch` as a process: another one takes over where a killed one was."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import item_rows, write_study
from tests.file_server import Fault, FileServer, file_server, sha256

ROOT = Path(__file__).parents[2]
ROWS = "".join(json.dumps(row) + "\n" for row in item_rows(4000)).encode()
CUT = 300_000

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server that falls silent in the middle of its first answer."""
    with file_server() as running:
        running.content = ROWS
        running.faults = [Fault(cut=CUT, silent=True)]
        yield running


@pytest.fixture
def study(tmp_path: Path, server: FileServer) -> Path:
    """A study whose data live there."""
    dataset = {"name": "capitals", "loader": "items", "prompt": "two-choice-low", "expect": {"items": 4000}}
    return write_study(tmp_path, datasets=[dataset | {"path": f"{server.base_url}/rows.jsonl"}])


@pytest.fixture
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled modules, so that not every start compiles them again."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def start(study: Path, bytecode: Path) -> Start:
    """Starts the command on the study."""
    left_out = ("BOTHWAYS_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    cache = {"BOTHWAYS_CACHE": str(study.parent / "cache"), "PYTHONPYCACHEPREFIX": str(bytecode)}

    def call(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ops.cli", "fetch", str(study), *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, env=kept | cache, stdout=pipe, stderr=pipe, text=True)

    return call


def until(done: Callable[[], bool]) -> None:
    """Wait for what comes within seconds."""
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def held(study: Path) -> int:
    """How many bytes of the file have come."""
    return sum(part.stat().st_size for part in (study.parent / "cache").glob("*/rows.jsonl.part"))


def test_a_process_that_waits_for_another_goes_on_where_that_one_was_killed(
    start: Start, study: Path, server: FileServer
) -> None:
    with start() as first:
        until(lambda: held(study) == CUT)
        with start("--json") as second:
            assert second.stderr is not None
            assert second.stderr.readline() == "another process fetches rows.jsonl\n"
            assert len(server.received) == 1
            first.kill()
            out, err = second.communicate(timeout=30)

    (told,) = json.loads(out)
    assert second.returncode == 0
    assert (told["bytes"], told["sha256"]) == (len(ROWS), sha256(ROWS))
    assert Path(told["path"]).read_bytes() == ROWS
    assert server.ranges == [None, f"bytes={CUT}-"]
    assert f"fetched rows.jsonl: {len(ROWS):,} bytes" in err
