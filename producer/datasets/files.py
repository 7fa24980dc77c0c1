"""Data files as bytes and as lines of text: plain or packed, UTF-8 with or without a byte order mark."""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from contract.errors import InputError

_PACKERS: dict[str, tuple[str, Callable[[Path], gzip.GzipFile | bz2.BZ2File]]] = {
    ".gz": ("gzip", gzip.GzipFile),
    ".bz2": ("bzip2", bz2.BZ2File),
}
PACKED = tuple(_PACKERS)
"""The endings of packed files that are read as they are."""

_GZIP_BEGINS = b"\x1f\x8b"
_UTF_16_BEGINS = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def open_data(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of `path`, unpacked where its name says that they are packed; what cannot be read is refused."""
    ending = path.suffix.lower()
    kind, unpack = _PACKERS.get(ending, ("", None))
    try:
        with path.open("rb") if unpack is None else unpack(path) as file:
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(path, _not_whole(kind, ending)) from None
    except OSError as error:
        # bz2 has no error of its own for a damaged file, only one without a reason of the system's.
        problem = f"cannot be read: {error.strerror}" if error.strerror else _not_whole(kind, ending)
        raise InputError(path, problem) from None


def _not_whole(kind: str, ending: str) -> str:
    return f"not a whole {kind} file, though its name ends in {ending}; copy or download it again"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file with their ends. Only a line feed ends a line; a text may hold other separators."""
    with open_data(path) as file:
        for number, raw in enumerate(file, start=1):
            yield decode(path, raw, line=number)


def decode(path: Path, raw: bytes, *, line: int = 1) -> str:
    """The text of `raw`, which begins in `line`; a byte order mark at the head of the file is no part of it."""
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line += raw.count(b"\n", 0, error.start)
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        raise InputError(path, _not_utf_8(raw, byte), line=line) from None


def _not_utf_8(raw: bytes, byte: int) -> str:
    if raw.startswith(_GZIP_BEGINS):
        return "not UTF-8: it is packed with gzip; let its name end in .gz"
    kind = " but UTF-16" if raw.startswith(_UTF_16_BEGINS) else f" (byte {byte} of the line)"
    return f"not UTF-8{kind}; save it as UTF-8"
