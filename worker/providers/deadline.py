"""A deadline for whole calls: the HTTP library's time-outs hold for each read, so a server that drips never ends them.

Inside `deadline(seconds)` every connect, read and write of this thread gets at most the time that is left.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

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


def _left(timeout: float | None) -> float | None:
    """The shorter of `timeout` and the time left; a read time-out at once when none is left."""
    ends = getattr(_of_this_thread, "ends", None)
    if ends is None:
        return timeout
    left = ends - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the time for the whole call is over")
    return float(left if timeout is None else min(timeout, left))


class _Stream(httpcore2.NetworkStream):
    """A connection whose every operation knows the deadline."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the library's own interface
        return self._inner.get_extra_info(info)


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
        return _Stream(super().connect_tcp(host, port, _left(timeout), local_address, socket_options))


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
