"""How fetching shows on standard error: a bar in a terminal, a line at the beginning and at the end elsewhere."""

import os
import time
from typing import TYPE_CHECKING, Protocol

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from contract.settings import cache_folder
from ops.cli.terminal import Exit, err, visible
from producer.fetching.addresses import Address
from producer.fetching.at_hand import Fetched

if TYPE_CHECKING:
    from producer.fetching.fetcher import Fetcher, Watch


class Drawing(Protocol):
    """Shows how one file comes."""

    def came(self, done: int, total: int | None) -> None:
        """So many bytes are there, of so many if their number is known."""

    def stop(self) -> None:
        """Leave the terminal as it should be."""


class Bar:
    """Redraws in place."""

    def __init__(self, name: str) -> None:
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._progress = Progress(TextColumn("{task.description}", markup=False), *columns, console=err, transient=True)
        self._task: TaskID = self._progress.add_task(name, total=None)
        self._progress.start()

    def came(self, done: int, total: int | None) -> None:
        """Draw it, now and then."""
        self._progress.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away; what is said after it stays."""
        self._progress.stop()


class Quiet:
    """Draws nothing: lines of a log are said by others."""

    def came(self, done: int, total: int | None) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


class Shown:
    """A watch that says what begins and ends, with a bar between the two where there is a terminal."""

    def __init__(self) -> None:
        self._drawing: Drawing = Quiet()
        self._began = 0.0

    def began(self, address: Address) -> None:
        """Say which file is going to be fetched."""
        err.print(visible(f"fetching {address.shown}"))
        self._began = time.monotonic()
        self._drawing = Bar(address.name) if err.is_terminal else Quiet()

    def came(self, done: int, total: int | None) -> None:
        """Draw it."""
        self._drawing.came(done, total)

    def waits(self, reason: str) -> None:
        """Say why nothing comes."""
        err.print(visible(reason))

    def ended(self, fetched: Fetched) -> None:
        """Say how much came, and what tells that it is the same file the next time."""
        self.stop()
        seconds = time.monotonic() - self._began
        err.print(visible(f"fetched {fetched.path.name}: {fetched.bytes:,} bytes in {seconds:.1f} s"))
        if fetched.before is not None:
            err.print(f"it is another file than the one that was fetched there before, of sha256 {fetched.before}")
        if not fetched.pinned:
            err.print(f"to accept nothing else from there, write beside its path: sha256: {fetched.sha256}")

    def stop(self) -> None:
        """End the drawing, if there is one."""
        self._drawing.stop()
        self._drawing = Quiet()


class Fetching:
    """Fetches files for a command and shows it. Ctrl-C ends the command, and what has come is kept."""

    def __init__(self) -> None:
        self._shown = Shown()
        self._fetcher: Fetcher | None = None

    def __call__(self, address: Address, sha256: str | None) -> Fetched:
        """The file at `address`."""
        if self._fetcher is None:
            self._fetcher = _open(self._shown)
        try:
            return self._fetcher(address, sha256)
        except KeyboardInterrupt:
            self._shown.stop()
            err.print("stopped; what has come is kept, the same command goes on from there")
            raise typer.Exit(Exit.INTERRUPTED) from None
        finally:
            self._shown.stop()


def _open(watch: "Watch") -> "Fetcher":
    # Most commands fetch nothing, and the HTTP library takes as long to import as all the rest.
    from producer.fetching.fetcher import Fetcher
    from producer.fetching.hub import Hub

    return Fetcher(cache=cache_folder(), hub=Hub.of(os.environ), watch=watch)
