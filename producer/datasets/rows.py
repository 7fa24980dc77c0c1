"""Rows of a data file with their numbers, and fields that are what they should be."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from contract.errors import InputError
from contract.storable import is_storable

LONGEST_TEXT = 1_000_000
"""Characters in one field; more is a mistake in the file, and no model reads it."""

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One data row; `number` counts from 1.

    `names` says what the file calls a field that we call otherwise. A row of `cells` (CSV) has nothing but text: its
    numbers are written out, and an empty cell says that there is nothing.
    """

    path: Path
    number: int
    values: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    cells: bool = False

    @property
    def place(self) -> str:
        """Where the row stands, as messages name it."""
        return f"row {self.number}"

    def refuse(self, field: str, problem: str) -> InputError:
        """The error that says what is wrong with a field of this row, by the name that the file gives it."""
        whole, bracket, index = field.partition("[")
        name = self.names.get(field) or self.names.get(whole, whole) + bracket + index
        return InputError(self.path, problem, row=self.number, field=printable(name))

    def text(self, field: str) -> str:
        """A field that must hold text."""
        if field not in self.values:
            raise self.refuse(field, f"is missing{near_miss(field, self.values)}; {self.has}")
        return self._checked(field, self.values[field])

    def named(self, field: str) -> str:
        """What a field calls something by: text, or a whole number as its digits."""
        value = self.values.get(field)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(field).strip()

    def optional_text(self, field: str) -> str | None:
        """A field that may be left out or null."""
        value = self.values.get(field)
        return None if value is None else self._checked(field, value)

    def texts(self, field: str) -> tuple[str, ...]:
        """A field that must hold a list of texts."""
        value = self.values.get(field)
        if self.cells and isinstance(value, str):
            raise self.refuse(field, "a cell holds one text; name two columns in the study file: [NAME, NAME]")
        if not isinstance(value, list | tuple):
            raise self.refuse(field, f"must be a list of texts, not {value!r:.80}")
        return tuple(self._checked(f"{field}[{number}]", choice) for number, choice in enumerate(value))

    def with_texts(self, field: str, values: Sequence[object]) -> list[str]:
        """`values`, which must be texts and come from `field`."""
        return [self._checked(field, value) for value in values]

    def optional_index(self, field: str) -> int | None:
        """A whole number or null; the field must be there, so that a misspelt name is not taken for null."""
        empty = "empty" if self.cells else "null"
        if field not in self.values:
            raise self.refuse(field, f"is missing; write {empty} where no choice is right")
        value = self.values[field]
        if self.cells and isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.refuse(field, f"must be a whole number or {empty}, not {value!r:.80}; choices are counted from 0")

    @property
    def has(self) -> str:
        """The fields that are there, for messages."""
        return f"the row has {listed(self.values)}"

    def _checked(self, field: str, value: object) -> str:
        return checked_text(value, lambda problem: self.refuse(field, problem))


def checked_text(value: object, refuse: Callable[[str], InputError]) -> str:
    """`value` if it is text that can be asked and stored; else what `refuse` makes of the problem is raised."""
    if value is None:
        raise refuse("is empty")
    if not isinstance(value, str):
        raise refuse(f"must be text, not {value!r:.80}")
    if len(value) > LONGEST_TEXT:
        raise refuse(f"has {len(value):,} characters; at most {LONGEST_TEXT:,} are read")
    if not value.strip():
        raise refuse("is empty")
    if not is_storable(value):
        raise refuse("holds a NUL character or half a surrogate pair, which no text file should")
    return value


def near_miss(name: str, known: Iterable[str]) -> str:
    """A question that names what may have been meant, or nothing."""
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.7)
    return f"; did you mean {printable(folded[near[0]])}?" if near else ""


def listed(names: Iterable[str]) -> str:
    """Names for a message: on one line, and not without end."""
    shown = [printable(name) for name in names]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    return ", ".join(shown[:12]) + more or "no fields"


def printable(name: str) -> str:
    """A name for a message: as it is, or quoted where it would break or hide something."""
    plain = name.isprintable() and name == name.strip() != ""
    return (name if plain else repr(name))[:80]
