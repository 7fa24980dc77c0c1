"""What the compose files promise before anything of them runs: pinned images, closed doors, no default for a secret."""

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "docker-compose.yml"
GPU_HOST = ROOT / "ops/docker/gpu-host.yml"
FILES = [SERVER, GPU_HOST]

_VARIABLE = re.compile(r"\$\{(BOTHWAYS_\w+)(:[-?])?")


def text(file: Path) -> str:
    """The file without its comments."""
    return re.sub(r"(^|\s)#.*", "", file.read_text(encoding="utf-8"))


def services(file: Path) -> dict[str, dict[str, Any]]:
    """The services of a compose file, anchors resolved and variables as they stand."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    return found


def ours(file: Path) -> dict[str, dict[str, Any]]:
    """Those that run a program of ours."""
    return {name: each for name, each in services(file).items() if "BOTHWAYS_IMAGES" in each["image"]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_image_is_pinned(file: Path) -> None:
    others = {name: each for name, each in services(file).items() if name not in ours(file)}
    tags = {each["image"].rpartition("/")[2].partition(":")[2] for each in others.values()}

    assert tags
    assert all(re.fullmatch(r"[0-9]+(\.[0-9]+)*", tag) for tag in tags), tags
    assert all(each["image"].endswith(f":${{BOTHWAYS_TAG:-{version('bothways')}}}") for each in ours(file).values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_password_has_no_default(file: Path) -> None:
    uses = [how for name, how in _VARIABLE.findall(text(file)) if name.endswith("PASSWORD")]

    assert uses
    assert set(uses) == {":?"}


def test_ports_are_open_on_this_machine_only_unless_told_otherwise() -> None:
    ports = [port for each in services(SERVER).values() for port in each.get("ports", [])]

    assert len(ports) == 3
    assert all(re.match(r"\$\{BOTHWAYS_(FLOWER_)?BIND:-127\.0\.0\.1\}:", port) for port in ports)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_our_programs_have_no_rights_that_they_do_not_need(file: Path) -> None:
    for each in ours(file).values():
        assert (each["read_only"], each["cap_drop"], each["security_opt"]) == (True, ["ALL"], ["no-new-privileges"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_runs_all_the_time_is_started_again_has_a_health_check_and_logs_that_end(file: Path) -> None:
    lasting = {name: each for name, each in services(file).items() if name not in ("migrate", "bothways")}

    for each in lasting.values():
        assert each["restart"] == "unless-stopped"
        assert each["healthcheck"]["test"]
        assert each["logging"]["options"]["max-size"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_program_has_longer_to_stop_than_it_takes(file: Path) -> None:
    for each in ours(file).values():
        command = each.get("command", [])
        written = command[command.index("--grace") + 1] if "--grace" in command else "${BOTHWAYS_GRACE:-10}"
        grace_s = float(re.fullmatch(r"\$\{BOTHWAYS_GRACE:-(\d+)\}", written)[1])  # type: ignore[index]
        number, unit = re.fullmatch(r"(\d+)([sm])", each["stop_grace_period"]).groups()  # type: ignore[union-attr]
        assert float(number) * {"s": 1, "m": 60}[unit] > grace_s


def test_programs_stop_before_the_servers_that_they_store_in() -> None:
    lasting = {name: each for name, each in ours(SERVER).items() if name != "bothways"}

    assert all({"postgres", "valkey"} <= set(each["depends_on"]) for each in lasting.values())


def test_a_command_starts_nothing_by_itself() -> None:
    assert "depends_on" not in services(SERVER)["bothways"]


@pytest.mark.parametrize(("file", "worker"), [(SERVER, "worker-gpu"), (GPU_HOST, "worker")])
def test_a_worker_stops_before_the_model_server_that_it_asks(file: Path, worker: str) -> None:
    assert "ollama" in services(file)[worker]["depends_on"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_health_of_a_program_is_its_own(file: Path) -> None:
    asked = {name: each["healthcheck"]["test"] for name, each in ours(file).items() if "healthcheck" in each}

    for name, test in asked.items():
        command = services(file)[name]["command"]
        own = command[command.index("--name") + 1] if "--name" in command else "dispatcher"
        assert name == "flower" or test == ["CMD", "bothways", "health", "--name", own]


def test_services_see_nothing_of_the_folder_that_people_work_in() -> None:
    seen = {name for name, each in services(SERVER).items() for volume in each.get("volumes", []) if "FOLDER" in volume}

    assert seen == {"bothways"}


def test_what_a_command_fetches_is_kept_in_the_folder_that_people_work_in() -> None:
    command = services(SERVER)["bothways"]

    image = (ROOT / "ops/docker/Dockerfile").read_text(encoding="utf-8")
    (mounted,) = (volume.rpartition(":")[2] for volume in command["volumes"] if "FOLDER" in volume)
    assert f"WORKDIR {mounted}\n" in image
    assert not Path(command["environment"]["BOTHWAYS_CACHE"]).is_absolute()
    assert command["environment"].items() >= services(SERVER)["worker-api"]["environment"].items()


def test_a_gpu_host_needs_three_variables() -> None:
    required = {name for name, how in _VARIABLE.findall(text(GPU_HOST)) if how == ":?"}

    assert required == {"BOTHWAYS_CONTROL", "BOTHWAYS_PASSWORD", "BOTHWAYS_SLOTS"}


def test_the_example_of_the_variables_has_all_of_them() -> None:
    used = {name for name, _ in _VARIABLE.findall(text(SERVER))}
    shown = set(re.findall(r"^#?(BOTHWAYS_\w+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))

    assert shown == used
