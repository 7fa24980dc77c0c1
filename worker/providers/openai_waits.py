"""How long a server asks to be left alone: in a header, or else in its message."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SPAN = r"(\d+(?:\.\d+)?) ?(milli|ms|[dhms])[a-z]*"
_SPANS = re.compile(_SPAN)
_ASKED = re.compile(rf"(?:try again|retry) (?:in|after) (?:{_SPAN} ?)+")
_SECONDS = {"milli": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def named_wait(headers: Mapping[str, str], message: str, *, now: datetime) -> float | None:
    """The wait in seconds, 0 or more; None where none is named. `headers` go by their names in lower case."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    for wait_s in (_number(asked), _until(asked, now), _in_words(message)):
        if wait_s is not None:
            return wait_s
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _until(date: str | None, now: datetime) -> float | None:
    """The seconds from `now` to an HTTP date."""
    try:
        instant = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    # A date that names no zone is in UTC.
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return max(0.0, (instant - now).total_seconds())


def _in_words(message: str) -> float | None:
    """ "Please try again in 1m2.5s", as hosted servers write it."""
    asked = _ASKED.search(message.lower())
    if asked is None:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _SPANS.findall(asked[0]))
