"""When two short answers say the same, as a reader would see it; for texts that must differ from others."""

import re
import unicodedata
from functools import cache

from contract.reading.languages import LANGUAGES

_MARKUP = frozenset("`*_~^")
_KEPT = frozenset("%‰#&@")
_APOSTROPHES = frozenset("'’‘ʼ′´`")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\u00a0\u202f](?=\d{3}(?!\d))")


def same(text: str) -> str:
    """What texts have in common that say the same; empty where nothing is said.

    Case, punctuation, markup, blanks, accents on Latin letters, marks of thousands, and articles and prepositions at
    the beginning count nothing. Signs that carry meaning do: %, °, currencies, + and #, and a minus before a number.
    """
    words = _words(text).split()
    small = _small_words()
    while len(words) > 1 and words[0] in small:
        words.pop(0)
    return " ".join(words)


def contains(text: str, part: str) -> bool:
    """Whether `text` has the words of `part` in it, one after the other."""
    sought = same(part)
    return bool(sought) and f" {sought} " in f" {' '.join(_words(text).split())} "


def _words(text: str) -> str:
    """`text` in lower case, with blanks for all that counts nothing."""
    text = _THOUSANDS.sub("", unicodedata.normalize("NFC", text).casefold())
    kept = (_kept(text, place) for place in range(len(text)))
    return _without_accents("".join(kept))


def _kept(text: str, place: int) -> str:
    character = text[place]
    if character in _MARKUP or character == "\u00ad":
        return ""
    if character in "-\u2212":
        return "-" if _is_minus(text, place) else " "
    if unicodedata.category(character)[0] in "LMNS" and character not in _APOSTROPHES:
        return character
    return character if character in _KEPT else " "


def _is_minus(text: str, place: int) -> bool:
    """Whether the sign at `place` belongs to the number after it and joins no two words."""
    return text[place + 1 : place + 2].isdigit() and not text[place - 1 : place].isalnum()


def _without_accents(text: str) -> str:
    """Accents are often written as apostrophes, or not at all; in other scripts marks are letters."""
    apart = ((character, unicodedata.normalize("NFD", character)[0]) for character in text)
    return "".join(base if base.isascii() and base.isalpha() else character for character, base in apart)


@cache
def _small_words() -> frozenset[str]:
    words = (word for known in LANGUAGES for word in known.leading.split("|"))
    return frozenset(_words(word).strip() for word in words) - {""}
