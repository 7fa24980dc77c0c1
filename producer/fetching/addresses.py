"""Addresses of data files: https://, http://, and hf:// for the Hugging Face hub; #PATTERN chooses from an archive."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from producer.fetching.errors import FetchError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2")
"""The endings of archives, from which a pattern chooses one file."""

HUB = "hf"
_SCHEMES = ("https", "http", HUB)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HUB_PATH = re.compile(
    # A revision with slashes is written with %2F; those that the hub makes by itself also as they are.
    r"datasets/(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/convert/\w+|refs/pr/\d+|[^/@]+))?/(?P<path>[^/].*)"
)
_LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file of a dataset on the Hugging Face hub."""

    repo: str
    revision: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a file lives. `source` is the address without its pattern; it may hold a secret after its question mark.

    `pattern` chooses one file of an archive, None where the file is no archive. `hub`: what an hf:// address means.
    """

    source: str
    pattern: str | None = None
    hub: HubFile | None = None

    @property
    def shown(self) -> str:
        """The address for messages and records, without what may be secret in it."""
        return self.source.partition("?")[0]

    @property
    def name(self) -> str:
        """The file's own name, because loaders go by names and endings; only letters that every folder can hold."""
        path = self.hub.path if self.hub else urlsplit(self.source).path
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(unquote(path)).name).lstrip(".")
        return plain[-_LONGEST_NAME:].lstrip(".") or "data"

    @property
    def folder(self) -> str:
        """The name of its folder in the cache: readable, and another one for every address."""
        digest = hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.name.partition('.')[0][:40]}-{digest[:12]}"


def is_address(written: str) -> bool:
    """Whether `written` is meant as an address and not as a path."""
    return _SCHEME.match(written) is not None


def read_address(written: str) -> Address:
    """The address that `written` is; FetchError says how one is written."""
    source, _, pattern = written.partition("#")
    scheme = source.partition("://")[0].lower()
    if scheme not in _SCHEMES:
        raise FetchError(f"{scheme}:// is not known: an address begins with https://, http:// or hf://datasets/")
    if any(character.isspace() or not character.isprintable() for character in source):
        raise FetchError("an address has no spaces or control characters in it; write a space as %20")
    hub = _hub_file(source) if scheme == HUB else None
    if hub is None:
        _refuse_unusable(source)
    address = Address(source=source, pattern=pattern or None, hub=hub)
    _refuse_pattern(address)
    return address


def origin(url: str) -> tuple[str, str, int | None]:
    """Whom a request to `url` reaches: scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def hub_url(endpoint: str, file: HubFile) -> str:
    """Where the hub at `endpoint` serves `file`."""
    revision = quote(file.revision, safe="")
    return f"{endpoint.rstrip('/')}/datasets/{file.repo}/resolve/{revision}/{quote(file.path)}"


def _hub_file(source: str) -> HubFile:
    found = _HUB_PATH.fullmatch(source.partition("://")[2])
    if found is None or "?" in source:
        raise FetchError(
            "an address on the hub reads hf://datasets/OWNER/NAME/PATH, or with a revision "
            "hf://datasets/OWNER/NAME@REVISION/PATH, in which a slash is written as %2F"
        )
    return HubFile(
        repo=found["repo"], revision=unquote(found["revision"] or "main"), path=unquote(found["path"]).lstrip("/")
    )


def _refuse_unusable(source: str) -> None:
    try:
        parts = urlsplit(source)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise FetchError("an address names a host and a file: https://example.org/data.jsonl")
    if "@" in parts.netloc:
        raise FetchError("an address holds no user name and no password; fetch the file by hand and give its path")


def _refuse_pattern(address: Address) -> None:
    """An archive is no data file, and nothing can be chosen from anything else."""
    is_archive = address.name.lower().endswith(ARCHIVES)
    if is_archive and address.pattern is None:
        raise FetchError(f"{address.name} is an archive: say which of its files, with #PATTERN behind the address")
    if address.pattern is not None and not is_archive:
        kinds = ", ".join(ARCHIVES)
        raise FetchError(f"#{address.pattern} chooses a file of an archive ({kinds}), and {address.name} is none")
