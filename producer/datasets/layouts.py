"""How a data file lays out its rows, told by the ending of its name."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from contract.errors import InputError
from producer.datasets.csv_rows import csv_rows
from producer.datasets.files import PACKED, read_lines
from producer.datasets.json_rows import json_rows
from producer.datasets.parquet_rows import parquet_rows
from producer.datasets.rows import Row

_LAYOUTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": json_rows,
    ".ndjson": json_rows,
    ".csv": partial(csv_rows, delimiter=","),
    ".tsv": partial(csv_rows, delimiter="\t"),
    ".parquet": parquet_rows,
}


def read_table(path: Path) -> Iterator[Row]:
    """The rows of a file that a person may have saved from a spreadsheet: .csv may be separated by semicolons too."""
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    if name.suffix.lower() == ".csv" and path.is_file():
        head = next(iter(read_lines(path)), "")
        if head.count(";") > head.count(","):
            return csv_rows(path, delimiter=";")
    return read_rows(path)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a data file, numbered from 1; a header is no row, an empty line is passed over but counted."""
    if path.is_dir():
        raise InputError(path, "cannot be read: Is a directory")
    packed = path.suffix.lower() in PACKED
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if ending not in _LAYOUTS or (packed and ending == ".parquet"):
        found = f"the ending {''.join(path.suffixes[-2:] if packed else path.suffixes[-1:])!r}"
        known = ", ".join(_LAYOUTS)
        raise InputError(path, f"{found} says no layout; known: {known}, those of text also with {' or '.join(PACKED)}")
    return _LAYOUTS[ending](path)
