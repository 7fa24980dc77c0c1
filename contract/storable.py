"""Model text as Postgres can hold it, with nothing said lost: the one place where such text is changed."""

from dataclasses import dataclass

MAX_CHARACTERS = 4_000_000
"""More than this is cut; the true length is kept beside it."""

_NUL_SHOWN = "\N{SYMBOL FOR NULL}"


@dataclass(frozen=True, kw_only=True)
class StorableText:
    """Text that a row can hold; `cut_from` is the length it had if it was cut, else None."""

    text: str
    cut_from: int | None


def storable(text: str) -> StorableText:
    """`text` with NUL shown as its symbol, lone surrogates as \\udXXX escapes, and cut at four million characters."""
    shown = text[:MAX_CHARACTERS].replace("\x00", _NUL_SHOWN).encode("utf-8", "backslashreplace").decode("utf-8")
    cut = len(text) > MAX_CHARACTERS or len(shown) > MAX_CHARACTERS
    return StorableText(text=shown[:MAX_CHARACTERS], cut_from=len(text) if cut else None)


def is_storable(text: str) -> bool:
    """Whether a row can hold `text` as it is. What people write must be; what models say is made so."""
    return "\x00" not in text and text.encode("utf-8", "replace").decode("utf-8") == text
