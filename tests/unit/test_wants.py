"""How many more bundles a process wants of a queue that a quota holds up: a line that is short and never runs empty."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.clock import Clock
from worker.wants import REFILL_S, Wants

QUEUE = "gemini.flash"
SLOTS = 16


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wants(clock: Clock) -> Wants:
    return Wants(SLOTS, clock)


@pytest.fixture
def threads() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def wanted(wants: Wants) -> int:
    """What is told of the one queue."""
    return wants.now([QUEUE])[QUEUE]


def test_a_process_begins_with_one_bundle(wants: Wants) -> None:
    assert wants.now([QUEUE, "gemini.pro"]) == {QUEUE: 1, "gemini.pro": 1}


def test_who_has_a_thread_in_line_wants_no_more(wants: Wants, threads: ExitStack) -> None:
    threads.enter_context(wants.standing(QUEUE))

    assert wants.now([QUEUE, "gemini.pro"]) == {QUEUE: 0, "gemini.pro": 1}


def test_a_line_is_longer_by_the_bundles_that_end_before_the_next_ones_come(
    wants: Wants, clock: Clock, threads: ExitStack
) -> None:
    threads.enter_context(wants.standing(QUEUE))
    for _ in range(3):
        wants.ended(QUEUE)

    at_once = wanted(wants)
    clock.now += REFILL_S + 0.1

    assert (at_once, wanted(wants)) == (3, 0)


def test_where_nobody_stands_in_line_twice_as_many_are_tried(wants: Wants, threads: ExitStack) -> None:
    for _ in range(5):
        threads.enter_context(wants.calling(QUEUE))

    alone = wanted(wants)
    threads.enter_context(wants.standing(QUEUE))

    assert (alone, wanted(wants)) == (5, 0)


def test_nobody_wants_more_than_all_slots_can_hold(wants: Wants) -> None:
    for _ in range(2 * SLOTS):
        wants.ended(QUEUE)

    assert wanted(wants) == SLOTS


def test_a_thread_that_fails_stands_in_line_no_longer(wants: Wants) -> None:
    with pytest.raises(KeyError), wants.standing(QUEUE):
        raise KeyError

    assert wanted(wants) == 1
