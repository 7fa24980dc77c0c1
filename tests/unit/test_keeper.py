"""When a part of the stack that ended by itself is started again, and when that is given up."""

import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from contract.errors import StackError
from ops.local.engines import Part, launch
from ops.local.keeper import FOR_COMMANDS, FOR_ENGINES, Keeper, Patience, pause_before_start

TWICE_A_MINUTE = Patience(deaths=2, within_s=60)


@pytest.mark.parametrize(
    ("deaths", "pause"),
    [
        ([100.0], 0.0),
        ([100.0, 110.0], 1.0),
        ([100.0, 110.0, 120.0], None),
        ([100.0, 110.0, 160.0], 1.0),  # a minute is over: the first one counts no more
        ([100.0, 110.0, 159.9], None),
        ([100.0, 110.0, 1000.0], 0.0),
    ],
)
def test_a_death_counts_for_as_long_as_the_patience_says(deaths: Sequence[float], pause: float | None) -> None:
    assert pause_before_start(deaths, TWICE_A_MINUTE) == pause


def test_each_start_in_a_row_waits_longer_than_the_one_before_up_to_a_limit() -> None:
    many = Patience(deaths=100, within_s=60)

    pauses = [pause_before_start([0.0] * deaths, many) for deaths in range(1, 8)]

    assert pauses == [0, 1, 2, 4, 4, 4, 4]


@pytest.mark.parametrize(("patience", "starts"), [(FOR_ENGINES, 5), (FOR_COMMANDS, 8)])
def test_what_never_works_is_given_up_within_the_minute(patience: Patience, starts: int) -> None:
    now, deaths = 0.0, [0.0]

    while (pause := pause_before_start(deaths, patience)) is not None:
        now += pause + 2.0  # it ends two seconds after each start
        deaths.append(now)

    assert len(deaths) - 1 == starts
    assert now < patience.within_s


def test_a_worker_that_a_job_kills_every_quarter_of_a_minute_is_started_again_for_ever() -> None:
    deaths = [15.0 * number for number in range(1000)]

    assert all(pause_before_start(deaths[: at + 1], FOR_COMMANDS) is not None for at in range(1000))


def test_a_part_that_was_started_again_and_does_not_answer_is_given_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('still loading', flush=True); time.sleep(60)"]
    mute = Part(
        launch=partial(launch, "mute", command, state=tmp_path, grace=1), is_ready=lambda: False, ready_within=1
    )
    gave_up = threading.Event()
    keeper = Keeper(engines=[mute], commands=[], say=print)

    mute.child.kill()
    keeper.start(gave_up.set)
    given_up = gave_up.wait(20)
    keeper.stop()
    mute.stop()

    assert given_up
    assert isinstance(keeper.failure, StackError)
    assert str(keeper.failure).startswith("mute: was started again and did not answer for 1 s: still loading")


def test_a_part_whose_folder_is_gone_is_given_up_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    part = Part(launch=partial(launch, "homeless", ["sleep", "60"], state=tmp_path, grace=1, cwd=folder))
    gave_up = threading.Event()
    keeper = Keeper(engines=[part], commands=[], say=print)

    part.child.kill()
    folder.rmdir()
    keeper.start(gave_up.set)
    given_up = gave_up.wait(20)
    keeper.stop()

    assert given_up
    assert "homeless could not be started again" in str(keeper.failure)
    assert str(folder) in str(keeper.failure)
