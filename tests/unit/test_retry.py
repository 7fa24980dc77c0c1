"""What is done after each call: the whole table of decisions, and that asking always ends."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import Answer, InvalidReason
from contract.errors import ErrorKind
from contract.study import Retry
from worker.retry import (
    FIRST_ABSENCE_S,
    FIRST_WAIT_S,
    IN_PROCESS_TRIES,
    LONGEST_ABSENCE_S,
    MAX_CALLS_IN_A_ROW,
    AskAgain,
    Back,
    Decision,
    Done,
    Dropped,
    Later,
    Tally,
    Verdict,
    asking_policy,
    count,
    decide,
)

READ = Verdict(answer=Answer(choice=0, tier="whole"))
UNREADABLE = Verdict(answer=Answer(choice=None, tier="nothing", reason=InvalidReason.UNREADABLE))
TRANSIENT = Verdict(error=ErrorKind.TRANSIENT)

CONSEQUENCES: dict[ErrorKind, Decision] = {
    ErrorKind.TRANSIENT: AskAgain(wait_s=FIRST_WAIT_S),
    ErrorKind.THROTTLED: Back(),
    ErrorKind.EXHAUSTED: Back(),
    ErrorKind.REFUSED: Done(),
    ErrorKind.TOO_LONG: Done(),
    ErrorKind.MISCONFIGURED: Back(),
    ErrorKind.REJECTED: Done(),
    ErrorKind.POISON: Done(),
    ErrorKind.PARENT: Done(),
    ErrorKind.BUG: Done(),
}
"""What a first call that ended this way leads to, without jitter."""


def decisions(verdicts: list[Verdict], rules: Retry, *, jitter: float = 0.0) -> list[Decision]:
    """What is decided after each of these calls; a job that was put back comes to its next claim with a fresh row."""
    tally = Tally()
    decided: list[Decision] = []
    for verdict in verdicts:
        tally = count(tally, verdict)
        decided.append(decide(tally, verdict, rules, jitter=jitter))
        if isinstance(decided[-1], Later):
            tally = dataclasses.replace(tally, faults_in_a_row=0)
    return decided


@pytest.mark.parametrize(
    ("verdict", "tally"),
    [
        pytest.param(READ, Tally(calls=8, invalid=2, faults=3), id="a read answer ends the row of faults"),
        pytest.param(UNREADABLE, Tally(calls=8, invalid=3, faults=3), id="an unreadable one counts, and ends it too"),
        pytest.param(TRANSIENT, Tally(calls=8, invalid=2, faults=4, faults_in_a_row=2), id="transient"),
        *(
            pytest.param(Verdict(error=kind), Tally(calls=8, invalid=2, faults=3, faults_in_a_row=1), id=kind)
            for kind in ErrorKind
            if kind is not ErrorKind.TRANSIENT
        ),
    ],
)
def test_a_call_is_counted_as_what_it_was(verdict: Verdict, tally: Tally) -> None:
    assert count(Tally(calls=7, invalid=2, faults=3, faults_in_a_row=1), verdict) == tally


@pytest.mark.parametrize(("kind", "decision"), CONSEQUENCES.items())
def test_each_kind_of_error_has_its_consequence(kind: ErrorKind, decision: Decision) -> None:
    assert decisions([Verdict(error=kind)], Retry()) == [decision]


def test_no_kind_of_error_is_missing_in_the_table() -> None:
    assert set(CONSEQUENCES) == set(ErrorKind)


def test_an_answer_that_was_read_is_never_asked_for_again() -> None:
    assert decisions([READ], Retry(invalid=100, faults=100)) == [Done()]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_an_unreadable_answer_is_asked_for_again_as_often_as_the_study_says(retries: int) -> None:
    decided = decisions([UNREADABLE] * (retries + 1), Retry(invalid=retries))

    assert decided == [AskAgain(wait_s=0.0)] * retries + [Done()]


def test_faults_use_up_no_invalid_retries_and_invalid_answers_no_faults() -> None:
    decided = decisions([TRANSIENT, UNREADABLE, TRANSIENT, UNREADABLE], Retry(invalid=1, faults=3))

    assert [type(each) for each in decided] == [AskAgain, AskAgain, AskAgain, Done]


def test_faults_are_waited_out_in_the_worker_first_then_outside_and_ever_longer() -> None:
    decided = decisions([TRANSIENT] * 12, Retry(faults=100))

    in_worker = [AskAgain(wait_s=FIRST_WAIT_S), AskAgain(wait_s=2 * FIRST_WAIT_S)]
    assert len(in_worker) == IN_PROCESS_TRIES - 1
    assert decided == [
        *in_worker,
        Later(wait_s=FIRST_ABSENCE_S),
        *in_worker,
        Later(wait_s=2 * FIRST_ABSENCE_S),
        *in_worker,
        Later(wait_s=4 * FIRST_ABSENCE_S),
        *in_worker,
        Later(wait_s=8 * FIRST_ABSENCE_S),
    ]


def test_no_absence_is_longer_than_the_longest() -> None:
    waits = [each.wait_s for each in decisions([TRANSIENT] * 99, Retry(faults=100)) if isinstance(each, Later)]

    assert max(waits) == LONGEST_ABSENCE_S
    assert waits == sorted(waits)


@pytest.mark.parametrize("faults", [1, 2, 3, 4, 5])
def test_a_job_ends_with_the_last_fault_that_the_study_allows(faults: int) -> None:
    decided = decisions([TRANSIENT] * faults, Retry(faults=faults))

    assert decided[-1] == Done()
    assert Done() not in decided[:-1]


def test_being_throttled_a_thousand_times_ends_no_job_and_makes_none_wait_by_itself() -> None:
    decided = decisions([Verdict(error=ErrorKind.THROTTLED)] * 1000, Retry(faults=1))

    assert decided == [Back()] * 1000


def test_a_fault_that_another_host_may_not_have_goes_there_until_the_study_says_enough() -> None:
    decided = decisions([Verdict(error=ErrorKind.TRANSIENT, elsewhere=True)] * 3, Retry(faults=3))

    assert decided == [Back(), Back(), Done()]


@given(jitter=st.floats(min_value=0, max_value=1, exclude_max=True))
def test_jitter_only_ever_lengthens_a_wait(jitter: float) -> None:
    (plain,) = decisions([TRANSIENT], Retry())
    (jittered,) = decisions([TRANSIENT], Retry(), jitter=jitter)

    assert isinstance(plain, AskAgain)
    assert isinstance(jittered, AskAgain)
    assert plain.wait_s <= jittered.wait_s <= 2 * plain.wait_s


def test_asking_sleeps_what_each_decision_says_and_ends_with_the_first_other_one() -> None:
    slept: list[float] = []
    decided = iter([AskAgain(wait_s=0.5), AskAgain(wait_s=0.0), AskAgain(wait_s=1.25), Later(wait_s=99.0), Done()])

    last = asking_policy(slept.append)(lambda: next(decided))

    assert last == Later(wait_s=99.0)
    assert slept == [0.5, 0.0, 1.25]


@pytest.mark.parametrize(
    "decision", [Done(), Later(wait_s=9.0), Back(), Dropped()], ids=lambda each: type(each).__name__
)
def test_asking_ends_at_once_with_anything_but_ask_again(decision: Decision) -> None:
    slept: list[float] = []

    assert asking_policy(slept.append)(lambda: decision) == decision
    assert slept == []


def test_asking_ends_even_if_every_decision_is_to_ask_again() -> None:
    calls: list[Decision] = []

    def ask() -> Decision:
        calls.append(AskAgain(wait_s=0.0))
        return calls[-1]

    last = asking_policy(lambda _: None)(ask)

    assert isinstance(last, Later)
    assert len(calls) == MAX_CALLS_IN_A_ROW


def test_what_a_call_raises_is_raised_at_once() -> None:
    def ask() -> Decision:
        raise LookupError("ours")

    with pytest.raises(LookupError, match="ours"):
        asking_policy(lambda _: pytest.fail("slept"))(ask)
