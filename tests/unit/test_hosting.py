"""Which model a GPU host serves: one at a time, to the end, and in turn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import Clock
from worker.hosting import IDLE_S, LONGEST_HOLD_S, Hosting, Work


@pytest.fixture
def clock() -> Clock:
    """The clock of this test's host."""
    return Clock()


@pytest.fixture
def hosting(clock: Clock) -> Hosting:
    """A host by that clock."""
    return Hosting("gpu1", clock)


def works(waiting: str = "", *, idle: str = "", soon: str = "", **hosts: int) -> list[Work]:
    """Queues a, b, ... in which jobs wait, those in which none do, and those in which some may come soon.

    `hosts` serve them already.
    """
    return [
        Work(queue=queue, waiting=queue in waiting, hosts=hosts.get(queue, 0), soon=queue in soon)
        for queue in sorted(waiting + idle + soon)
    ]


def after_a_look(hosting: Hosting, found: list[Work]) -> str | None:
    """What is served at the look after one at which nothing is, and nothing is in hand."""
    assert hosting.serve(found, held=False) is None
    return hosting.serve(found, held=False)


def test_a_host_without_work_serves_nothing(hosting: Hosting) -> None:
    assert hosting.serve(works(idle="ab"), held=False) is None


def test_a_host_serves_one_model_though_several_wait(hosting: Hosting) -> None:
    first = hosting.serve(works("abc"), held=False)

    assert first in ("a", "b", "c")
    assert {hosting.serve(works("abc"), held=True) for _ in range(5)} == {first}


def test_a_model_that_fewer_hosts_serve_goes_first(hosting: Hosting) -> None:
    assert hosting.serve(works("abc", a=2, b=1, c=2), held=False) == "b"


def test_hosts_that_start_together_begin_with_different_models() -> None:
    begun = Counter(Hosting(f"gpu{number}").serve(works("abcd"), held=False) for number in range(64))

    assert set(begun) == set("abcd")
    assert max(begun.values()) < 32


def test_a_model_of_which_nothing_is_left_is_given_up_at_once_if_others_wait(hosting: Hosting) -> None:
    hosting.serve(works("a"), held=False)

    assert after_a_look(hosting, works("b", idle="a")) == "b"


def test_a_model_whose_jobs_may_come_again_soon_is_kept_for_a_while(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)

    assert hosting.serve(works("b", soon="a"), held=False) == "a"
    clock.now += IDLE_S - 1
    assert hosting.serve(works("b", soon="a"), held=False) == "a"
    clock.now += 1
    assert after_a_look(hosting, works("b", soon="a")) == "b"


def test_a_model_that_has_nothing_left_stays_loaded_if_no_other_waits(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)
    clock.now += 100 * IDLE_S

    assert hosting.serve(works(idle="ab"), held=False) == "a"


def test_work_that_comes_again_keeps_a_model(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)
    hosting.serve(works("b", soon="a"), held=False)
    clock.now += IDLE_S - 1
    hosting.serve(works("ab"), held=False)
    clock.now += IDLE_S - 1

    assert hosting.serve(works("b", soon="a"), held=False) == "a"


def test_a_model_that_was_held_for_long_gives_way_to_one_that_waited_as_long(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)
    clock.now += LONGEST_HOLD_S - 1
    assert hosting.serve(works("ab"), held=False) == "a"
    clock.now += LONGEST_HOLD_S - 1
    assert hosting.serve(works("ab"), held=False) == "a"
    clock.now += 1
    assert after_a_look(hosting, works("ab")) == "b"


def test_less_patience_shortens_both_times(clock: Clock) -> None:
    hosting = Hosting("gpu1", clock, patience=0.1)
    hosting.serve(works("a"), held=False)
    hosting.serve(works("b", soon="a"), held=False)
    clock.now += 0.1 * IDLE_S
    assert after_a_look(hosting, works("b", soon="a")) == "b"
    hosting.serve(works("ab"), held=False)
    clock.now += 0.1 * LONGEST_HOLD_S

    assert after_a_look(hosting, works("ab")) == "a"


def test_a_host_ends_what_it_holds_before_it_goes_to_another_model(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)
    hosting.serve(works("ab"), held=True)
    clock.now += LONGEST_HOLD_S

    assert hosting.serve(works("ab"), held=True) is None
    assert hosting.serve(works("ab"), held=True) is None
    assert hosting.serve(works("ab"), held=False) == "b"


def test_what_comes_to_hand_when_a_model_is_being_left_is_ended_too(hosting: Hosting) -> None:
    hosting.serve(works("a"), held=False)

    assert hosting.serve(works("b", idle="a"), held=False) is None
    assert hosting.serve(works("b", idle="a"), held=True) is None
    assert hosting.serve(works("b", idle="a"), held=False) == "b"


def test_jobs_of_a_model_that_is_being_left_may_not_be_taken(hosting: Hosting) -> None:
    seen = [hosting.served]
    for waiting, held in (("a", False), ("b", True), ("b", False)):
        hosting.serve(works(waiting), held=held)
        seen.append(hosting.served)

    assert seen == [None, "a", None, "b"]


def test_a_model_that_may_not_be_served_any_more_is_left_at_once(hosting: Hosting) -> None:
    hosting.serve(works("a"), held=False)

    assert hosting.serve(works("b"), held=True) is None
    assert hosting.serve(works("b"), held=False) == "b"


def test_in_turn_means_that_who_waited_longest_is_next(hosting: Hosting, clock: Clock) -> None:
    hosting.serve(works("a"), held=False)
    clock.now += 1
    hosting.serve(works("ac"), held=False)
    clock.now += 1
    hosting.serve(works("abc"), held=False)
    clock.now += LONGEST_HOLD_S

    assert after_a_look(hosting, works("abc")) == "c"


@given(
    st.lists(st.tuples(st.sampled_from(["", "a", "b", "ab", "abc"]), st.booleans(), st.integers(1, 2000)), max_size=40)
)
def test_while_jobs_are_in_hand_no_other_model_is_taken(steps: list[tuple[str, bool, int]]) -> None:
    clock = Clock()
    hosting = Hosting("gpu1", clock)
    for waiting, held, seconds in steps:
        before = hosting.current
        served = hosting.serve(
            works(waiting, idle="".join(set("abc") - set(waiting))), held=held and before is not None
        )
        if held and before is not None:
            assert served in (before, None)
        clock.now += seconds
