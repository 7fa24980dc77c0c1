"""How a study's progress looks: a table redrawn in place in a terminal, plain lines elsewhere."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ops.cli.terminal import visible
from ops.progress import Cell, Progress

PLAIN_EVERY_S = 5.0
RATE_OVER_S = 30.0
BAR_WIDTH = 30
LEAST_FOR_RATE = 3
_UNDER_WAY = {"queued": "queued", "running": "being asked"}
_OUTCOMES = ("answered", "invalid", "refused", "failed")


@dataclass
class Pace:
    """Jobs a second over the last half minute, in all or of one cell, and the time left at that rate."""

    seen: deque[tuple[float, Progress]] = field(default_factory=deque)

    def note(self, now: float, progress: Progress) -> None:
        """Take in one look."""
        self.seen.append((now, progress))
        while self.seen[0][0] < now - RATE_OVER_S:
            self.seen.popleft()

    def rate(self, cell: Cell | None = None) -> float | None:
        """Jobs a second; None until there is something to measure."""
        if not self.seen:
            return None
        (start, before), (end, after) = self.seen[0], self.seen[-1]
        done = _finished(after, cell) - _finished(before, cell)
        return done / (end - start) if done >= LEAST_FOR_RATE else None

    def time_left_s(self, cell: Cell | None = None) -> float | None:
        """Seconds until all that can move is done at this rate; None without a rate."""
        rate = self.rate(cell)
        if rate is None:
            return None
        newest = self.seen[-1][1]
        cells = newest.cells if cell is None else (cell,)
        moving = (each for each in cells if newest.why_held(each) is None)
        return sum(each.planned - each.finished for each in moving) / rate


def _finished(progress: Progress, cell: Cell | None) -> int:
    if cell is None:
        return progress.finished
    same = (each for each in progress.cells if (each.model, each.dataset) == (cell.model, cell.dataset))
    return sum(each.finished for each in same)


class View(Protocol):
    """Something that shows looks at studies, one after the other, until it is left."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, looks: Sequence[tuple[Progress, Pace]], *, last: bool = False) -> None:
        """Show the newest looks; `last` ones are always shown."""
        ...


