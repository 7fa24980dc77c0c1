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
    cut_from = len(text) if len(text) > MAX_CHARACTERS else None
    kept = text[:MAX_CHARACTERS].replace("\x00", _NUL_SHOWN)
    return StorableText(text=kept.encode("utf-8", "backslashreplace").decode("utf-8"), cut_from=cut_from)
