"""A deadline for whole calls: the HTTP library's time-outs hold for each read, so a server that drips never ends them.

Inside `deadline(seconds)` every connect, read and write of this thread gets at most the time that is left. The
transport here is httpx2's; `worker.providers.deadline_httpx` has that of httpx.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, Self

import httpcore2
import httpx2

_of_this_thread = threading.local()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let every transfer in this block end by itself, with a time-out error, when `seconds` are over."""
    _of_this_thread.ends = time.monotonic() + seconds
    try:
        yield
    finally:
        _of_this_thread.ends = None


def time_left(timeout: float | None, late: type[Exception]) -> float | None:
    """The shorter of `timeout` and the time left, in seconds; raises `late` at once when none is left."""
    ends = getattr(_of_this_thread, "ends", None)
    if ends is None:
        return timeout
    left = ends - time.monotonic()
    if left <= 0:
        raise late("the time for the whole call is over")
    return float(left if timeout is None else min(timeout, left))


class _Connection(Protocol):
    """What both HTTP libraries call a network stream."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes: ...

    def write(self, buffer: bytes, timeout: float | None = None) -> None: ...

    def close(self) -> None: ...

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Connection": ...

    def get_extra_info(self, info: str) -> Any: ...  # noqa: ANN401 - the libraries' own interface


class TimedStream:
    """A connection whose every operation knows the deadline; `late` is the read time-out of its library."""

    late: ClassVar[type[Exception]]

    def __init__(self, inner: _Connection) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """As the library has it, within the time left."""
        return self._inner.read(max_bytes, time_left(timeout, self.late))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """As the library has it, within the time left."""
        self._inner.write(buffer, time_left(timeout, self.late))

    def close(self) -> None:
        """As the library has it."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Self:
        """As the library has it, within the time left."""
        return type(self)(self._inner.start_tls(ssl_context, server_hostname, time_left(timeout, self.late)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the libraries' own interface
        """As the library has it."""
        return self._inner.get_extra_info(info)


class _Stream(TimedStream, httpcore2.NetworkStream):
    late = httpcore2.ReadTimeout


class _Backend(httpcore2.SyncBackend):
    """Opens connections that know the deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = time_left(timeout, _Stream.late)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options))


class DeadlineTransport(httpx2.HTTPTransport):
    """The library's transport over connections that know the deadline; proxies of the environment are not used."""

    def __init__(self, *, connections: int) -> None:
        super().__init__()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            network_backend=_Backend(),
        )
