"""Whether a text is an answer and nothing else: no label, no list, no reason for it, no refusal in words."""

import re
import unicodedata
from functools import cache

from contract.answers import InvalidReason
from contract.reading.languages import LANGUAGES

_WRAPPERS = (
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("_", "_"),
    ("`", "`"),
    ('"', '"'),
    ("“", "”"),
    ("«", "»"),
    ("'", "'"),
)
_TURN_ENDS = re.compile(r"\s*(?:<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>)\s*\Z")
_LEFT_OVER = re.compile(r"\*\*|__|`|</?\w+>|<\||\\(?:boxed|text)\b|^(?:[-*•–]|\d{1,2}[.)]|[A-Za-z]\))\s")
_ROLE = re.compile(r"(?:assistant|model|user|sistema|[A-Z])\s*:", re.IGNORECASE)
_FIRST_WORDS = 60  # characters in which a label has room


def unwrapped(text: str) -> str:
    """`text` without blanks, quotes or emphasis around the whole of it, and without what ends a turn."""
    text = _TURN_ENDS.sub("", text).strip()
    for begin, end in _WRAPPERS:
        inner = text[len(begin) : -len(end)]
        whole = text.startswith(begin) and text.endswith(end) and inner.strip()
        if whole and begin not in inner and end not in inner:
            return unwrapped(inner)
    return text


def why_not_bare(text: str) -> InvalidReason | None:
    """What `text`, unwrapped, is beside an answer; None if it is nothing else."""
    if _declines(text):
        return InvalidReason.REFUSAL
    lines = len(text.splitlines()) > 1 or any(unicodedata.category(character) == "Cc" for character in text)
    if lines or _LEFT_OVER.search(text) or _ROLE.match(text) or _labelled(text) or _judged().search(text):
        return InvalidReason.NOT_BARE
    return None


def _declines(text: str) -> bool:
    """Whether the text declines, or says that nothing tells it. One word, or a name that begins so, is an answer."""
    if _untold().match(text):
        return True
    found = _refusal().match(text)
    if found is None:
        return False
    following = re.match(r"\W+(\w)", text[found.end() :])
    return following[1].islower() if following else len(found[0].split()) > 1


def _labelled(text: str) -> bool:
    """Whether words that name an answer stand before a colon at the beginning, or before a verb: "La risposta è"."""
    label, colon, _ = text[:_FIRST_WORDS].partition(":")
    return bool((colon and _naming().search(label)) or _announced().match(text))


def _any(*fields: str) -> str:
    """The alternatives of these fields in all languages."""
    return "|".join(filter(None, (getattr(known, field) for known in LANGUAGES for field in fields)))


@cache
def _refusal() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:(?:i|we|am|are|sorry|io|purtroppo|scusa|però)\W+){{0,3}}(?:{_any('refusals')})\b")


@cache
def _untold() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:{_any('untold')})\b")


@cache
def _naming() -> re.Pattern[str]:
    return re.compile(rf"(?i)\b(?:{_any('replies', 'nouns', 'labels', 'headings', 'right', 'wrong')})\b")


@cache
def _announced() -> re.Pattern[str]:
    words, joins = _any("replies"), _any("is_", "would_be")
    return re.compile(rf"(?i)(?:(?:{_any('articles')})\s*)?(?:\w+\s+)?(?:{words})\b.{{0,60}}?\b(?:{joins})\b")


@cache
def _judged() -> re.Pattern[str]:
    """What says of an answer that it is right or wrong: "(risposta errata)", "this answer is incorrect"."""
    return re.compile(rf"(?i)\b(?:{_any('replies')})\b.{{0,20}}\b(?:{_any('right', 'wrong')})\b")
