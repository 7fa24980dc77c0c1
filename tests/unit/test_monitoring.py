"""How Flower is started, as far as it needs no Flower."""

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contract.errors import StackError
from ops.cli.stack import monitor
from ops.local.stack import Addresses, LocalStack
from ops.monitoring.flower import command, flower_environment, flower_options, kept_password, start_flower

ROOT = Path(__file__).parents[2]


def test_the_command_line_says_where_the_password_is_and_not_what_it_is(tmp_path: Path) -> None:
    password_file = kept_password(tmp_path)

    line = command(5555, password_file)

    assert line[line.index("--password-file") + 1] == str(password_file)
    assert line[line.index("--port") + 1] == "5555"
    assert password_file.read_text(encoding="utf-8") not in " ".join(line)


def test_flower_is_read_only_bounded_and_heard_on_this_machine_only() -> None:
    options = flower_options(5555)

    assert {"--read_only", "--address=127.0.0.1", "--port=5555", "--max_tasks=10000"} <= set(options)
    assert not [option for option in options if option.startswith(("--persistent", "--db", "--basic_auth"))]


def test_a_configuration_of_flower_in_the_current_folder_is_not_run() -> None:
    assert f"--conf={os.devnull}" in flower_options(5555)


def test_of_the_users_variables_for_flower_none_is_left() -> None:
    theirs = {"PATH": "/bin", "FLOWER_UNAUTHENTICATED_API": "true", "FLOWER_BASIC_AUTH": "a:b", "FLOWER_READ_ONLY": "0"}

    assert flower_environment(theirs, "secret") == {"PATH": "/bin", "FLOWER_BASIC_AUTH": "bothways:secret"}


@pytest.mark.parametrize("password", ["", "two,logins"])
def test_a_password_that_would_leave_the_door_open_is_refused(password: str) -> None:
    with pytest.raises(StackError, match="must not be empty and must have no comma"):
        flower_environment({}, password)


def test_the_password_is_long_private_and_kept(tmp_path: Path) -> None:
    first = kept_password(tmp_path / "state").read_text(encoding="utf-8")
    again = kept_password(tmp_path / "state")

    assert again.read_text(encoding="utf-8") == first
    assert len(first) >= 32
    assert stat.S_IMODE(again.stat().st_mode) == 0o600
    assert stat.S_IMODE(again.parent.stat().st_mode) == 0o700


def test_two_states_have_two_passwords(tmp_path: Path) -> None:
    assert kept_password(tmp_path / "a").read_bytes() != kept_password(tmp_path / "b").read_bytes()


def test_a_missing_flower_is_told_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(StackError, match=r"pip install 'bothways\[monitor\]'"):
        start_flower(tmp_path, {})

    assert list(tmp_path.iterdir()) == []


class RunningStack(LocalStack):
    """A stack that says it runs."""

    @property
    def addresses(self) -> Addresses:
        return Addresses(database_url="postgresql://x", broker_url="redis://x", embedded_url="http://x")


def test_a_stack_without_flower_goes_on_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with monitor(tmp_path, RunningStack(tmp_path)) as line:
        assert line == "no Flower: the monitor needs the package flower: pip install 'bothways[monitor]'"


def test_flower_is_not_imported_before_it_is_needed() -> None:
    script = "import sys, ops.monitoring.__main__; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, text=True).split()

    assert "ops.monitoring.flower" in loaded
    assert "flower" not in loaded


@pytest.mark.parametrize(
    ("password", "problem"), [(None, "No such file"), ("", "must not be empty"), ("good", "BOTHWAYS_BROKER_URL")]
)
def test_what_goes_wrong_at_the_start_is_one_line(tmp_path: Path, password: str | None, problem: str) -> None:
    password_file = tmp_path / "password"
    if password is not None:
        password_file.write_text(password, encoding="utf-8")
    bad_broker = {"BOTHWAYS_DATABASE_URL": "postgresql://x", "BOTHWAYS_BROKER_URL": "http://secret-of-mine@x"}
    environment = os.environ | (bad_broker if password else bad_broker | {"BOTHWAYS_BROKER_URL": "redis://x"})

    ended = subprocess.run(command(1, password_file), env=environment, capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert problem in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "secret-of-mine" not in ended.stderr
