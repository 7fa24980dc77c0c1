"""What a person sees while a file is fetched."""

from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from ops.cli import fetching
from producer.fetching.addresses import read_address
from producer.fetching.at_hand import Fetched

ADDRESS = read_address("https://example.org/data/rows.jsonl?key=secret")
FETCHED = Fetched(path=Path("cache/rows.jsonl"), address=ADDRESS.shown, bytes=2048, sha256="a" * 64, pinned=True)


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Standard error."""
    console = Console(file=StringIO(), force_terminal=request.param, width=100, soft_wrap=True, markup=False)
    monkeypatch.setattr(fetching, "err", console)
    return console


def test_a_terminal_shows_how_far_it_is_and_a_pipe_only_beginning_and_end(terminal: Console) -> None:
    shown = fetching.Shown()

    shown.began(ADDRESS)
    shown.came(0, None)
    shown.came(512, 2048)
    shown.waits("the server answers with status 503; trying again")
    shown.came(2048, 2048)
    shown.ended(FETCHED)

    assert isinstance(terminal.file, StringIO)
    text = terminal.file.getvalue()
    assert "secret" not in text
    assert ("kB" in text) == terminal.is_terminal
    lines = [line for line in text.splitlines() if "\x1b" not in line]
    if not terminal.is_terminal:
        assert lines == [
            "fetching https://example.org/data/rows.jsonl",
            "the server answers with status 503; trying again",
            "fetched rows.jsonl: 2,048 bytes in 0.0 s",
        ]
    assert "write beside its path" not in text


def test_ctrl_c_ends_the_command_and_keeps_what_has_come(terminal: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Fetched:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "_open", lambda _: interrupted)

    with pytest.raises(typer.Exit) as raised:
        fetching.Fetching()(ADDRESS, None)

    assert isinstance(terminal.file, StringIO)
    assert raised.value.exit_code == 130
    assert terminal.file.getvalue() == "stopped; what has come is kept, the same command goes on from there\n"


def test_another_file_than_before_is_told(terminal: Console) -> None:
    shown = fetching.Shown()

    shown.ended(Fetched(**(FETCHED.__dict__ | {"pinned": False, "before": "b" * 64})))

    assert isinstance(terminal.file, StringIO)
    text = terminal.file.getvalue()
    assert f"another file than the one that was fetched there before, of sha256 {'b' * 64}" in text
    assert f"sha256: {'a' * 64}" in text
