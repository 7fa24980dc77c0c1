"""What an answer's head says, and what follows from it for a file of which some bytes are there. Pure.

Heads come from servers, so nothing in them is believed that does not look like what it should be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from urllib.parse import urljoin

from producer.fetching.addresses import origin
from producer.fetching.errors import FetchError

_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")
_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,200}"')
_DATE = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT")
_PASSES = (408, 425, 429)
_FORBIDDEN = (401, 403)


@dataclass(frozen=True, kw_only=True)
class Version:
    """What tells one state of a file at an address from another, as far as its server says.

    `etag` and `modified` are there only where they are strong enough to continue a file by them.
    """

    total: int | None = None
    etag: str | None = None
    modified: str | None = None

    @property
    def if_range(self) -> str | None:
        """What a request for the rest is bound to, None where there is nothing that could bind it."""
        return self.etag or self.modified


@dataclass(frozen=True, kw_only=True)
class Head:
    """The head of an answer: its status, the byte that its body begins at, and of which version it is."""

    status: int
    start: int | None
    version: Version


class Step(Enum):
    """What to do with an answer's body."""

    CONTINUE = auto()  # it follows what is there
    BEGIN = auto()  # it is the file from its beginning
    ASK_ANEW = auto()  # of no use; and neither is what is there


def read_head(status: int, headers: Mapping[str, str]) -> Head:
    """The head, less what cannot be believed; `headers` are found in any spelling or in lower case."""
    found = _RANGE.fullmatch(headers.get("content-range", "").strip())
    written = (found[2] if found else "") if status == 206 else headers.get("content-length", "").strip()
    etag, modified = headers.get("etag", "").strip(), headers.get("last-modified", "").strip()
    return Head(
        status=status,
        start=int(found[1]) if found and status == 206 else None,
        version=Version(
            total=int(written) if _NUMBER.fullmatch(written) else None,
            etag=etag if _STRONG_ETAG.fullmatch(etag) else None,
            modified=modified if _is_strong(modified, headers.get("date", "")) else None,
        ),
    )


def decide(held: int, kept: Version | None, head: Head) -> Step:
    """What the answer is good for, where `held` bytes of the version `kept` are there and the rest was asked for."""
    if head.status == 200:
        return Step.BEGIN
    if head.status != 206 or kept is None or head.start != held or held == 0:
        return Step.ASK_ANEW
    return Step.CONTINUE if _same(kept, head.version) else Step.ASK_ANEW


def continued(kept: Version, head: Head) -> Version:
    """The version that is being continued; how much it is may be told only now."""
    return kept if kept.total is not None else replace(kept, total=head.version.total)


def is_whole(held: int, kept: Version | None) -> bool:
    """Whether all bytes are there already: the program ended between the last byte and its check."""
    return kept is not None and held == kept.total and held > 0


def passes(status: int) -> bool:
    """Whether a fault may pass by itself."""
    return status >= 500 or status in _PASSES


def next_hop(url: str, location: str) -> str:
    """Where a redirection leads; FetchError for one that must not be followed."""
    try:
        target = urljoin(url, location)
        scheme, host, _ = origin(target)
    except ValueError:
        scheme = target = host = ""
    if scheme not in ("http", "https") or not host:
        raise FetchError("its server redirects to what is no address")
    if scheme == "http" and origin(url)[0] == "https":
        raise FetchError("its server redirects from https to http, which anybody on the way could change")
    return target


def refusal(status: int, *, hub: bool) -> str:
    """What a final status means, and what to do."""
    if status in _FORBIDDEN and hub:
        return f"is refused with status {status}; set HF_TOKEN to a token that may read it, if the address is right"
    return f"is refused with status {status}; mend the address, or give the file with --data NAME=PATH"


def _same(kept: Version, other: Version) -> bool:
    """Whether nothing speaks against the two being one version; servers may leave out what the other one said."""
    pairs = ((kept.total, other.total), (kept.etag, other.etag), (kept.modified, other.modified))
    return all(None in pair or pair[0] == pair[1] for pair in pairs)


def _is_strong(modified: str, date: str) -> bool:
    """Whether the file had been as it is for more than a second: within one it may change twice under one date."""
    if not (_DATE.fullmatch(modified) and _DATE.fullmatch(date.strip())):
        return False
    try:
        return parsedate_to_datetime(date) - parsedate_to_datetime(modified) > timedelta(seconds=1)
    except ValueError:
        return False
