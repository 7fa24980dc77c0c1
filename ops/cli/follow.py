"""Follows a study to its end: a live view in a terminal, plain lines elsewhere."""

import sys
import time
from collections import deque
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from contract.errors import StackError
from ops.cli.terminal import Exit, err
from ops.progress import Progress, read_progress

LOOK_EVERY_S = 0.5
PLAIN_EVERY_S = 5.0
RATE_OVER_S = 30.0
BAR_WIDTH = 30
PATIENCE_S = 60.0
"""How long nothing may be able to move before following ends: a worker may be just starting."""


@dataclass
class Pace:
    """Jobs a second over the last half minute, and the time left at that rate."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, finished: int) -> None:
        """Take in one look."""
        self.seen.append((now, finished))
        while self.seen[0][0] < now - RATE_OVER_S:
            self.seen.popleft()

    @property
    def rate(self) -> float | None:
        """Jobs a second; None until there is something to measure."""
        if not self.seen:
            return None
        (start, before), (end, after) = self.seen[0], self.seen[-1]
        return (after - before) / (end - start) if after > before else None

    def time_left_s(self, unfinished: int) -> float | None:
        """Seconds until the rest is done at this rate."""
        return None if self.rate is None else unfinished / self.rate


def follow(engine: Engine, study: str, *, patience_s: float = PATIENCE_S) -> Exit:
    """Show the study's progress until every planned job has its result, or nothing can move any more."""
    pace = Pace()
    stuck_since: float | None = None
    # Postgres may be restarted under a study of days; only a longer absence ends the following.
    looking = Retrying(
        retry=retry_if_exception_type(StackError), stop=stop_after_delay(patience_s), wait=wait_fixed(1), reraise=True
    )
    with _view() as view:
        while True:
            progress = looking(read_progress, engine, study)
            now = time.monotonic()
            pace.note(now, progress.finished)
            stuck_since = (stuck_since or now) if stuck_reasons(progress) else None
            given_up = stuck_since is not None and (_stopped(progress) or now - stuck_since > patience_s)
            view.show(progress, pace, now, last=progress.done or given_up)
            if progress.done:
                return Exit.SOME_FAILED if progress.count("failed") else Exit.DONE
            if given_up:
                return _report_stuck(progress)
            time.sleep(LOOK_EVERY_S)


def stuck_reasons(progress: Progress) -> list[str]:
    """Why nothing of the study can move; empty as long as something can."""
    if progress.state != "active":
        return [f"the study is {progress.state}"]
    reasons = [waiting.reason for waiting in progress.waiting]
    return [reason for reason in reasons if reason is not None] if reasons and all(reasons) else []


def _stopped(progress: Progress) -> bool:
    """Whether what stands still was stopped, so that waiting for a worker would be in vain."""
    return progress.state != "active" or all(waiting.stopped for waiting in progress.waiting)


def _report_stuck(progress: Progress) -> Exit:
    err.print(f"nothing of {progress.study} can move now; {progress.planned - progress.finished:,} jobs wait:")
    for reason in stuck_reasons(progress):
        err.print(f"  {reason}", markup=False)
    err.print(f"mend it, then run the study again: what has its result is not asked again ({Exit.STUCK:d})")
    return Exit.STUCK


class _LiveView:
    """Redraws in place."""

    def __init__(self) -> None:
        self._live = Live(console=err, auto_refresh=False, transient=False)

    def __enter__(self) -> "_LiveView":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, progress: Progress, pace: Pace, now: float, *, last: bool = False) -> None:  # noqa: ARG002
        """Draw the newest state."""
        self._live.update(render(progress, pace), refresh=True)


class _PlainView:
    """One line now and then, for logs."""

    def __init__(self) -> None:
        self._printed_at: float | None = None

    def __enter__(self) -> "_PlainView":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, progress: Progress, pace: Pace, now: float, *, last: bool = False) -> None:
        """Print a line if the last one is old enough."""
        if last or self._printed_at is None or now - self._printed_at >= PLAIN_EVERY_S:
            self._printed_at = now
            err.print(summary(progress, pace), markup=False)


def _view() -> _LiveView | _PlainView:
    return _LiveView() if sys.stderr.isatty() else _PlainView()


def summary(progress: Progress, pace: Pace) -> str:
    """The state in one line."""
    counts = ", ".join(f"{progress.count(state):,} {state}" for state in ("answered", "invalid", "refused", "failed"))
    return f"{progress.study}: {progress.finished:,} of {progress.planned:,} jobs ({counts}); {_speed(progress, pace)}"


def render(progress: Progress, pace: Pace) -> RenderableType:
    """The state as a table by model and dataset, with a bar and the pace under it."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("model", "dataset"):
        table.add_column(heading, overflow="fold")
    for heading in ("planned", "answered", "invalid", "refused", "failed", "to do"):
        table.add_column(heading, justify="right")
    for cell in progress.cells:
        states = (f"{cell.jobs.get(state, 0):,}" for state in ("answered", "invalid", "refused", "failed"))
        table.add_row(cell.model, cell.dataset, f"{cell.planned:,}", *states, f"{cell.planned - cell.finished:,}")
    bar = ProgressBar(total=max(1, progress.planned), completed=progress.finished, width=BAR_WIDTH)
    pace_line = Table.grid(padding=(0, 2, 0, 0))
    pace_line.add_row(bar, f"{progress.finished:,} of {progress.planned:,} jobs, {_speed(progress, pace)}")
    parts: list[RenderableType] = [Text(f"study {progress.study}", style="bold"), table, pace_line]
    parts += [Text(f"waiting: {reason}", style="yellow") for reason in stuck_reasons(progress)]
    return Group(*parts)


def _speed(progress: Progress, pace: Pace) -> str:
    if progress.done:
        return "done"
    left = pace.time_left_s(progress.planned - progress.finished)
    if pace.rate is None or left is None:
        held = progress.next_lease_ends_s
        wait = (
            f"; {progress.count('running'):,} are held by workers, up to {max(0.0, held):.0f} s more"
            if held is not None
            else ""
        )
        return f"nothing finished lately, workers seen: {progress.workers}{wait}"
    return f"{pace.rate:.1f} jobs/s, {print_duration(left)} left"


def print_duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 5 h 20 min, 3 d 4 h."""
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86_400
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes:.0f} min"
    if hours < 48:
        return f"{int(hours)} h {int(minutes % 60)} min"
    return f"{int(days)} d {int(hours % 24)} h"
