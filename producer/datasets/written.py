"""Lists and mappings that stand in a data file as such, or as the text that Python or JSON writes for them.

A text is only ever read, and nothing in it is run: it holds texts, numbers, lists and mappings, or it is refused.
"""

import ast
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial

from producer.datasets.json_rows import parse_json
from producer.datasets.rows import Row, checked_text

_LONGEST = 200_000  # characters of a list as text; the parser of Python takes a hundred times that in memory
_DEFAULTDICT = "defaultdict(<class 'list'>, "


def texts_of(row: Row, field: str) -> tuple[str, ...]:
    """A field that holds a list of texts."""
    entries = enumerate(list_of(row, field))
    return tuple(checked_text(entry, partial(row.refuse, f"{field}[{place}]")) for place, entry in entries)


def numbers_of(row: Row, field: str) -> tuple[float, ...]:
    """A field that holds a list of numbers."""
    return tuple(number(row, f"{field}[{place}]", entry) for place, entry in enumerate(list_of(row, field)))


def list_of(row: Row, field: str) -> Sequence[object]:
    """A field that holds a list of whatever."""
    value = _value(row, field, "a list, like ['Yes', 'No']")
    if not isinstance(value, list | tuple):
        raise row.refuse(field, f"must be a list, not {value!r:.80}")
    return value


def mapping_of(row: Row, field: str) -> Mapping[str, object]:
    """A field that holds a mapping with texts as keys."""
    value = _value(row, field, "a mapping, like {'France': [0.4, 0.6]}")
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise row.refuse(field, f"must be a mapping of texts, not {value!r:.80}")
    return value


def number(row: Row, field: str, value: object) -> float:
    """`value` as a number; a cell of a table has its digits."""
    written = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        found = float(value) if written or (row.cells and isinstance(value, str)) else math.nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise row.refuse(field, f"must be a number, not {value!r:.80}")
    return found


def share(row: Row, field: str, value: object) -> float:
    """`value` as the share of people who gave an answer."""
    found = number(row, field, value)
    if not 0 <= found <= 1:
        raise row.refuse(field, f"must be a share between 0 and 1, not {found:g}")
    return found


def _value(row: Row, field: str, wanted: str) -> object:
    if field not in row.values:
        raise row.refuse(field, f"is missing; {row.has}")
    value = row.values[field]
    if not isinstance(value, str):
        return value
    try:
        return _read(value)
    except ValueError:
        raise row.refuse(field, f"must be {wanted}, not {value!r:.80}") from None


def _read(text: str) -> object:
    """The value that `text` writes; ValueError where it is no value but code, or nothing at all."""
    if len(text) > _LONGEST:
        raise ValueError
    text = text.strip()
    if text.startswith(_DEFAULTDICT) and text.endswith(")"):
        text = text[len(_DEFAULTDICT) : -1]
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError from error
