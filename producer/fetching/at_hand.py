"""What is in the cache already: nothing is fetched or written here, and what is not as it was fetched is refused."""

from dataclasses import dataclass, replace
from pathlib import Path

from producer.fetching.addresses import Address
from producer.fetching.archives import choose, unpacked
from producer.fetching.cache import Contents, Entry, Record, entry_of, read_kept, reading, sha256_of
from producer.fetching.errors import WrongHashError


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A file that was fetched, now or earlier.

    `path` is what is read: the file itself, or the one that was chosen of an archive. `bytes` and `sha256` are those of
    the file as it was fetched. `pinned`: the study says which hash it must have; `before`: the hash that another file
    had which was fetched from there earlier.
    """

    path: Path
    address: str
    bytes: int
    sha256: str
    pinned: bool
    before: str | None = None

    @classmethod
    def of(cls, entry: Entry, record: Record, *, pinned: bool, before: Record | None = None) -> "Fetched":
        """The file that `record` is about."""
        other = before is not None and before.sha256 != record.sha256
        return cls(
            path=entry.file,
            address=record.address,
            bytes=record.bytes,
            sha256=record.sha256,
            pinned=pinned,
            before=before.sha256 if before is not None and other else None,
        )


def at_hand(cache: Path, address: Address, sha256: str | None = None, *, whole: bool = True) -> Fetched | None:
    """The file of `address` in the cache; None where it must be fetched, also because a study wants another one.

    WrongHashError where the file is not what was fetched. `whole`: an archive counts only where it is unpacked.
    """
    entry = entry_of(cache, address)
    record = read_kept(Record, entry.record)
    with reading(entry.file):
        if record is None or not entry.file.is_file():
            return None
        found, size = sha256_of(entry.file), entry.file.stat().st_size
    if found not in (record.sha256, sha256):
        raise WrongHashError(
            f"{entry.file} is not as it was fetched on {record.fetched_at:%Y-%m-%d}: its sha256 is {found}, and was "
            f"{record.sha256}; delete it, and it is fetched anew"
        )
    if sha256 not in (None, found):
        return None
    fetched = replace(Fetched.of(entry, record, pinned=sha256 is not None), sha256=found, bytes=size)
    if address.pattern is None or not whole:
        return fetched
    contents = unpacked(entry, found)
    return None if contents is None else chosen(fetched, entry, contents, address)


def chosen(fetched: Fetched, entry: Entry, contents: Contents, address: Address) -> Fetched:
    """The archive with the one file of it that the address chooses."""
    member = choose(contents.files, address.pattern or "*", fetched.path.name)
    return replace(fetched, path=entry.unpacked / member)
