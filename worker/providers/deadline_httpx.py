"""The transport of httpx over connections that know the deadline of `worker.providers.deadline`."""

from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from worker.providers.deadline import TimedStream, time_left


class _Stream(TimedStream, httpcore.NetworkStream):
    late = httpcore.ReadTimeout


class _Backend(httpcore.SyncBackend):
    """Opens connections that know the deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = time_left(timeout, _Stream.late)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options))


class DeadlineTransport(httpx.HTTPTransport):
    """The library's transport over connections that know the deadline; nothing of the environment is used."""

    def __init__(self, *, connections: int) -> None:
        context = httpx.create_ssl_context(trust_env=False)
        super().__init__(verify=context)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            network_backend=_Backend(),
        )