class LiveView:
    """Redraws in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, looks: Sequence[tuple[Progress, Pace]], *, last: bool = False) -> None:  # noqa: ARG002
        """Draw the newest state."""
        self._live.update(Group(*(render(progress, pace) for progress, pace in looks)), refresh=True)


class PlainView:
    """One line a study now and then, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed_at: float | None = None
        self._told: dict[str, set[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, looks: Sequence[tuple[Progress, Pace]], *, last: bool = False) -> None:
        """Print the lines if the last ones are old enough; what stands still until somebody looks is told at once."""
        now = monotonic()
        first = self._printed_at is None
        due = last or self._printed_at is None or now - self._printed_at >= PLAIN_EVERY_S
        self._printed_at = now if due else self._printed_at
        for progress, pace in looks:
            self._tell(progress, stopped_reasons(progress))
            self._tell(progress, how_to_go_on(progress), kind="note")
            if due:
                # What has just begun waits for a dispatcher and for workers, and in a moment it does not.
                self._tell(progress, [] if first and not last else held_reasons(progress))
                self._tell(progress, progress.notes, kind="note")
                self._console.print(summary(progress, pace))

    def _tell(self, progress: Progress, reasons: Sequence[str], *, kind: str = "waiting") -> None:
        """Each reason on a line of its own, once."""
        told = self._told.setdefault(progress.study, set())
        for reason in reasons:
            if reason not in told:
                self._console.print(visible(f"{progress.study}: {kind}: {reason}"))
        told.update(reasons)


def open_view(console: Console) -> View:
    """The view that suits where the console's output goes."""
    return LiveView(console) if console.is_terminal else PlainView(console)


def summary(progress: Progress, pace: Pace) -> str:
    """The state in one line; why what waits does so is told apart."""
    counts = ", ".join(f"{progress.count(state):,} {state}" for state in _OUTCOMES)
    held = sum(cell.planned - cell.finished for cell in progress.cells if progress.why_held(cell))
    waiting = f"; {held:,} wait" if held else ""
    jobs = f"{progress.finished:,} of {progress.planned:,} jobs ({counts}{waiting})"
    return visible(f"{progress.study}: {jobs}; {_speed(progress, pace)}")


def held_reasons(progress: Progress) -> list[str]:
    """Why what cannot move just now cannot, each reason once."""
    held = {reason for cell in progress.cells if (reason := progress.why_held(cell))}
    if progress.dispatch_fault and not progress.done:
        held.add(progress.dispatch_fault)
    return sorted(held)


def stopped_reasons(progress: Progress) -> list[str]:
    """Those of them that a fault has stopped."""
    return sorted(waiting.reason for waiting in progress.waiting if waiting.stopped and waiting.reason)


def how_to_go_on(progress: Progress) -> list[str]:
    """What a person does about queues that a fault has stopped; empty if none was."""
    if not stopped_reasons(progress):
        return []
    study = progress.study
    return [f"mend what was stopped, then: bothways resume {study}; a worker reads its variables when it starts"]


def render(progress: Progress, pace: Pace) -> RenderableType:
    """The state as a table by model and dataset, with a bar and the pace under it."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model, dataset", overflow="fold")
    for heading in ("planned", *_OUTCOMES, "to do", "jobs/s", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    model = None
    for cell in progress.cells:
        if cell.model != model:
            model = cell.model
            table.add_row(Text(model))
        table.add_row(*_row(cell, pace))
    bar = ProgressBar(total=max(1, progress.planned), completed=progress.finished, width=BAR_WIDTH)
    counts = Table.grid(padding=(0, 2, 0, 0))
    counts.add_row(bar, f"{progress.finished:,} of {progress.planned:,} jobs")
    title = Text(f"study {progress.study}", style="bold")
    lines = [*waiting_lines(progress), *how_to_go_on(progress)]
    waiting = (Text(visible(line), style="yellow") for line in lines)
    return Group(title, table, counts, Text(_speed(progress, pace)), *waiting)


def _row(cell: Cell, pace: Pace) -> list[Text]:
    states = (f"{cell.jobs.get(state, 0):,}" for state in _OUTCOMES)
    rate, left = pace.rate(cell), pace.time_left_s(cell)
    shown_rate = "" if rate is None else f"{rate:.1f}"
    shown_left = "" if left is None else print_duration(left)
    counts = (f"{cell.planned:,}", *states, f"{cell.planned - cell.finished:,}")
    return [Text(text) for text in (f"  {cell.dataset}", *counts, shown_rate, shown_left)]


def waiting_lines(progress: Progress) -> list[str]:
    """What waits and for what, a line a reason; then what else people should know."""
    lines = [f"waiting: {reason}" for cell in progress.cells if (reason := progress.why_held(cell)) is not None]
    if progress.dispatch_fault and not progress.done:
        lines.insert(0, f"waiting: {progress.dispatch_fault}")
    for cell in progress.cells:
        if cell.later and cell.next_s is not None:
            when = print_duration(max(0.0, cell.next_s))
            lines.append(
                f"waiting: {cell.later:,} jobs of {cell.model} on {cell.dataset} for another try, next in {when}"
            )
    lines += [f"note: {note}" for note in progress.notes]
    return list(dict.fromkeys(lines))


def _speed(progress: Progress, pace: Pace) -> str:
    if progress.done:
        return "done"
    rate, left = pace.rate(), pace.time_left_s()
    workers = f"workers seen: {progress.workers}"
    if rate is not None and left is not None:
        return f"{rate:.1f} jobs/s, {print_duration(left)} left, {workers}"
    held = progress.next_lease_ends_s
    parts = [f"{progress.count(state):,} {what}" for state, what in _UNDER_WAY.items() if progress.count(state)]
    wait = f"; {', '.join(parts)}, back in {max(0.0, held):.0f} s at the latest" if held is not None else ""
    # A single look cannot tell whether anything moves.
    lately = "nothing finished lately, " if len(pace.seen) > 1 else ""
    return f"{lately}{workers}{wait}"


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
