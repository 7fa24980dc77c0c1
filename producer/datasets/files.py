"""Data files as bytes and as lines of text: plain or packed with gzip, UTF-8 with or without a byte order mark."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from contract.errors import InputError

PACKED = ".gz"

_GZIP_BEGINS = b"\x1f\x8b"
_UTF_16_BEGINS = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def open_data(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of `path`, unpacked where its name ends in .gz; what cannot be read is refused."""
    try:
        with gzip.open(path) if path.suffix.lower() == PACKED else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(
            path, "not a whole gzip file, though its name ends in .gz; copy or download it again"
        ) from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None


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
