"""The errors a person may meet, and the words for what can go wrong with one provider call.

BothwaysError
├── UsageError          a command that asks for what is not there (exit 2)
│   ├── InputError      a study or data file that cannot be used
│   └── UnknownStudyError
└── StackError          Postgres or the broker is not there (exit 3)
    └── UnusableStackError  it is there and cannot be used

The text of an error is the whole message: what is wrong, where, and what to do.
"""

from enum import StrEnum
from pathlib import Path


class BothwaysError(Exception):
    """Anything that Bothways reports in one line instead of a traceback."""


class StackError(BothwaysError):
    """A service that every command needs could not be reached."""


class UnusableStackError(StackError):
    """A service answers and will not do, however long one waits: a refused password, tables of a newer version."""


class UsageError(BothwaysError):
    """What was asked for cannot be done as it was asked; nothing was written."""


class UnknownStudyError(UsageError):
    """A study that the database does not know."""


class InputError(UsageError):
    """A file that a person wrote cannot be used; nothing was written.

    The message reads "file:line: field: what is wrong; what would be right". `row` counts data rows from 1,
    `line` counts lines from 1; a data file has rows, a study file has lines.
    """

    def __init__(
        self, path: Path, problem: str, *, line: int | None = None, row: int | None = None, field: str | None = None
    ) -> None:
        self.path = path
        self.problem = problem
        self.line = line
        self.row = row
        self.field = field
        place = str(path)
        if line is not None:
            place += f":{line}"
        if row is not None:
            place += f", row {row}"
        super().__init__(f"{place}: {field}: {problem}" if field else f"{place}: {problem}")


class ErrorKind(StrEnum):
    """Why a job has no completion; those of a call are stored with the attempt and asked for by `retry`."""

    TRANSIENT = "transient"  # may pass by itself: network, overload, server restart
    THROTTLED = "throttled"  # told to slow down; counts against nobody
    EXHAUSTED = "exhausted"  # the quota of the day is spent
    REFUSED = "refused"  # blocked by the provider; a result, not a fault
    TOO_LONG = "too_long"  # the prompt does not fit the context
    MISCONFIGURED = "misconfigured"  # wrong key, model or address: every further call would end the same way
    REJECTED = "rejected"  # this request only
    POISON = "poison"  # the worker died in it too often
    PARENT = "parent"  # the job whose answer it needs has none
    BUG = "bug"  # ours: rendering or reading raised
