"""When a worker leaves a queue alone, and for how long."""

import pytest

from tests.clock import Clock
from worker.rest import (
    FAULTS_IN_A_ROW,
    FIRST_REST_S,
    HOST_FAULTS,
    HOST_LOOK_BACK_S,
    LONGEST_NAMED_S,
    LONGEST_REST_S,
    LOOK_BACK_S,
    Rests,
)

QUEUE, OTHER = "openai.m", "openai.n"


@pytest.fixture
def clock() -> Clock:
    """The clock of this test's rests."""
    return Clock()


@pytest.fixture
def rests(clock: Clock) -> Rests:
    """Rests by that clock."""
    return Rests(clock)


def fail(rests: Rests, times: int) -> list[bool]:
    """So many faults in a row; after each, whether the queue rests."""
    return [rests.fault(QUEUE, "refused") for _ in range(times)]


def left_s(rests: Rests) -> float:
    """Seconds that the queue still rests, 0 if it does not."""
    return rests.now().get(QUEUE, (0.0, None))[0]


def test_a_queue_rests_for_its_quota_until_the_instant_and_then_goes_on(rests: Rests, clock: Clock) -> None:
    rests.wait_for_quota(QUEUE, 60.0, "pool a: rpm")

    rest = rests.of(QUEUE)
    assert rest is not None
    assert (rest.until - clock.now, rest.reason, rest.quota) == (60.0, "pool a: rpm", True)
    assert rests.of(OTHER) is None
    clock.now += 60.0
    assert rests.of(QUEUE) is None
    assert rests.now() == {}


def test_a_shorter_wait_never_ends_a_longer_one(rests: Rests) -> None:
    rests.wait_for_quota(QUEUE, 60.0, "long")
    rests.wait_for_quota(QUEUE, 1.0, "short")

    assert left_s(rests) == 60.0


def test_no_server_makes_a_queue_rest_for_ever(rests: Rests) -> None:
    rests.wait_for_quota(QUEUE, float("inf"), "for ever")

    assert left_s(rests) == LONGEST_NAMED_S


def test_faults_in_a_row_make_a_queue_rest(rests: Rests) -> None:
    assert fail(rests, FAULTS_IN_A_ROW) == [False] * (FAULTS_IN_A_ROW - 1) + [True]
    rest = rests.of(QUEUE)
    assert rest is not None
    assert (rest.reason, rest.quota) == ("refused", False)


def test_a_completion_in_between_starts_the_row_anew(rests: Rests) -> None:
    fail(rests, FAULTS_IN_A_ROW - 1)
    rests.well(QUEUE)

    assert fail(rests, FAULTS_IN_A_ROW - 1) == [False] * (FAULTS_IN_A_ROW - 1)


def test_more_faults_than_completions_in_a_minute_make_a_queue_rest(rests: Rests) -> None:
    for _ in range(5):
        rests.well(QUEUE)
        assert not rests.fault(QUEUE, "overloaded")

    assert rests.fault(QUEUE, "overloaded")


def test_faults_of_another_minute_do_not_count(rests: Rests, clock: Clock) -> None:
    for _ in range(5):
        rests.well(QUEUE)
        rests.fault(QUEUE, "overloaded")
    clock.now += LOOK_BACK_S + 1

    assert not rests.fault(QUEUE, "overloaded")


def test_every_rest_is_twice_the_last_one_until_a_call_goes_well(rests: Rests, clock: Clock) -> None:
    lengths = []
    for _ in range(8):
        fail(rests, FAULTS_IN_A_ROW)
        lengths.append(left_s(rests))
        clock.now += left_s(rests)
    rests.well(QUEUE)
    fail(rests, FAULTS_IN_A_ROW)

    assert lengths == [min(LONGEST_REST_S, FIRST_REST_S * 2**number) for number in range(8)]
    assert left_s(rests) == FIRST_REST_S


def test_calls_that_were_in_flight_together_count_as_one_failure(rests: Rests) -> None:
    fail(rests, 4 * FAULTS_IN_A_ROW)

    assert left_s(rests) == FIRST_REST_S


def test_a_host_that_fails_three_times_in_five_minutes_is_left_alone_for_ten(rests: Rests, clock: Clock) -> None:
    for number in range(HOST_FAULTS):
        rests.well(QUEUE)
        assert rests.fault(QUEUE, "runner crashed", host=True) is (number == HOST_FAULTS - 1)
        clock.now += 1

    rest = rests.of(QUEUE)
    assert rest is not None
    assert rest.until == clock.now - 1 + LONGEST_REST_S
    assert "this host cannot run it" in rest.reason


def test_crashes_far_apart_are_no_reason_to_leave_a_host_alone(rests: Rests, clock: Clock) -> None:
    for _ in range(3 * HOST_FAULTS):
        rests.well(QUEUE)
        assert not rests.fault(QUEUE, "runner crashed", host=True)
        clock.now += HOST_LOOK_BACK_S / 2 + 1


def test_a_host_without_memory_for_a_model_is_left_alone_at_once(rests: Rests) -> None:
    assert rests.fault(QUEUE, "out of memory", host=True, lasting=True)
    assert left_s(rests) == LONGEST_REST_S


def test_one_queue_that_fails_leaves_the_others_as_they_are(rests: Rests) -> None:
    fail(rests, FAULTS_IN_A_ROW)

    assert not rests.fault(OTHER, "once")


def test_a_week_without_an_answer_makes_no_number_too_large() -> None:
    clock = Clock()
    rests = Rests(clock)
    for _ in range(1100):
        rests.put_off("q", "away")
        clock.now += LONGEST_REST_S

    rests.put_off("q", "away")

    assert rests.now()["q"][0] == LONGEST_REST_S


def test_less_patience_shortens_rests_but_not_what_a_server_asks_for() -> None:
    rests = Rests(Clock(), patience=0.1)

    rests.put_off("q", "away")
    rests.fault("host", "no memory", host=True, lasting=True)
    rests.wait_for_quota("quota", 60, "spent")

    assert {queue: left for queue, (left, _) in rests.now().items()} == {
        "q": 0.1 * FIRST_REST_S,
        "host": 0.1 * LONGEST_REST_S,
        "quota": 60,
    }
