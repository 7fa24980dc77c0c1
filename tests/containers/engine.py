"""Docker or Podman, whichever is here, and one compose project of it that is gone when the test ends."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "docker-compose.yml", Path(__file__).with_name("compose.yml"))
TAG = "compose-test"
TARGETS = ("producer", "worker", "analysis", "tools", "monitor")
COMMAND_S = 600.0

_PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"


def engine() -> str:
    """`docker` where it works and has compose, else `podman`; BOTHWAYS_ENGINE says otherwise."""
    named = os.environ.get("BOTHWAYS_ENGINE")
    if named:
        return named
    return "docker" if _works("docker", "info") and _works("docker", "compose", "version") else "podman"


def _works(*command: str) -> bool:
    found = shutil.which(command[0])
    return found is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def compose_command() -> list[str]:
    """The compose command of the engine; BOTHWAYS_COMPOSE says otherwise."""
    named = os.environ.get("BOTHWAYS_COMPOSE")
    if named:
        return shlex.split(named)
    return ["docker", "compose"] if engine() == "docker" else [str(Path(sys.executable).with_name("podman-compose"))]


def run(command: list[str], *, env: Mapping[str, str] | None = None, check: bool = True) -> str:
    """What a command says on standard output; what it said on both goes into the error."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build_images(project: "Project") -> None:
    """All images of this tree, as people build them; COMPOSE_TEST_BUILD_FLAGS are for an engine that needs some."""
    flags = shlex.split(os.environ.get("COMPOSE_TEST_BUILD_FLAGS", ""))
    if not flags:
        project.compose("build", profile="tools")
    for target in TARGETS if flags else ("analysis",):
        image = f"bothways-{target}:{TAG}"
        run([engine(), "build", *flags, "-f", "ops/docker/Dockerfile", "--target", target, "-t", image, "."])
    run([engine(), "build", *flags, "-f", "tests/containers/llm.Dockerfile", "-t", f"bothways-test-llm:{TAG}", "."])


def free_port() -> int:
    """A port of this machine that nobody listens to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True, kw_only=True)
class Project:
    """One compose project: `variables` are what its .env would hold, `folder` where its studies lie."""

    name: str
    variables: Mapping[str, str]
    files: tuple[Path, ...] = FILES

    def compose(self, *arguments: str, profile: str | None = None, check: bool = True) -> str:
        """Give the compose command, with all that the project needs to be told."""
        files = [part for file in self.files for part in ("-f", str(file))]
        profiles = [] if profile is None else ["--profile", profile]
        env = {**os.environ, **self.variables}
        return run([*compose_command(), "-p", self.name, *files, *profiles, *arguments], env=env, check=check)

    def bothways(self, *arguments: str) -> str:
        """What a command of ours says, given as a person would."""
        return self.compose("run", "--rm", "bothways", *arguments, profile="tools")

    def containers(self, service: str | None = None, *, every: bool = False) -> list[str]:
        """The ids of the running containers of a service, or of the whole project; `every` one, whether it runs."""
        wanted = [f"label={_PROJECT}={self.name}"] + ([f"label={_SERVICE}={service}"] if service else [])
        filters = [part for each in wanted for part in ("--filter", each)]
        return run([engine(), "ps", "-q", "--no-trunc", *(["-a"] if every else []), *filters]).split()

    def logs(self, service: str) -> str:
        """What the containers of a service have said."""
        said = [
            subprocess.run([engine(), "logs", each], capture_output=True, text=True, check=True)
            for each in self.containers(service, every=True)
        ]
        return "".join(each.stdout + each.stderr for each in said)

    def exec(self, service: str, *command: str) -> str:
        """Run a command in the first container of a service."""
        return run([engine(), "exec", self.containers(service)[0], *command])

    @property
    def network(self) -> str:
        """The network that its containers share."""
        return f"{self.name}_default"

    def take_down(self) -> None:
        """End it with all that it has made, whatever state it is in."""
        left = self.containers(every=True)
        if left:
            run([engine(), "rm", "-f", *left], check=False)
        self.compose("down", "-v", "-t", "5", check=False)


@contextmanager
def taken_down(project: Project) -> Iterator[Project]:
    """The project, which is gone at the end of the block, also after Ctrl-C."""
    try:
        yield project
    finally:
        project.take_down()
