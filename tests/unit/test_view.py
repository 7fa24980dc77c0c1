"""How progress is shown while it moves: plain lines for logs, a pace and a time left for every model and dataset."""

import unicodedata
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from ops.cli import view
from ops.cli.terminal import err, out
from ops.cli.view import LiveView, Pace, PlainView, open_view, render
from ops.progress import Cell, Progress
from ops.waiting import Waiting

HOSTILE = "x\x1b[31m\x1b]0;owned\x07\x9b2J\r\b[/nope][red]y"


class Terminal(StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def progress(study: str = "trial", *, stopped: str | None = None, **finished: int) -> Progress:
    """A study that asks models fast, slow and idle 100 jobs each; so many of them are answered."""
    cells = tuple(
        Cell(
            model=model,
            dataset="capitals",
            queue=f"openai.{model}",
            jobs={"answered": finished.get(model, 0), "pending": 100 - finished.get(model, 0)},
        )
        for model in ("fast", "slow", "idle")
    )
    return Progress(
        study=study,
        state="active",
        revision=1,
        cells=cells,
        unplanned=0,
        waiting=tuple(Waiting(queue=cell.queue, stopped=stopped, served=True) for cell in cells),
        workers=2,
        faults=(),
    )


def paced(*looks: tuple[float, Progress]) -> Pace:
    """A pace after these looks."""
    pace = Pace()
    for now, found in looks:
        pace.note(now, found)
    return pace


def shown(found: Progress, pace: Pace) -> str:
    """The table as text."""
    console = Console(width=120, file=StringIO(), highlight=False)
    with console.capture() as capture:
        console.print(render(found, pace))
    return capture.get()


def acting(text: str) -> set[str]:
    """The characters of a text that a terminal would act on."""
    return {character for character in text if unicodedata.category(character) == "Cc" and character != "\n"}


def test_without_a_terminal_there_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with open_view(err) as shows:
        shows.show([(progress(fast=20), Pace()), (progress("other", slow=5), Pace())])

    told = capsys.readouterr()
    assert isinstance(shows, PlainView)
    assert (told.out + told.err).splitlines() == [
        "trial: 20 of 300 jobs (20 answered, 0 invalid, 0 refused, 0 failed); workers seen: 2",
        "other: 5 of 300 jobs (5 answered, 0 invalid, 0 refused, 0 failed); workers seen: 2",
    ]


def test_in_a_terminal_the_table_is_redrawn() -> None:
    assert isinstance(open_view(Console(file=Terminal(), force_terminal=True)), LiveView)


@pytest.mark.parametrize(
    ("moments", "printed"),
    [
        pytest.param([0.0], [0], id="the first look"),
        pytest.param([0.0, 0.5, 4.9], [0], id="no more for five seconds"),
        pytest.param([0.0, 4.9, 5.0, 6.0, 10.0], [0, 2, 4], id="then every five"),
    ],
)
def test_plain_lines_come_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moments: list[float], printed: list[int]
) -> None:
    clock = iter(moments)
    monkeypatch.setattr(view, "monotonic", lambda: 1000 + next(clock))

    with PlainView(err) as shows:
        for number, _ in enumerate(moments):
            shows.show([(progress(fast=number), Pace())])

    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" of ")[0] for line in lines] == [f"trial: {number}" for number in printed]


def test_the_last_look_is_always_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainView(err) as shows:
        shows.show([(progress(), Pace())])
        shows.show([(progress(fast=100, slow=100, idle=100), Pace())], last=True)

    assert capsys.readouterr().err.splitlines()[-1].endswith("; done")


def test_every_model_has_a_pace_and_a_time_left_of_its_own() -> None:
    before, after = progress(fast=10, slow=10, idle=10), progress(fast=60, slow=15, idle=10)

    pace = paced((0.0, before), (10.0, after))

    fast, slow, idle = after.cells
    assert [pace.rate(cell) for cell in (fast, slow, idle)] == [5.0, 0.5, None]
    assert [pace.time_left_s(cell) for cell in (fast, slow, idle)] == [8.0, 170.0, None]
    assert pace.rate() == 5.5
    assert pace.time_left_s() == pytest.approx(215 / 5.5)


