"""Rows of a data file: JSON objects, one a line, with their numbers, and fields that are what they should be."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.errors import InputError
from contract.storable import is_storable


@dataclass(frozen=True, kw_only=True)
class Row:
    """One data row; `number` counts from 1."""

    path: Path
    number: int
    values: dict[str, Any]

    def refuse(self, field: str, problem: str) -> InputError:
        """The error that says what is wrong with a field of this row."""
        return InputError(self.path, problem, row=self.number, field=field)

    def text(self, field: str) -> str:
        """A field that must hold text."""
        if field not in self.values:
            raise self.refuse(field, f"is missing; the row has {', '.join(self.values) or 'no fields'}")
        return self._checked(field, self.values[field])

    def optional_text(self, field: str) -> str | None:
        """A field that may be left out or null."""
        value = self.values.get(field)
        return None if value is None else self._checked(field, value)

    def texts(self, field: str) -> tuple[str, ...]:
        """A field that must hold a list of texts."""
        value = self.values.get(field)
        if not isinstance(value, list):
            raise self.refuse(field, f"must be a list of texts, not {value!r}")
        return tuple(self._checked(f"{field}[{number}]", choice) for number, choice in enumerate(value))

    def optional_index(self, field: str) -> int | None:
        """A whole number or null; the field must be there, so that a misspelt name is not taken for null."""
        if field not in self.values:
            raise self.refuse(field, "is missing; write null where no choice is right")
        value = self.values[field]
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.refuse(field, f"must be a whole number or null, not {value!r}")

    def _checked(self, field: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.refuse(field, f"must be text, not {value!r}")
        if not value.strip():
            raise self.refuse(field, "is empty")
        if not is_storable(value):
            raise self.refuse(field, "holds a NUL character or half a surrogate pair, which no text file should")
        return value


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file; empty lines are passed over but counted."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(path, number, line)
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8 (byte {error.start} of a block); save it as UTF-8") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None


def _row(path: Path, number: int, line: str) -> Row:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        detail = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply, or a number too long"
        raise InputError(path, f"not a JSON object on one line: {detail}", row=number) from None
    if not isinstance(values, dict):
        raise InputError(path, f"must be a JSON object, not {type(values).__name__}", row=number)
    return Row(path=path, number=number, values=values)
