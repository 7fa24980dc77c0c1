"""A file at an address, from the cache or from where it lives; what is in the cache under its name has been checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import httpx

from producer.fetching.addresses import Address
from producer.fetching.archives import unpack, unpacked
from producer.fetching.at_hand import Fetched, at_hand, chosen
from producer.fetching.cache import Entry, Record, entry_of, read_kept, sha256_of, write_kept, writing
from producer.fetching.download import TIMEOUT, Download, Patience, Telling
from producer.fetching.errors import FetchError, WrongHashError
from producer.fetching.hub import Hub
from producer.fetching.unfinished import Unfinished


class Watch(Telling, Protocol):
    """Told how the files of a study are fetched; files that are at hand are none of its business."""

    def began(self, address: Address) -> None:
        """A file is going to be fetched."""

    def ended(self, fetched: Fetched) -> None:
        """It is there."""


@dataclass(frozen=True, kw_only=True)
class Fetcher:
    """Fetches into `cache`. `transport` is for trials without a network."""

    cache: Path
    hub: Hub
    watch: Watch
    patience: Patience = field(default_factory=Patience)
    transport: httpx.BaseTransport | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __call__(self, address: Address, sha256: str | None = None) -> Fetched:
        """The file at `address`, which must have this hash if one is given; FetchError where it cannot be had."""
        there = at_hand(self.cache, address, sha256)
        if there is not None:
            return there
        entry = entry_of(self.cache, address)
        with entry.locked(lambda: self.watch.waits(f"another process fetches {address.name}")):
            there = at_hand(self.cache, address, sha256, whole=False)
            if there is None:
                there = self._fetch(entry, address, sha256)
            if address.pattern is None:
                return there
            contents = unpacked(entry, there.sha256) or unpack(entry, there.sha256)
            return chosen(there, entry, contents, address)

    def _client(self) -> httpx.Client:
        try:
            return httpx.Client(timeout=TIMEOUT, transport=self.transport)
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            problem = f"a proxy or certificates that the environment names cannot be used ({type(error).__name__})"
            raise FetchError(f"{problem}; look at SSL_CERT_FILE, HTTPS_PROXY and ALL_PROXY") from None

    def _fetch(self, entry: Entry, address: Address, sha256: str | None) -> Fetched:
        self.watch.began(address)
        unfinished = Unfinished(entry)
        with self._client() as client:
            download = Download(
                address=address,
                unfinished=unfinished,
                client=client,
                hub=self.hub,
                telling=self.watch,
                patience=self.patience,
            )
            version = download.run()
        found = sha256_of(entry.unfinished)
        if sha256 is not None and found != sha256:
            unfinished.discard()
            raise WrongHashError(_wrong(address, found, sha256))
        record = Record(
            address=address.shown,
            bytes=entry.unfinished.stat().st_size,
            sha256=found,
            etag=version.etag,
            last_modified=version.modified,
            fetched_at=self.now(),
        )
        before = read_kept(Record, entry.record)
        _keep(entry, record)
        fetched = Fetched.of(entry, record, pinned=sha256 is not None, before=before)
        self.watch.ended(fetched)
        return fetched


def _keep(entry: Entry, record: Record) -> None:
    """Give what is whole now the name of the file. Its record goes first: without one it would be fetched again."""
    with writing(entry.folder):
        entry.file.unlink(missing_ok=True)
        write_kept(record, entry.record)
        entry.unfinished.replace(entry.file)
        entry.unfinished_record.unlink(missing_ok=True)


def _wrong(address: Address, found: str, expected: str) -> str:
    return (
        f"what is at {address.shown} has the sha256 {found}, and the study expects {expected}; it was thrown away. Try "
        "again if it may have been damaged on its way; if its authors changed it, look at what changed and write the "
        "new one"
    )
