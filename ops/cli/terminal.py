"""How commands speak: results to standard output, everything else to standard error, and how they end."""

import sys
from enum import IntEnum

from rich.console import Console

PIPE_WIDTH = 100

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0  # every planned job is answered, invalid or refused: invalid is a result
    SOME_FAILED = 1
    USAGE = 2  # the command or a file that a person wrote
    NO_STACK = 3  # Postgres or the broker cannot be reached
    STUCK = 4  # nothing can move now
    INTERRUPTED = 130


def text_width() -> int:
    """How wide a table may be: the terminal's width, at most 120; in a pipe, a width that suits files."""
    return min(out.width, 120)
