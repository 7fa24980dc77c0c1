"""What small fake servers have in common: all that was sent to them is kept, and they can misbehave in HTTP itself."""

import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

DRIP_EVERY_S = 0.2
LONGEST_S = 4.0
"""No misbehaviour lasts longer than this, whoever is still listening."""


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it came over the wire, headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class FakeServer(ThreadingHTTPServer):
    """A server with all that it was sent; `closing` ends what still drips."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type["FakeHandler"]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.received: list[Received] = []
        self.closing = threading.Event()
        self._connections: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Remember who is connected."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401
        """Forget them."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End all connections, as a server that is stopped does."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Report a fault of ours; a client that breaks off is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def base_url(self) -> str:
        """The address of the server, without a path."""
        return f"http://127.0.0.1:{self.server_port}"


Server = TypeVar("Server", bound=FakeServer)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """The server while it serves in a thread; closed afterwards."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            server.hang_up()
            thread.join()


def serve(server: FakeServer, models: Mapping[str, object]) -> None:
    """Serve in the foreground until Ctrl-C."""
    with server:
        sys.stderr.write(f"serving {server.base_url}; models: {', '.join(models)}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.closing.set()


class FakeHandler(BaseHTTPRequestHandler):
    """One connection, with the words that behaviours are made of.

    `body` is the JSON that was sent, or empty; `behaviour` the name of what this call meets, where a name chose it.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeServer
    body: dict[str, Any]
    behaviour: str

    def behave(self) -> None:
        """Answer what was asked."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Keep the request, then answer it."""
        self._meet({})

    def do_POST(self) -> None:
        """Keep the request, then answer it."""
        self._meet(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: what was received is kept, and the prompt is nobody else's business."""

    def say(self, status: int, body: object, **headers: str) -> None:
        """A whole answer, JSON unless it is text."""
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def begin(self, status: int = 200, kind: str = "application/x-ndjson") -> None:
        """The head of a streamed answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, content: bytes) -> None:
        """One piece of a streamed answer."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def end(self) -> None:
        """The end of a streamed answer."""
        self.wfile.write(b"0\r\n\r\n")

    def drip(self, piece: bytes) -> None:
        """The piece again and again with a pause after each, until somebody has enough."""
        for _ in range(round(LONGEST_S / DRIP_EVERY_S)):
            if self.server.closing.wait(DRIP_EVERY_S):
                return
            self.write(piece)

    def reset(self) -> None:
        """Break the connection off without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=self.connection.detach()).close()
        self.close_connection = True

    def fall_silent(self) -> None:
        """Say nothing more, for as long as anybody may listen."""
        self.server.closing.wait(LONGEST_S)
        self.close_connection = True

    def drip_headers(self) -> None:
        """Begin an answer whose head never ends."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(round(LONGEST_S / DRIP_EVERY_S)):
            if self.server.closing.wait(DRIP_EVERY_S):
                break
            self.wfile.write(b"x")
        self.close_connection = True

    def _meet(self, body: dict[str, Any]) -> None:
        self.body = body
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(path=self.path, headers=headers, body=body))
        try:
            self.behave()
        except OSError:
            self.close_connection = True  # the client had enough
