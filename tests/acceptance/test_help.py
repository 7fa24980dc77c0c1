"""What a person learns without a manual: the help of every command, and the README."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from typer.core import TyperOption
from typer.main import get_command
from typer.testing import CliRunner

from ops.cli.main import app

README = Path(__file__).parents[2] / "README.md"
ROOT_COMMAND = get_command(app)
COMMANDS = tuple(getattr(ROOT_COMMAND, "commands", {}))
READS = ("status", "show", "report", "compare", "check", "plan", "hosts", "health", "pools", "reparse")
WRITES_FILES = ("fetch", "build", "audit")
BRINGS_IN = ("import",)
NAMES_ITS_MODEL = ("build",)
"""Where --model chooses none of a study's models but names the one to ask."""
STEERS = ("retry", "pause", "resume", "cancel")


def help_of(*command: str) -> str:
    """The help of a command, which must end well."""
    done = CliRunner().invoke(app, [*command, "--help"])
    assert done.exit_code == 0, done.output
    return done.output


def options_of(command: str) -> list[TyperOption]:
    """The options of a command that are its own."""
    return [option for option in ROOT_COMMAND.commands[command].params if isinstance(option, TyperOption)]  # type: ignore[attr-defined]


def test_the_commands_are_those_of_the_manual() -> None:
    text = help_of()

    assert set(COMMANDS) == {
        *("init", "check", "plan", "fetch", "run", "status", "show", "report", "compare", "reparse", "build", "audit"),
        *("import", "retry", "pause", "resume", "cancel"),
        *("hosts", "health", "pools", "up", "demo", "worker", "dispatch", "migrate"),
    }
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_shows_an_example_line(command: str) -> None:
    lines = help_of(command).splitlines()

    assert any(re.fullmatch(rf"  bothways {command}( .*)?", line) for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_a_command_name_commands_and_options_that_exist(command: str) -> None:
    examples = [line.split() for line in help_of(command).splitlines() if line.startswith("  bothways ")]

    for _, name, *words in examples:
        known = {flag for option in options_of(name) for flag in (*option.opts, *option.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is_for(command: str) -> None:
    assert [option.name for option in options_of(command) if not option.help] == []


def test_an_option_means_the_same_in_every_command() -> None:
    kinds: defaultdict[str, set[tuple[bool, str]]] = defaultdict(set)
    for command in COMMANDS:
        for option in options_of(command):
            base = str(option.type_descriptor.annotation).removeprefix("list[").rstrip("]")
            for flag in option.opts:
                kinds[flag].add((option.is_flag, base.removeprefix("<class '").removesuffix("'>")))

    assert {flag: kind for flag, kind in kinds.items() if len(kind) > 1} == {}


@pytest.mark.parametrize("flag", ["--json", "--model"])
def test_an_option_of_several_commands_begins_with_the_same_words(flag: str) -> None:
    commands = [command for command in COMMANDS if flag != "--model" or command not in NAMES_ITS_MODEL]
    told = [option.help for command in commands for option in options_of(command) if flag in option.opts]

    beginnings = {re.split(r"[,;.]", text or "")[0] for text in told}
    assert told
    assert len(beginnings) == 1, beginnings


@pytest.mark.parametrize("command", [*READS, *WRITES_FILES, *BRINGS_IN, *STEERS])
def test_what_a_command_tells_can_be_had_as_json(command: str) -> None:
    assert [option.is_flag for option in options_of(command) if "--json" in option.opts] == [True]


@pytest.mark.parametrize("command", ["show", *BRINGS_IN, *STEERS])
def test_what_concerns_models_can_be_had_for_one_model(command: str) -> None:
    assert "--model" in {flag for option in options_of(command) for flag in option.opts}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_shows_every_command(command: str) -> None:
    text = README.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line.startswith("    ")] + re.findall(r"`([^`\n]+)`", text)

    assert any(re.search(rf"\b{command}\b", piece) for piece in code)


def test_the_readme_names_no_command_that_does_not_exist() -> None:
    text = README.read_text(encoding="utf-8")

    named = set(re.findall(r"(?:^    |`)bothways ([a-z]+)", text, re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)
