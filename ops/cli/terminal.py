"""How commands speak: results to standard output, everything else to standard error, and how they end."""

import json
import shutil
import sys
import unicodedata
from enum import IntEnum

from rich.console import Console

PIPE_WIDTH = 100

# What is printed comes from files, servers and models: nothing in it is markup.
_width = None if sys.stdout.isatty() else shutil.get_terminal_size(fallback=(PIPE_WIDTH, 24)).columns  # or COLUMNS
out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False, width=_width)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


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


def visible(text: str) -> str:
    """`text` with control characters as their escapes, line ends kept: what others wrote must not steer a terminal."""
    return "".join(
        character.encode("unicode_escape").decode() if _steers(character) else character for character in text
    )


def print_json(value: object) -> None:
    """One JSON document on standard output, in ASCII, so that it is the same in every pipe and terminal."""
    out.file.write(json.dumps(value, indent=2, default=str) + "\n")


def _steers(character: str) -> bool:
    return character != "\n" and unicodedata.category(character) == "Cc"
