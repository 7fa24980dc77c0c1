"""The cache: a folder for each address, with the file under its own name and a record of what was fetched.

A file without a record, or a record without its file, counts as not there. What is there is hashed before each use.
"""

import fcntl
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from producer.fetching.addresses import Address
from producer.fetching.errors import FetchError

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Kept(BaseModel):
    """A small file beside a data file. Others may have written or cut it: one that cannot be read is not there."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Record(Kept):
    """What was fetched: from where (without what may be secret), how much, its hash, and what its server called it."""

    address: str
    bytes: Count
    sha256: Sha256
    etag: str | None = None
    last_modified: str | None = None
    fetched_at: datetime


class UnfinishedRecord(Kept):
    """Of which version an unfinished file is; see `producer.fetching.resume.Version`."""

    total: Count | None = None
    etag: str | None = None
    modified: str | None = None


class Contents(Kept):
    """What an archive was unpacked to: the hash of the archive, and of each file by its path in it."""

    archive: Sha256
    files: dict[str, Sha256]


AnyKept = TypeVar("AnyKept", bound=Kept)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The place of one address in the cache; nothing needs to be there."""

    folder: Path
    name: str

    @property
    def file(self) -> Path:
        """The file as it was fetched."""
        return self.folder / self.name

    @property
    def record(self) -> Path:
        """What is known of it, as JSON."""
        return self._beside(".record.json")

    @property
    def unfinished(self) -> Path:
        """What has come so far of a file that is being fetched."""
        return self._beside(".part")

    @property
    def unfinished_record(self) -> Path:
        """Of which version that is."""
        return self._beside(".part.json")

    @property
    def unpacked(self) -> Path:
        """The folder that an archive is unpacked to."""
        return self._beside(".unpacked")

    @property
    def contents(self) -> Path:
        """What the unpacked folder must hold."""
        return self._beside(".unpacked.json")

    @contextmanager
    def locked(self, waits: Callable[[], None]) -> Iterator[None]:
        """Keep other processes out; `waits` is told when one of them has to be waited for.

        The lock's file stays: two processes that each made one would each hold a lock.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = self._beside(".lock").open("a")
        with lock:
            with writing(self.folder):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waits()
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _beside(self, ending: str) -> Path:
        return self.folder / f"{self.name}{ending}"


def entry_of(cache: Path, address: Address) -> Entry:
    """The place of `address` in the cache."""
    return Entry(folder=cache / address.folder, name=address.name)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in this block becomes one clear error."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or "it is damaged"
        raise FetchError(f"{folder} cannot be written to: {problem}; name another folder with BOTHWAYS_CACHE") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """The same for what is read in the cache."""
    try:
        yield
    except OSError as error:
        raise FetchError(f"{path} cannot be read: {error.strerror}; set BOTHWAYS_CACHE to a folder of yours") from None


def read_kept(kind: type[AnyKept], path: Path) -> AnyKept | None:
    """What stands in `path`, None where nothing does that can be read."""
    try:
        with reading(path):
            return kind.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        return None


def write_kept(value: Kept, path: Path) -> None:
    """Put `value` into `path`, whole or not at all."""
    beside = path.with_name(f"{path.name}.new")
    with writing(path.parent):
        beside.write_text(value.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")
        beside.replace(path)


def sha256_of(path: Path) -> str:
    """The hash of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
