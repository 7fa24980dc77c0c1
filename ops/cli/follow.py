"""Follows studies: one to its end, or several for as long as somebody watches."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from contract.errors import ErrorKind, StackError
from ops.cli.terminal import Exit, err, out, visible
from ops.cli.view import Pace, held_reasons, open_view
from ops.progress import Progress, read_progress

_SAID: dict[str, str] = {ErrorKind.PARENT: "the answer that it needs is not there"}
"""What is told of a failure that left no message."""
LOOK_EVERY_S = 0.5
LOOK_SHARE = 10
PATIENCE_S = 60.0
"""How long nothing may be able to move before following ends: a worker may be just starting."""
STANDSTILL_S = 1800.0
"""How long nothing may move, no call be in flight and nothing new be waited for, with nothing known to be wrong."""
FRUITLESS_S = 6 * 3600.0
"""How long calls may be made without a single result."""


def follow(
    engine: Engine,
    study: str,
    *,
    patience_s: float = PATIENCE_S,
    standstill_s: float = STANDSTILL_S,
    wait_for_s: float | None = None,
) -> Exit:
    """Show the study's progress until every planned job has its result, or nothing can move any more.

    What rests until an instant is waited for, `wait_for_s` seconds at most if that is given: a quota without an end
    otherwise, a server that fails for `standstill_s` without a single result.
    """
    pace = Pace()
    stuck_since: float | None = None
    standstill = Standstill(longest_s=standstill_s)
    with open_view(err) as view:
        while True:
            now = time.monotonic()
            progress = _look(engine, study, patience_s)
            pace.note(time.monotonic(), progress)
            stood = standstill.note(now, progress)
            rests = rests_too_long(progress, wait_for_s)
            stuck_since = (stuck_since or now) if stuck_reasons(progress) and not resting(progress) else None
            stuck = rests or (stuck_since is not None and (_by_hand(progress) or now - stuck_since > patience_s))
            given_up = bool(stuck or stood)
            view.show([(progress, pace)], last=progress.done or given_up)
            if progress.done:
                break
            if given_up:
                return _report_stuck(progress, stuck_reasons(progress) or [*stood, *_in_the_way(progress)])
            _pause(time.monotonic() - now)
    for line in fault_lines(progress):
        err.print(line)
    return Exit.SOME_FAILED if progress.count("failed") else Exit.DONE


def fault_lines(progress: Progress) -> list[str]:
    """Why jobs failed, a line a reason, the commonest first."""
    said = ((fault, fault.message or _SAID.get(fault.kind, "")) for fault in progress.faults)
    return [visible(f"  failed: {fault.jobs:,} x {fault.kind}: {message}") for fault, message in said]


def watch(engine: Engine, studies: Sequence[str]) -> None:
    """Show the studies until all are done; Ctrl-C ends it and changes nothing."""
    paces = {study: Pace() for study in studies}
    with open_view(out) as view:
        while True:
            began = time.monotonic()
            looks = []
            for study, pace in paces.items():
                progress = _look(engine, study, PATIENCE_S)
                pace.note(time.monotonic(), progress)
                looks.append((progress, pace))
            done = all(progress.done for progress, _ in looks)
            view.show(looks, last=done)
            if done:
                return
            _pause(time.monotonic() - began)


def stuck_reasons(progress: Progress) -> list[str]:
    """Why nothing of the study can move; empty as long as something can."""
    if progress.state != "active":
        return [f"the study is {progress.state}"]
    asks = not all(waiting.for_import for waiting in progress.waiting)
    if progress.dispatch_fault and asks and not progress.count("running"):
        held = (waiting.reason for waiting in progress.waiting)
        return [progress.dispatch_fault, *(reason for reason in held if reason is not None)]
    reasons = [waiting.reason for waiting in progress.waiting]
    return [reason for reason in reasons if reason is not None] if reasons and all(reasons) else []


def resting(progress: Progress) -> bool:
    """Whether some queue that cannot move now will go on by itself at an instant that is known."""
    return progress.state == "active" and any(waiting.until_s is not None for waiting in progress.waiting)


def rests_too_long(progress: Progress, wait_for_s: float | None) -> bool:
    """Whether all that could still go on by itself rests for longer than anybody wants to wait."""
    if wait_for_s is None or not stuck_reasons(progress) or not resting(progress):
        return False
    return all(waiting.until_s > wait_for_s for waiting in progress.waiting if waiting.until_s is not None)


@dataclass
class Standstill:
    """Notices that nothing moves though nothing seems to be in the way: no call, no result, nothing waits for a time.

    A worker that cannot read what it is given, or a broker that swallows messages, looks like that.
    """

    longest_s: float = STANDSTILL_S
    fruitless_s: float = FRUITLESS_S
    _seen: tuple[int, int] | None = None
    _moved_at: float = 0.0
    _call_at: float = 0.0
    _may_wait_s: float = 0.0

    def note(self, now: float, progress: Progress) -> list[str]:
        """Take in one look; the reason to give up, if nothing moved for too long.

        What waited for an instant when something last moved is waited for; what then waits again is not.
        """
        seen = (progress.finished, progress.planned)
        if seen != self._seen:
            waits = [cell.next_s for cell in progress.cells if cell.later and cell.next_s is not None]
            self._seen, self._moved_at, self._call_at, self._may_wait_s = seen, now, now, max(waits, default=0.0)
        if any(waiting.quota and waiting.until_s is not None for waiting in progress.waiting):
            self._call_at = self._moved_at = now
        if progress.calls:
            self._call_at = now
        if now - self._call_at > self.longest_s + self._may_wait_s:
            minutes = self.longest_s / 60
            return [f"nothing has moved for {minutes:.0f} minutes though workers are there: their logs may tell why"]
        if now - self._moved_at > self.fruitless_s + self._may_wait_s:
            return [f"calls were made for {self.fruitless_s / 3600:.0f} hours and none ended a job: `bothways status`"]
        return []


def _look(engine: Engine, study: str, patience_s: float) -> Progress:
    """The progress; Postgres may be restarted under a study of days, and only a longer absence is an error."""

    def tell(state: RetryCallState) -> None:
        if state.attempt_number == 1:
            err.print(f"Postgres does not answer; waiting for it, {patience_s:.0f} s at most")

    looking = Retrying(
        retry=retry_if_exception_type(StackError),
        stop=stop_after_delay(patience_s),
        wait=wait_fixed(1),
        before_sleep=tell,
        reraise=True,
    )
    return looking(read_progress, engine, study)


def _by_hand(progress: Progress) -> bool:
    """Whether what stands still was stopped or paused, so that waiting for a worker would be in vain."""
    return progress.state != "active" or all(waiting.by_hand for waiting in progress.waiting)


def _pause(look_s: float) -> None:
    """Between two looks: long enough that looking at a study of a million jobs is no burden to its database."""
    time.sleep(max(LOOK_EVERY_S, LOOK_SHARE * look_s))


def _in_the_way(progress: Progress) -> list[str]:
    """What keeps each unfinished queue, also those that nothing seems to keep."""
    silent = (waiting.queue for waiting in progress.waiting if waiting.reason is None)
    return [*held_reasons(progress), *(f"{queue} is served and gives no result" for queue in silent)]


def _report_stuck(progress: Progress, reasons: Sequence[str]) -> Exit:
    err.print(f"nothing of {progress.study} can move now; {progress.planned - progress.finished:,} jobs wait:")
    for reason in reasons:
        err.print(visible(f"  {reason}"))
    if progress.waiting and progress.state == "active" and all(waiting.for_import for waiting in progress.waiting):
        err.print("bring them: bothways import STUDY.yaml FILE")
        return Exit.STUCK
    err.print(
        f"mend it, then: bothways resume {progress.study}, or run the study file again if it is what you mended; "
        "what has its result is not asked again"
    )
    return Exit.STUCK
