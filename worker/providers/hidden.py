"""Keeping keys and prompts out of what is told about a call."""

import json
import re
from collections.abc import Iterator

_HIDDEN = "[...]"
_LONGEST = 20_000
_PIECE = 16
_PIECE_OF_A_KEY = 8
_COVERED = re.compile("\1+")


def without(hidden: tuple[str, ...], text: str) -> str:
    """`text`, its first 20,000 characters, without the texts that must not be shown, as they are and as JSON and
    Python write them.

    Many servers quote only a part, so every piece of 16 characters goes, and of 8 where there is no space, as in keys.
    """
    text = text[:_LONGEST]
    covered = ["\0"] * len(text)
    for written in {spelling for secret in hidden for spelling in _spellings(secret)}:
        for start, end in _shared(written, text):
            covered[start:end] = "\1" * (end - start)
    shown, last = "", 0
    for run in _COVERED.finditer("".join(covered)):
        shown += text[last : run.start()] + _HIDDEN
        last = run.end()
    return shown + text[last:]


def _spellings(secret: str) -> Iterator[str]:
    """The secret as others write it, JSON within JSON included."""
    once = (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    yield from once
    yield from (json.dumps(each, ensure_ascii=False)[1:-1] for each in once)


def _shared(written: str, text: str) -> Iterator[tuple[int, int]]:
    """From where to where in `text` a piece of what was `written` stands."""
    size = min(len(written), _PIECE if any(map(str.isspace, written)) else _PIECE_OF_A_KEY)
    places = range(len(text) - size + 1)
    pieces = {text[start : start + size] for start in places} if size else set()
    here = {piece for start in range(len(written) - size + 1) if (piece := written[start : start + size]) in pieces}
    return ((start, start + size) for start in places if text[start : start + size] in here)
