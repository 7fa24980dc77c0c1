"""Retrying has one owner and an end: what to do after each attempt is decided here, as a value.

Short waits are spent in the worker (tenacity); longer ones become the job's `not_before`. A completion is never asked
for again except where the study's retry rules say so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from contract.answers import Answer
from contract.errors import ErrorKind
from contract.study import Retry

IN_PROCESS_TRIES = 3
"""Faults in a row that are waited out in the worker, before the job goes back to wait in Postgres."""

MAX_CALLS_IN_A_ROW = 200
"""The end of every loop: more calls than any study's rules allow for one job in one claim."""

FIRST_WAIT_S = 0.5
FIRST_ABSENCE_S = 15.0
LONGEST_ABSENCE_S = 600.0
THROTTLED_WAIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What a job has been through in its round: calls in all, unreadable completions, faults, faults in a row here."""

    calls: int = 0
    invalid: int = 0
    faults: int = 0
    faults_in_a_row: int = 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of one call: an answer that was read, or the kind of error.

    `elsewhere`: another host or another pool may take the same call.
    """

    answer: Answer | None = None
    error: ErrorKind | None = None
    elsewhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Done:
    """The round is over; the job's result is what its attempts say."""


@dataclass(frozen=True, kw_only=True)
class AskAgain:
    """Ask once more in this claim, after `wait_s` seconds."""

    wait_s: float


@dataclass(frozen=True, kw_only=True)
class Later:
    """Give the job back; nobody asks before `wait_s` seconds have passed."""

    wait_s: float


@dataclass(frozen=True, kw_only=True)
class Back:
    """Give the job back as it is: its queue stands still now, or another host or pool may take it."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """No call was made: the job is no longer ours or no longer wanted."""


Decision = Done | AskAgain | Later | Back | Dropped


def count(tally: Tally, verdict: Verdict) -> Tally:
    """The tally with one more call. Throttling counts as a call but as nobody's fault."""
    calls = tally.calls + 1
    if verdict.answer is not None:
        return replace(tally, calls=calls, invalid=tally.invalid + (not verdict.answer.valid), faults_in_a_row=0)
    if verdict.error is ErrorKind.TRANSIENT:
        return replace(tally, calls=calls, faults=tally.faults + 1, faults_in_a_row=tally.faults_in_a_row + 1)
    return replace(tally, calls=calls)


def decide(tally: Tally, verdict: Verdict, rules: Retry, *, jitter: float) -> Decision:
    """What to do after a call; `tally` already counts it, `jitter` is a random number in [0, 1)."""
    if verdict.answer is not None:
        ask_again = not verdict.answer.valid and tally.invalid <= rules.invalid
        return AskAgain(wait_s=0.0) if ask_again else Done()
    if verdict.error in (ErrorKind.THROTTLED, ErrorKind.EXHAUSTED, ErrorKind.MISCONFIGURED):
        return Back()
    if verdict.error is ErrorKind.TRANSIENT and tally.faults < rules.faults:
        return Back() if verdict.elsewhere else _wait_out(tally, jitter)
    return Done()


def asking_policy(sleep: Callable[[float], None]) -> Retrying:
    """Call a function that returns a Decision for as long as it says AskAgain, sleeping in between; always ends."""
    return Retrying(
        retry=retry_if_result(lambda decision: isinstance(decision, AskAgain)),
        wait=_wait_named,
        stop=stop_after_attempt(MAX_CALLS_IN_A_ROW),
        sleep=sleep,
        retry_error_callback=lambda _: Later(wait_s=FIRST_ABSENCE_S),
        reraise=True,
    )


def _wait_out(tally: Tally, jitter: float) -> AskAgain | Later:
    """Exponential with jitter: half-second steps in the worker, then a quarter of a minute and more outside."""
    if tally.faults_in_a_row < IN_PROCESS_TRIES:
        return AskAgain(wait_s=FIRST_WAIT_S * 2 ** (tally.faults_in_a_row - 1) * (1 + jitter))
    rounds = tally.faults // IN_PROCESS_TRIES - 1
    return Later(wait_s=min(LONGEST_ABSENCE_S, FIRST_ABSENCE_S * 2**rounds) * (1 + 0.2 * jitter))


def _wait_named(state: RetryCallState) -> float:
    decision = state.outcome.result() if state.outcome else None
    return decision.wait_s if isinstance(decision, AskAgain) else 0.0
