"""A server of files over HTTP: it continues them as servers do, and can misbehave in every way that a download meets.

Each answer takes the next fault of the list, if there is one left.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from producer.fetching.addresses import Address
from producer.fetching.at_hand import Fetched
from tests.fake_http import FakeHandler, FakeServer, serving

MODIFIED = "Tue, 04 Aug 2026 10:00:00 GMT"
LATER = "Tue, 04 Aug 2026 11:00:00 GMT"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with one answer. `cut`: the connection ends after so many bytes of the body.

    `silent`: before it ends so, nothing comes for as long as anybody may listen.
    """

    cut: int | None = None
    silent: bool = False
    status: int | None = None
    promises: int | None = None  # the Content-Length, whatever the body is
    whole: bool = False  # pays no heed to Range
    deaf: bool = False  # pays no heed to If-Range
    start: int | None = None  # the body of a 206 begins here, whatever was asked for
    to: str | None = None  # redirects
    headers: dict[str, str] = field(default_factory=dict)


class FileServer(FakeServer):
    """Serves `content` at every path. `etag` and `modified` are what it says of it; None says nothing."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port, _Handler)
        self.content = b""
        self.etag: str | None = '"one"'
        self.modified: str | None = MODIFIED
        self.faults: list[Fault] = []

    @property
    def ranges(self) -> list[str | None]:
        """Which range each request asked for."""
        return [request.headers.get("range") for request in self.received]


class _Handler(FakeHandler):
    server: FileServer

    def behave(self) -> None:
        """Answer with the file, or with what the next fault makes of it."""
        server = self.server
        fault = server.faults.pop(0) if server.faults else Fault()
        if fault.status is not None or fault.to is not None:
            self._head(fault.status or 302, 0, fault, {"Location": fault.to} if fault.to is not None else {})
            return
        first = self._first(fault)
        if first is not None and first >= len(server.content):
            self._head(416, 0, fault, {"Content-Range": f"bytes */{len(server.content)}"})
            return
        body = server.content[first or 0 :]
        total, last = len(server.content), len(server.content) - 1
        told = {} if first is None else {"Content-Range": f"bytes {first}-{last}/{total}"}
        self._head(200 if first is None else 206, len(body), fault, told)
        self.wfile.write(body[: fault.cut])
        if fault.silent:
            self.fall_silent()
        self.close_connection = fault.cut is not None or fault.promises is not None

    def _first(self, fault: Fault) -> int | None:
        """The byte that the body begins at; None for the whole file."""
        asked, bound = self.headers.get("Range"), self.headers.get("If-Range")
        if asked is None or fault.whole:
            return None
        if bound not in (None, self.server.etag, self.server.modified) and not fault.deaf:
            return None
        return fault.start if fault.start is not None else int(asked.removeprefix("bytes=").rstrip("-"))

    def _head(self, status: int, length: int, fault: Fault, told: dict[str, str]) -> None:
        server = self.server
        known = {"ETag": server.etag, "Last-Modified": server.modified, "Date": LATER}
        length = length if fault.promises is None else fault.promises
        headers = {"Content-Length": str(length), "Content-Type": "application/octet-stream"} | known | told
        self.send_response_only(status)
        for name, value in (headers | fault.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()


class Network(httpx.HTTPTransport):
    """A transport that many clients use one after the other: to make one takes longer than a whole trial."""

    def __init__(self) -> None:
        super().__init__(verify=False, limits=httpx.Limits(max_keepalive_connections=0))

    def __exit__(self, *_: object) -> None:
        """Nothing is kept open."""


NETWORK = Network()


@contextmanager
def file_server() -> Iterator[FileServer]:
    """A server of files while it serves."""
    with serving(FileServer()) as server:
        yield server


class Watching:
    """A watch that remembers all that it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.seen: list[tuple[int, int | None]] = []
        self.reasons: list[str] = []
        self.done: list[Fetched] = []

    def began(self, address: Address) -> None:
        """A file."""
        self.begun.append(address.shown)

    def came(self, done: int, total: int | None) -> None:
        """Some bytes."""
        self.seen.append((done, total))

    def waits(self, reason: str) -> None:
        """A reason."""
        self.reasons.append(reason)

    def ended(self, fetched: Fetched) -> None:
        """A file that is there."""
        self.done.append(fetched)


def sha256(content: bytes) -> str:
    """The hash of some bytes."""
    return hashlib.sha256(content).hexdigest()