def test_the_table_shows_each_pace_in_its_row_under_its_model() -> None:
    before, after = progress(fast=10, slow=10, idle=10), progress(fast=60, slow=15, idle=10)

    lines = shown(after, paced((0.0, before), (10.0, after))).splitlines()

    table = [line.split() for line in lines if line.strip() in {"fast", "slow", "idle"} or "capitals" in line]
    assert table == [
        ["fast"],
        ["capitals", "100", "60", "0", "0", "0", "40", "5.0", "8", "s"],
        ["slow"],
        ["capitals", "100", "15", "0", "0", "0", "85", "0.5", "3", "min"],
        ["idle"],
        ["capitals", "100", "10", "0", "0", "0", "90"],
    ]


def test_a_model_that_is_new_since_the_first_look_has_its_pace_from_nothing() -> None:
    after = progress(fast=20)
    before = Progress(**{**vars(progress()), "cells": ()})

    pace = paced((0.0, before), (10.0, after))

    assert pace.rate(after.cells[0]) == 2.0


def test_looks_older_than_half_a_minute_are_forgotten() -> None:
    looks = [(float(second), progress(fast=min(second, 50))) for second in range(0, 81, 10)]

    pace = paced(*looks)

    assert pace.rate() is None
    assert [now for now, _ in pace.seen] == [50.0, 60.0, 70.0, 80.0]


@pytest.mark.parametrize("live", [True, False], ids=["table", "plain line"])
def test_why_a_queue_was_stopped_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str], live: bool) -> None:
    found = progress(stopped=HOSTILE)

    with PlainView(err) as shows:
        shows.show([(found, Pace())])
    text = shown(found, Pace()) if live else capsys.readouterr().err

    assert acting(text) == set()
    assert "[/nope][red]y" in text


@pytest.mark.parametrize("live", [True, False])
def test_what_a_host_says_of_itself_is_told_once(capsys: pytest.CaptureFixture[str], live: bool) -> None:
    found = replace(progress(), notes=("gpu1 runs 30% of m on its CPU",))
    if live:
        said = shown(found, Pace())
    else:
        plain = PlainView(err)
        plain.show([(found, Pace())], last=True)
        plain.show([(found, Pace())], last=True)
        said = capsys.readouterr().err

    assert said.count("note: gpu1 runs 30% of m on its CPU") == 1


@pytest.mark.parametrize("console", [out, err], ids=["results", "messages"])
def test_a_line_number_between_colons_is_no_picture(console: Console) -> None:
    with console.capture() as capture:
        console.print("study.yaml:100: repeats: must be a number", markup=False)

    assert capture.get() == "study.yaml:100: repeats: must be a number\n"


def plain(*looks: Progress, last: bool = False) -> list[str]:
    """The lines that a log gets, one look after the other, all of them at once."""
    console = Console(width=200, file=StringIO(), highlight=False, soft_wrap=True)
    plain_view = PlainView(console)
    with console.capture() as capture:
        for number, look in enumerate(looks, start=1):
            plain_view.show([(look, Pace())], last=last and number == len(looks))
    return capture.get().splitlines()


def test_what_was_stopped_is_told_at_once_and_once() -> None:
    going, stopped = progress(), progress(stopped="HTTP 401: wrong key")

    lines = plain(going, stopped, stopped)

    told = [line for line in lines if "wrong key" in line]
    assert told == [
        f"trial: waiting: openai.{name} was stopped: HTTP 401: wrong key" for name in ("fast", "idle", "slow")
    ]


def test_what_waits_for_a_worker_that_is_just_starting_is_not_told_at_the_first_look() -> None:
    found = progress()
    found = replace(found, waiting=tuple(replace(waiting, served=False) for waiting in found.waiting))

    assert [line for line in plain(found) if "no worker" in line] == []
    assert len([line for line in plain(found, found, last=True) if "no worker" in line]) == 3
