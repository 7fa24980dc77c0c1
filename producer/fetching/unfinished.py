"""A file that is being fetched: what has come of it, and of which version that is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from producer.fetching.cache import Entry, UnfinishedRecord, read_kept, reading, write_kept, writing
from producer.fetching.errors import FetchError
from producer.fetching.resume import Version


class Unfinished:
    """The bytes so far of one entry. What is there when a process ends is there for the next one."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    @property
    def held(self) -> int:
        """How many bytes there are."""
        path = self._entry.unfinished
        with reading(path):
            return path.stat().st_size if path.exists() else 0

    @property
    def version(self) -> Version | None:
        """Of which version they are, None where nobody knows."""
        kept = read_kept(UnfinishedRecord, self._entry.unfinished_record)
        return None if kept is None else Version(**dict(kept))

    def begin(self, version: Version) -> None:
        """Begin with a version. Bytes go before the record, which must never vouch for those of another one."""
        needed, there = version.total or 0, shutil.disk_usage(self._entry.folder).free
        if needed > there + self.held:
            problem = f"{needed:,} bytes are to come, and {self._entry.folder} has room for {there:,}"
            raise FetchError(f"{problem}; make room, or name another folder with BOTHWAYS_CACHE")
        self.discard()
        record = UnfinishedRecord(total=version.total, etag=version.etag, modified=version.modified)
        write_kept(record, self._entry.unfinished_record)

    def discard(self) -> None:
        """Throw away what is there."""
        with writing(self._entry.folder):
            self._entry.unfinished.unlink(missing_ok=True)
            self._entry.unfinished_record.unlink(missing_ok=True)

    @contextmanager
    def appending(self) -> Iterator[IO[bytes]]:
        """The end of the file, to be written to."""
        with writing(self._entry.folder), self._entry.unfinished.open("ab") as file:
            yield file
