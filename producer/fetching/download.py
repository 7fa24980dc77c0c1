"""One file over HTTP: asked for, continued where it broke off, and whole at the end.

A fault that may pass is waited out, longer each time; it is given up after some tries in a row that brought nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from producer.fetching.addresses import Address
from producer.fetching.errors import FetchError
from producer.fetching.hub import Hub
from producer.fetching.resume import Step, Version, continued, decide, is_whole, next_hop, passes, read_head, refusal
from producer.fetching.unfinished import Unfinished

TIMEOUT = httpx.Timeout(60, connect=15)
_MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_PACKED = ("gz", "tgz", "bz2", "zip")
_AGENT = "bothways"


class _PassingError(Exception):
    """What may pass by itself."""


class Telling(Protocol):
    """Told how a download goes."""

    def came(self, done: int, total: int | None) -> None:
        """So many bytes are there, of so many if their number is known."""

    def waits(self, reason: str) -> None:
        """Nothing comes for a while."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How many tries in a row may bring nothing, and how long the first and the longest wait between them are."""

    tries: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 30.0


@dataclass(kw_only=True)
class Download:
    """The download of `address`."""

    address: Address
    unfinished: Unfinished
    client: httpx.Client
    hub: Hub
    telling: Telling
    patience: Patience
    _most: int = 0
    _fruitless: int = 0

    def run(self) -> Version:
        """Fetch what is not there yet; returns which version it is. FetchError when it cannot be had."""
        self._most = self.unfinished.held
        retrying = Retrying(
            retry=retry_if_exception_type(_PassingError),
            after=self._count,
            stop=lambda _: self._fruitless >= self.patience.tries,
            wait=lambda _: min(self.patience.first_wait_s * 2.0**self._fruitless / 2, self.patience.longest_wait_s),
            before_sleep=lambda state: self.telling.waits(f"{_reason(state)}; trying again"),
            reraise=True,
        )
        try:
            return retrying(self._try)
        except _PassingError as error:
            raise FetchError(f"{self.address.shown} could not be fetched: {error}; {self._left_off()}") from None

    def _try(self) -> Version:
        held, version = self.unfinished.held, self.unfinished.version
        if version is not None and is_whole(held, version):
            return version
        with self._answer(held, version) as response:
            head = read_head(response.status_code, response.headers)
            self._refuse(response)
            step = decide(held, version, head)
            if version is not None and step is Step.CONTINUE:
                return self._take(response, continued(version, head))
            if step is Step.BEGIN:
                self.unfinished.begin(head.version)
                return self._take(response, head.version)
            self.unfinished.discard()
            raise _PassingError("what was there does not fit what the server has now")

    def _take(self, response: httpx.Response, version: Version) -> Version:
        """Write the body down as it comes; what is there already counts."""
        held, total = self.unfinished.held, version.total
        with self.unfinished.appending() as file:
            self.telling.came(held, total)
            for piece in _pieces(response):
                held += len(piece)
                if total is not None and held > total:
                    break
                file.write(piece)
                self.telling.came(held, total)
        if total is not None and held > total:
            self.unfinished.discard()
            raise _PassingError(f"more than the {total:,} bytes that were promised came")
        if total is not None and held < total:
            raise _PassingError("the connection ended too early")
        return version

    @contextmanager
    def _answer(self, held: int, version: Version | None) -> Iterator[httpx.Response]:
        """The answer to a request for what is not there yet, wherever the server redirects to."""
        # Packed on the way, a file would be counted in other bytes than it has.
        headers = {"Accept-Encoding": "identity", "User-Agent": _AGENT}
        if held and version is not None and version.if_range is not None:
            headers |= {"Range": f"bytes={held}-", "If-Range": version.if_range}
        url = self.hub.url(self.address)
        for _ in range(_MOST_REDIRECTS + 1):
            with _passing_faults():
                own = headers | self.hub.credentials(self.address, url)
                response = self.client.send(self.client.build_request("GET", url, headers=own), stream=True)
            try:
                if response.status_code not in _REDIRECTS:
                    yield response
                    return
                url = self._hop(url, response.headers.get("location", ""))
            finally:
                response.close()
        raise FetchError(f"{self.address.shown} cannot be fetched: its server redirects without an end")

    def _hop(self, url: str, location: str) -> str:
        try:
            return next_hop(url, location)
        except FetchError as error:
            raise FetchError(f"{self.address.shown} cannot be fetched: {error}") from None

    def _refuse(self, response: httpx.Response) -> None:
        """Answers that are not the file; for those that further tries would not change, in a FetchError."""
        status, shown = response.status_code, self.address.shown
        if passes(status):
            raise _PassingError(f"the server answers with status {status}")
        if status not in (200, 206, 416):
            raise FetchError(f"{shown} {refusal(status, hub=self.address.hub is not None)}")
        if response.headers.get("content-type", "").lower().startswith("text/html") and status != 416:
            raise FetchError(
                f"{shown} is a web page and not a file; take the address behind its download button (on GitHub raw, "
                "not blob)"
            )
        encoding = response.headers.get("content-encoding", "identity").lower()
        if encoding not in ("", "identity") and not self.address.name.lower().endswith(_PACKED):
            raise FetchError(f"{shown} cannot be fetched: its server packs it as {encoding[:20]!r}, asked not to")

    def _count(self, _: RetryCallState) -> None:
        """Count the tries in a row that brought nothing."""
        held = self.unfinished.held
        self._fruitless = 0 if held > self._most else self._fruitless + 1
        self._most = max(self._most, held)

    def _left_off(self) -> str:
        held, version = self.unfinished.held, self.unfinished.version
        if not held:
            return "the same command tries again"
        if version is None or version.if_range is None:
            return f"{held:,} bytes are there, but its server cannot continue a file: the same command begins anew"
        of = "" if version.total is None else f" of {version.total:,}"
        return f"{held:,}{of} bytes are there, and the same command goes on from there"


def _pieces(response: httpx.Response) -> Iterator[bytes]:
    with _passing_faults():
        yield from response.iter_raw()


@contextmanager
def _passing_faults() -> Iterator[None]:
    """What httpx finds wrong with a network or a server, which may be better the next time."""
    try:
        yield
    except httpx.InvalidURL:
        raise FetchError("the address, or one that its server redirects to, is none that can be asked") from None
    except httpx.TimeoutException:
        raise _PassingError("nothing came for a minute, or nobody answered") from None
    except httpx.HTTPError as error:
        detail = "".join(character if character.isprintable() else " " for character in str(error))[:200]
        raise _PassingError(f"the connection failed ({detail or type(error).__name__})") from None


def _reason(state: RetryCallState) -> str:
    return str(state.outcome.exception()) if state.outcome is not None else ""
