"""What a person reads while a study runs: how far, how fast, and why nothing moves."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from ops.cli.follow import Standstill, rests_too_long, stuck_reasons
from ops.cli.follow import resting as is_resting
from ops.cli.view import Pace, held_reasons, print_duration, render, summary, waiting_lines
from ops.progress import Cell, Progress
from ops.waiting import Waiting

STOPPED = Waiting(queue="openai.small", stopped="HTTP 401: wrong key", served=True)
UNSERVED = Waiting(queue="openai.large", stopped=None, served=False)
MOVING = Waiting(queue="simulated.sim", stopped=None, served=True)


def progress(
    *waiting: Waiting, state: str = "active", workers: int = 0, held_s: float | None = None, **jobs: int
) -> Progress:
    """A study with one cell."""
    queue = waiting[0].queue if waiting else "simulated.sim"
    cells = (Cell(model="sim", dataset="capitals", queue=queue, jobs=jobs),) if jobs else ()
    return Progress(
        study="trial",
        state=state,
        revision=1,
        cells=cells,
        unplanned=0,
        waiting=waiting,
        workers=workers,
        next_lease_ends_s=held_s,
        faults=(),
    )


def paced(*looks: tuple[float, int], planned: int = 2000) -> Pace:
    """A pace after these looks: when, and how many of the planned jobs were finished."""
    pace = Pace()
    for now, finished in looks:
        pace.note(now, progress(answered=finished, pending=planned - finished))
    return pace


def shown(found: Progress, pace: Pace) -> str:
    """The table as text."""
    console = Console(width=120, file=StringIO())
    with console.capture() as capture:
        console.print(render(found, pace))
    return capture.get()


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        pytest.param(progress(), [], id="nothing waits"),
        pytest.param(progress(MOVING), [], id="a worker serves it"),
        pytest.param(progress(UNSERVED), ["no worker serves openai.large"], id="no worker"),
        pytest.param(progress(STOPPED), ["openai.small was stopped: HTTP 401: wrong key"], id="stopped"),
        pytest.param(
            progress(STOPPED, UNSERVED),
            ["openai.small was stopped: HTTP 401: wrong key", "no worker serves openai.large"],
            id="every queue for its own reason",
        ),
        pytest.param(progress(STOPPED, UNSERVED, MOVING), [], id="as long as one queue moves"),
        pytest.param(progress(MOVING, state="paused"), ["the study is paused"], id="paused"),
        pytest.param(progress(state="cancelled"), ["the study is cancelled"], id="cancelled"),
    ],
)
def test_a_study_is_stuck_when_no_queue_of_it_can_move(found: Progress, reasons: list[str]) -> None:
    assert stuck_reasons(found) == reasons


def test_a_stop_says_more_than_a_missing_worker() -> None:
    both = Waiting(queue="openai.small", stopped="HTTP 401", served=False)

    assert both.reason == "openai.small was stopped: HTTP 401"


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (45, "45 s"),
        (89, "89 s"),
        (91, "2 min"),
        (12 * 60, "12 min"),
        (89 * 60, "89 min"),
        (90 * 60, "1 h 30 min"),
        (5 * 3600 + 20 * 60, "5 h 20 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d 0 h"),
        (3 * 86_400 + 4 * 3600 + 59 * 60, "3 d 4 h"),
    ],
    ids=str,
)
def test_a_duration_is_printed_as_people_say_it(seconds: float, printed: str) -> None:
    assert print_duration(seconds) == printed


@pytest.mark.parametrize(
    ("pace", "rate"),
    [
        pytest.param(Pace(), None, id="never looked"),
        pytest.param(paced((0, 5)), None, id="one look"),
        pytest.param(paced((0, 5), (10, 5)), None, id="nothing finished meanwhile"),
        pytest.param(paced((0, 0), (10, 20)), 2.0, id="two looks"),
        pytest.param(paced((0, 0), (10, 100), (20, 100), (40, 160)), 2.0, id="only the last half minute counts"),
        pytest.param(paced((0, 0), (100, 50)), None, id="a long gap leaves nothing to measure"),
        pytest.param(paced((0, 50), (10, 20)), None, id="jobs opened again are no speed"),
    ],
)
def test_the_pace_is_what_was_finished_in_the_last_half_minute(pace: Pace, rate: float | None) -> None:
    assert pace.rate() == rate
    assert pace.rate(Cell(model="sim", dataset="capitals", jobs={})) == rate


def test_time_left_follows_from_the_pace_and_is_unknown_without_one() -> None:
    assert paced((0, 0), (10, 20), planned=120).time_left_s() == 50.0
    assert paced((0, 0), planned=120).time_left_s() is None
    assert Pace().time_left_s() is None


@pytest.mark.parametrize(
    ("found", "pace", "line"),
    [
        pytest.param(
            progress(MOVING, answered=1200, invalid=30, refused=2, failed=1, pending=700, queued=60, running=7),
            paced((0, 1033), (10, 1233)),
            "trial: 1,233 of 2,000 jobs (1,200 answered, 30 invalid, 2 refused, 1 failed); 20.0 jobs/s, 38 s left, "
            "workers seen: 0",
            id="on its way",
        ),
        pytest.param(
            progress(answered=6, failed=2),
            paced((0, 8)),
            "trial: 8 of 8 jobs (6 answered, 0 invalid, 0 refused, 2 failed); done",
            id="done",
        ),
    ],
)
def test_the_state_fits_into_one_line(found: Progress, pace: Pace, line: str) -> None:
    assert summary(found, pace) == line


def test_without_a_pace_the_line_says_how_many_workers_there_are() -> None:
    line = summary(progress(MOVING, workers=3, pending=8), paced((0, 0)))

    assert line.startswith("trial: 0 of 8 jobs (0 answered, 0 invalid, 0 refused, 0 failed); ")
    assert line.endswith("workers seen: 3")


def test_jobs_that_a_lost_worker_still_holds_are_mentioned() -> None:
    line = summary(progress(MOVING, held_s=40.0, answered=6, running=2), paced((0, 6), (10, 6)))

    assert line.endswith("2 being asked, back in 40 s at the latest")


def test_a_lease_that_is_over_is_not_counted_backwards() -> None:
    line = summary(progress(MOVING, held_s=-3.0, answered=6, running=2), paced((0, 6), (10, 6)))

    assert "-3 s" not in line


def test_a_single_look_is_enough_to_show_an_unfinished_study() -> None:
    text = shown(progress(MOVING, answered=3, pending=5), Pace())

    assert "3 of 8 jobs" in text


def test_the_table_counts_what_is_to_do_and_says_what_it_waits_for() -> None:
    text = shown(progress(UNSERVED, answered=3, invalid=1, queued=2, pending=2), paced((0, 4)))

    row = next(line for line in text.splitlines() if "capitals" in line and "waiting" not in line)
    assert row.split() == ["capitals", "8", "3", "1", "0", "0", "4"]
    assert "waiting: no worker serves openai.large" in text


@pytest.mark.parametrize(
    ("activity", "stopped", "line"),
    [
        ("paused", None, "waiting: simulated.sim is paused"),
        ("cancelled", "wrong key", "waiting: simulated.sim is cancelled"),
        ("active", "wrong key", "waiting: simulated.sim was stopped: wrong key"),
    ],
)
def test_what_was_stopped_by_hand_is_told_with_its_reason(activity: str, stopped: str | None, line: str) -> None:
    waiting = Waiting(queue="simulated.sim", stopped=stopped, served=True, activity=activity)

    assert waiting_lines(progress(waiting, pending=2)) == [line]
    assert waiting.by_hand


def test_a_finished_cell_waits_for_nothing_although_its_model_is_paused_elsewhere() -> None:
    waiting = Waiting(queue="simulated.sim", stopped=None, served=True, activity="paused")

    assert waiting_lines(progress(waiting, answered=2)) == []


def test_jobs_that_wait_for_an_instant_of_their_own_are_told_with_it() -> None:
    cell = Cell(model="sim", dataset="capitals", queue="simulated.sim", jobs={"pending": 3}, later=2, next_s=40.0)
    found = replace(progress(MOVING), cells=(cell,))

    assert waiting_lines(found) == ["waiting: 2 jobs of sim on capitals for another try, next in 40 s"]


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        pytest.param(progress(MOVING, pending=4), ["no dispatcher is at work"], id="nothing is queued"),
        pytest.param(progress(MOVING, queued=4), ["no dispatcher is at work"], id="what is queued may be lost"),
        pytest.param(progress(MOVING, running=1, pending=3), [], id="something runs"),
        pytest.param(
            progress(UNSERVED, pending=4),
            ["no dispatcher is at work", "no worker serves openai.large"],
            id="and nobody would take it",
        ),
        pytest.param(progress(answered=4), [], id="all is done"),
    ],
)
def test_without_a_dispatcher_nothing_moves_but_what_runs(found: Progress, reasons: list[str]) -> None:
    assert stuck_reasons(replace(found, dispatch_fault="no dispatcher is at work")) == reasons


def test_what_keeps_a_dispatcher_from_its_work_is_shown() -> None:
    fault = "the broker does not answer (ConnectionError)"
    found = replace(progress(MOVING, pending=4), dispatch_fault=fault)

    assert f"waiting: {fault}" in shown(found, Pace())
    assert held_reasons(found) == [fault]
    assert waiting_lines(replace(progress(answered=4), dispatch_fault=fault)) == []


def stands_still(*looks: tuple[float, Progress]) -> list[bool]:
    """After which of these looks (when, what) following gives up."""
    standstill = Standstill(longest_s=60)
    return [bool(standstill.note(now, found)) for now, found in looks]


def test_a_study_that_does_not_move_for_long_is_given_up() -> None:
    found = progress(MOVING, queued=4, answered=2)

    assert stands_still((0, found), (59, found), (61, found)) == [False, False, True]


def test_every_result_is_a_move() -> None:
    looks = [(now, progress(MOVING, queued=4, answered=now)) for now in (0, 50, 100, 150)]

    assert stands_still(*looks) == [False] * 4


WAITING = Cell(model="m", dataset="d", jobs={"pending": 1}, later=1, next_s=300)


def test_a_call_in_flight_is_waited_for_as_long_as_calls_end_jobs_at_all() -> None:
    found = replace(progress(MOVING, running=4), calls=1)
    standstill = Standstill(longest_s=60, fruitless_s=1000)

    assert [bool(standstill.note(now, found)) for now in (0, 61, 999, 1001)] == [False, False, False, True]


def test_what_waits_for_an_instant_is_waited_for_once_and_not_for_ever() -> None:
    found = replace(progress(MOVING), cells=(WAITING,))

    assert stands_still((0, found), (61, found), (359, found), (361, found)) == [False, False, False, True]


def resting(*, quota: bool, rests_s: float = 3600.0) -> Waiting:
    """A queue that its workers leave alone for a while."""
    rests = "until 10:00:00 UTC: pool a: the day's requests are spent"
    return Waiting(queue=MOVING.queue, stopped=None, served=False, rests=rests, rests_s=rests_s, quota=quota)


def test_what_rests_is_waited_for_and_said() -> None:
    found = progress(resting(quota=True), pending=4)

    assert stuck_reasons(found) == [f"{MOVING.queue} rests until 10:00:00 UTC: pool a: the day's requests are spent"]
    assert is_resting(found)
    assert not rests_too_long(found, None)


@pytest.mark.parametrize(("wait_for_s", "too_long"), [(3601.0, False), (3599.0, True), (0.0, True)])
def test_a_quota_is_waited_for_as_long_as_was_said(wait_for_s: float, *, too_long: bool) -> None:
    assert rests_too_long(progress(resting(quota=True), pending=4), wait_for_s) is too_long


def test_the_first_quota_that_comes_back_is_worth_waiting_for() -> None:
    soon, late = resting(quota=True, rests_s=5.0), replace(resting(quota=True), queue="gemini.late")

    assert not rests_too_long(progress(soon, late, pending=4), 60.0)


def test_a_study_waits_for_its_quota_for_days_and_for_a_broken_server_for_an_hour_at_most() -> None:
    spent, broken = progress(resting(quota=True), pending=4), progress(resting(quota=False), pending=4)

    assert stands_still((0, spent), (86_400, spent), (2 * 86_400, spent)) == [False, False, False]
    assert stands_still((0, broken), (61, broken)) == [False, True]
