"""Rows of comma or tab separated files. The first line names the columns; what does not fit it is refused."""

import csv
from collections.abc import Iterator
from pathlib import Path

from contract.errors import InputError
from producer.datasets.files import read_lines
from producer.datasets.rows import LONGEST_TEXT, Row, printable

_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_PROBLEMS = {
    "unexpected end of data": "a quote is opened and never closed",
    "new-line character seen": "a line ends in a lone carriage return; save it with LF or CRLF at the ends of lines",
    "field larger than": f"a field has far more than {LONGEST_TEXT:,} characters; is a quote opened and never closed?",
}


def csv_rows(path: Path, *, delimiter: str) -> Iterator[Row]:
    """The rows below the header, numbered from 1; empty lines are passed over but counted."""
    lines = _numbered(path, delimiter)
    header = _header(path, next(lines, (0, []))[1], delimiter)
    for number, cells in lines:
        if not cells:
            continue
        if len(cells) != len(header):
            problem = (
                f"{len(cells)} cells under {len(header)} columns; a text that holds a separator or a line break "
                "stands in quotes"
            )
            raise InputError(path, problem, row=number)
        values = {name: cell if cell.strip() else None for name, cell in zip(header, cells, strict=True) if name}
        yield Row(path=path, number=number, values=values, cells=True)


def _header(path: Path, names: list[str], delimiter: str) -> list[str]:
    if not names:
        raise InputError(path, "the first line is empty; it names the columns", line=1)
    for name in names:
        if name and names.count(name) > 1:
            raise InputError(path, "two columns have this name; keep or rename one", line=1, field=printable(name))
    other = next((sign for sign in _SEPARATORS if sign != delimiter and sign in names[0]), None)
    if len(names) == 1 and other:
        problem = f"one column, {printable(names[0])}: here {_SEPARATORS[delimiter]} separate, not {_SEPARATORS[other]}"
        raise InputError(path, f"{problem}; name a file with tabs .tsv, one with commas .csv", line=1)
    return names


def _numbered(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of cells, the header as 0."""
    # The limit is the module's and not the reader's; checked fields have a lower one of their own, with their name.
    before = csv.field_size_limit(10 * LONGEST_TEXT)
    number = 0
    try:
        for cells in csv.reader(read_lines(path), delimiter=delimiter, strict=True):
            yield number, cells
            number += 1
    except csv.Error as error:
        known = (text for begin, text in _PROBLEMS.items() if str(error).startswith(begin))
        problem = next(known, f"not valid CSV: {error}; a quote within a quoted text is written twice")
        raise InputError(path, problem, row=number or None, line=None if number else 1) from None
    finally:
        csv.field_size_limit(before)
