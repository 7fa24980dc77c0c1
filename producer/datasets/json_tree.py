"""A JSON document by its places: every value knows where it stands, for messages like data[3].paragraphs[7].

A row of JSON Lines, or of Parquet, is a document of its own.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from contract.errors import InputError
from producer.datasets.files import decode, open_data
from producer.datasets.json_rows import json_rows, parse_json
from producer.datasets.parquet_rows import parquet_rows
from producer.datasets.rows import checked_text, listed, near_miss


@dataclass(frozen=True, kw_only=True)
class Node:
    """A value and its place, which is empty for the document itself. `named` is put before what is wrong with it.

    `row`: the number of the row that the document is, counted from 1; None for a whole file.
    """

    path: Path
    value: object
    place: str = ""
    named: str = ""
    row: int | None = None

    def refuse(self, field: str, problem: str) -> InputError:
        """The error that says what is wrong with the value, or with the field of it that is not empty."""
        place = f"{self.place}.{field}" if self.place and field else self.place or field
        return InputError(self.path, f"{self.named}{problem}", row=self.row, field=place or None)

    def entries(self, key: str) -> list["Node"]:
        """What the list under `key` holds."""
        value = self._under(key)
        if not isinstance(value, list):
            raise self.refuse(key, f"must be a list, not {value!r:.80}")
        at = self._at(key)
        return [replace(self, value=entry, place=f"{at}[{number}]") for number, entry in enumerate(value)]

    def under(self, key: str) -> "Node":
        """What stands under `key`."""
        return replace(self, value=self._under(key), place=self._at(key))

    def has(self, key: str) -> bool:
        """Whether something stands under `key`."""
        return isinstance(self.value, dict) and key in self.value

    def value_of(self, key: str) -> object:
        """What stands under `key`, whatever it is."""
        return self._under(key)

    def texts(self, key: str) -> list[str]:
        """The texts of the list under `key`."""
        return [entry.own_text() for entry in self.entries(key)]

    def number(self, key: str) -> float:
        """The number under `key`."""
        value = self._under(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.refuse(key, f"must be a number, not {value!r:.80}")
        return float(value)

    def text(self, key: str) -> str:
        """The text under `key`."""
        return checked_text(self._under(key), lambda problem: self.refuse(key, problem))

    def maybe_blank(self, key: str) -> str | None:
        """The text under `key`, None where it has nothing but white space."""
        value = self._under(key)
        return None if isinstance(value, str) and not value.strip() else self.text(key)

    def own_text(self) -> str:
        """The value itself, which must be text."""
        return checked_text(self.value, lambda problem: self.refuse("", problem))

    def _at(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _under(self, key: str) -> object:
        if not isinstance(self.value, dict):
            raise self.refuse("", f"must be a JSON object with {key}, not {self.value!r:.80}")
        if key not in self.value:
            raise self.refuse(key, f"is missing{near_miss(key, self.value)}; there is {listed(self.value)}")
        return self.value[key]


def read_trees(path: Path) -> Iterator[Node]:
    """The rows of a Parquet file, or of JSON Lines under any other name, each a document."""
    rows = parquet_rows(path) if path.suffix.lower() == ".parquet" else json_rows(path)
    for row in rows:
        yield Node(path=path, value=row.values, row=row.number)


def read_tree(path: Path) -> Node:
    """The document in `path`, plain or packed."""
    with open_data(path) as file:
        text = decode(path, file.read())
    if not text.strip():
        raise InputError(path, "the file is empty")
    try:
        return Node(path=path, value=parse_json(text))
    except ValueError as error:
        raise InputError(path, f"not one JSON document: {error}") from None
