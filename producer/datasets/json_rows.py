"""JSON as people write it: documents and JSON Lines, with what is wrong in them in one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.errors import InputError
from producer.datasets.files import read_lines
from producer.datasets.rows import Row, printable


def json_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file; empty lines are passed over but counted."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield _row(path, number, line)


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a JSON text; ValueError, and nothing else, says what is wrong with it."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _row(path: Path, number: int, line: str) -> Row:
    try:
        values = parse_json(line)
    except ValueError as error:
        raise InputError(path, f"not a JSON object on one line: {error}", row=number) from None
    if not isinstance(values, dict):
        raise InputError(path, f"must be a JSON object, not {type(values).__name__}", row=number)
    return Row(path=path, number=number, values=values)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{printable(twice)} stands twice; keep one")
    return values
