"""Company: calls of one process go together, a suspect goes alone, and nobody waits for ever."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from worker.company import Company

LONG_S = 20.0


@pytest.fixture
def company() -> Company:
    """Nobody's yet."""
    return Company()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Some threads that wait in our place."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def until(seconds: float = LONG_S) -> float:
    """The monotonic instant in so many seconds."""
    return time.monotonic() + seconds


def waits(entering: Future[bool]) -> bool:
    """Whether somebody still waits after a tenth of a second."""
    time.sleep(0.1)
    return not entering.done()


def test_any_number_goes_together(company: Company) -> None:
    assert all(company.enter(alone=False, until=until(0)) for _ in range(64))
    assert not company.disturbed


def test_a_suspect_waits_until_all_others_have_gone(company: Company, threads: ThreadPoolExecutor) -> None:
    for _ in range(3):
        company.enter(alone=False, until=until())

    suspect = threads.submit(company.enter, alone=True, until=until())

    for _ in range(3):
        assert waits(suspect)
        company.leave(alone=False)
    assert suspect.result(LONG_S)


def test_nobody_comes_in_while_a_suspect_is_alone(company: Company, threads: ThreadPoolExecutor) -> None:
    company.enter(alone=True, until=until())

    others = [threads.submit(company.enter, alone=alone, until=until()) for alone in (False, False)]

    assert all(waits(other) for other in others)
    company.leave(alone=True)
    assert all(other.result(LONG_S) for other in others)


def test_a_suspect_that_waits_goes_before_newcomers(company: Company, threads: ThreadPoolExecutor) -> None:
    company.enter(alone=False, until=until())
    suspect = threads.submit(company.enter, alone=True, until=until())
    assert waits(suspect)
    assert company.disturbed

    newcomer = threads.submit(company.enter, alone=False, until=until())

    assert waits(newcomer)
    company.leave(alone=False)
    assert suspect.result(LONG_S)
    assert waits(newcomer)
    company.leave(alone=True)
    assert newcomer.result(LONG_S)


def test_two_suspects_are_never_together(company: Company, threads: ThreadPoolExecutor) -> None:
    company.enter(alone=True, until=until())

    other = threads.submit(company.enter, alone=True, until=until())

    assert waits(other)
    company.leave(alone=True)
    assert other.result(LONG_S)


@pytest.mark.parametrize("alone", [True, False], ids=["a suspect", "anybody else"])
def test_who_waits_in_vain_goes_and_holds_up_nobody(company: Company, alone: bool) -> None:
    company.enter(alone=not alone, until=until())

    assert not company.enter(alone=alone, until=until(0.05))

    company.leave(alone=not alone)
    assert not company.disturbed
    assert company.enter(alone=False, until=until(0))


def test_alone_means_alone_whatever_the_crowd(company: Company, threads: ThreadPoolExecutor) -> None:
    inside, faults = [0, 0], []
    lock = threading.Lock()

    def go(number: int) -> None:
        alone = number % 3 == 0
        for _ in range(50):
            assert company.enter(alone=alone, until=until())
            with lock:
                inside[alone] += 1
                if inside[True] > 1 or (inside[True] and inside[False]):
                    faults.append(tuple(inside))
            with lock:
                inside[alone] -= 1
            company.leave(alone=alone)

    for crowd in [threads.submit(go, number) for number in range(8)]:
        crowd.result(LONG_S)
    assert faults == []
