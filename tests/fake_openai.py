"""A small server that speaks the OpenAI streaming protocol over real HTTP, and misbehaves on request.

The name of the model says what happens (`tests.fake_openai_behaviours`); several joined by `tests.fake_turns.THEN` are
taken in turn. Other models that are listed are as "says" is, and those that are not are not there. `GET /v1/models`
lists the names. By hand:
`python -m tests.fake_openai`.
"""

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fake_openai_behaviours import BEHAVIOURS, DRIP_EVERY_S, LONGEST_S, event
from tests.fake_openai_refusals import error
from tests.fake_turns import Turns


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it came over the wire, headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class FakeOpenAI(ThreadingHTTPServer):
    """The server with all that it was sent; `closing` ends what still drips.

    `latency_s` passes before every answer begins. `answer` makes the text of model "says" out of the prompt.
    `told` stands in the list of models beside every id; `props` is what llama.cpp's `/props` answers (a status alone,
    or a body), None where there is no such page. `accepts` is the one key that is taken, None where none is
    asked for; `names` are listed.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.received: list[Received] = []
        self.closing = threading.Event()
        self.latency_s = 0.0
        self.answer: Callable[[str], str] = lambda _prompt: "A"
        self.told: dict[str, Any] = {}
        self.props: object = None
        self.accepts: str | None = None
        self.names = list(BEHAVIOURS)
        self.turns = Turns()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Report a fault of ours; a client that breaks off is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def base_url(self) -> str:
        """What a study file would name."""
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def fake_openai(port: int = 0) -> Iterator[FakeOpenAI]:
    """The server on a free port or on this one, serving."""
    with FakeOpenAI(port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """One connection of a client: what behaviours answer with."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeOpenAI
    body: dict[str, Any]
    behaviour: str

    def do_GET(self) -> None:
        self._receive({})
        page = self.path.rpartition("/")[2]
        if self.refuses_the_key():
            return
        if page == "models":
            listed = [{"id": name, "object": "model"} | self.server.told for name in self.server.names]
            self.answer(200, {"object": "list", "data": listed})
        elif page == "props" and isinstance(self.server.props, int):
            self.answer(self.server.props, error("Not now."))
        elif page == "props" and self.server.props is not None:
            self.answer(200, self.server.props)
        else:
            self.answer(404, error("Not found."))

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._receive(self.body)
        if self.refuses_the_key():
            return
        self.behaviour = self.server.turns.take(self.body["model"], self.prompt)
        try:
            BEHAVIOURS.get(self.behaviour, BEHAVIOURS["says" if self.behaviour in self.server.names else "404"])(self)
        except OSError:
            self.close_connection = True  # the client had enough

    def refuses_the_key(self) -> bool:
        """Whether the key is not the accepted one; then it was answered, with the key in it."""
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        refuses = self.server.accepts not in (None, key)
        if refuses:
            self.answer(401, error(f"Incorrect API key provided: {key}.", code="invalid_api_key"))
        return refuses

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: what was received is kept, and the prompt is nobody else's business."""

    @property
    def prompt(self) -> str:
        """What the client asks."""
        content: str = self.body["messages"][0]["content"]
        return content

    def answer(self, status: int, body: object, **headers: str) -> None:
        """A whole answer, JSON unless it is text."""
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def begin(self) -> None:
        """The head of a streamed answer."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, content: bytes) -> None:
        """One piece of a streamed answer."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def event(self, data: object) -> None:
        """One server-sent event."""
        self.write(event(data))

    def end(self) -> None:
        """The end of a streamed answer."""
        self.write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def stream(self, *events: object) -> None:
        """A streamed answer from its head to its end."""
        self.begin()
        for data in events:
            self.event(data)
        self.end()

    def drip(self, pieces: Iterator[bytes]) -> None:
        """The pieces with a pause after each, until somebody has enough."""
        for number, piece in enumerate(pieces):
            if self.server.closing.wait(DRIP_EVERY_S) or number * DRIP_EVERY_S > LONGEST_S:
                return
            self.write(piece)

    def reset(self) -> None:
        """Break the connection off without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=self.connection.detach()).close()
        self.close_connection = True

    def _receive(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(path=self.path, headers=headers, body=body))
        self.server.closing.wait(self.server.latency_s)


def main() -> None:
    """Serve in the foreground until Ctrl-C."""
    with FakeOpenAI(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8001) as server:
        sys.stderr.write(f"serving {server.base_url}; models: {', '.join(BEHAVIOURS)}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.closing.set()


if __name__ == "__main__":
    main()
