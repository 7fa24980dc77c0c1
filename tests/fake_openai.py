"""A small server that speaks the OpenAI streaming protocol over real HTTP, and misbehaves on request.

The name of the model says what happens; `GET /v1/models` lists the names. By hand: `python -m tests.fake_openai`.
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

DRIP_EVERY_S = 0.2
LONGEST_S = 4.0
"""No misbehaviour lasts longer than this, whoever is still listening."""

USAGE = {
    "prompt_tokens": 42,
    "completion_tokens": 3,
    "total_tokens": 45,
    "prompt_tokens_details": {"cached_tokens": 40},
}


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it came over the wire, headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class FakeOpenAI(ThreadingHTTPServer):
    """The server with all that it was sent; `closing` ends what still drips."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.received: list[Received] = []
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Report a fault of ours; a client that breaks off is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def base_url(self) -> str:
        """What a study file would name."""
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def fake_openai() -> Iterator[FakeOpenAI]:
    """The server on a free port, serving."""
    with FakeOpenAI() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeOpenAI
    body: dict[str, Any]

    def do_GET(self) -> None:
        self._note({})
        self.answer(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in BEHAVIOURS]})

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(self.body)
        try:
            BEHAVIOURS[self.body["model"]](self)
        except OSError:
            self.close_connection = True  # the client had enough

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: what was received is kept, and the prompt is nobody else's business."""

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

    def _note(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(path=self.path, headers=headers, body=body))


def event(data: object) -> bytes:
    """A server-sent event on the wire."""
    return f"data: {json.dumps(data)}\n\n".encode()


def chunk(*, finish: str | None = None, **delta: str) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake-1-0613",
        "system_fingerprint": "fp-7",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def error(message: str, **more: object) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | more}


Behaviour = Callable[[_Handler], None]


def _says(status: int, body: object, **headers: str) -> Behaviour:
    return lambda handler: handler.answer(status, body, **headers)


def _streams(*events: object) -> Behaviour:
    def behave(handler: _Handler) -> None:
        handler.begin()
        for data in events:
            handler.event(data)
        handler.end()

    return behave


def _drips(piece: bytes, head: bytes = b"") -> Behaviour:
    def behave(handler: _Handler) -> None:
        handler.begin()
        if head:
            handler.write(head)
        handler.drip(iter(lambda: piece, b""))

    return behave


def _echoes_what_it_was_sent(handler: _Handler) -> None:
    sent = f"{handler.headers['Authorization']} asked: {handler.body['messages'][0]['content']}"
    handler.answer(int(handler.body["model"].removeprefix("echo-")), error(f"bad request: {sent}"))


def _echoes_in_the_stream(handler: _Handler) -> None:
    handler.begin()
    handler.event(error(f"{handler.headers['Authorization']} asked: {handler.body['messages'][0]['content']}"))
    handler.end()


def _breaks_off(handler: _Handler) -> None:
    handler.begin()
    handler.event(chunk(content="A"))
    handler.reset()


def _streams_half_an_object(handler: _Handler) -> None:
    handler.begin()
    handler.write(b"data: {half\n\n")
    handler.end()


def _is_silent(handler: _Handler) -> None:
    handler.server.closing.wait(LONGEST_S)
    handler.close_connection = True


def _falls_silent(handler: _Handler) -> None:
    handler.begin()
    handler.server.closing.wait(0.7)
    handler.event(chunk(content="A"))
    _is_silent(handler)


def _drips_headers(handler: _Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(round(LONGEST_S / DRIP_EVERY_S)):
        if handler.server.closing.wait(DRIP_EVERY_S):
            break
        handler.wfile.write(b"x")
    handler.close_connection = True


BEHAVIOURS: Mapping[str, Behaviour] = {
    "good": _streams(
        chunk(role="assistant", content=""),
        chunk(content="The answer"),
        chunk(content=" is B"),
        chunk(finish="stop"),
        chunk() | {"choices": [], "usage": USAGE},
    ),
    "tells-no-usage": _streams(chunk(content="B"), chunk(finish="stop")),
    "thinks": _streams(
        chunk(reasoning_content="A? No,"),
        chunk(reasoning_content=" B."),
        chunk(content="B"),
        chunk(finish="stop"),
    ),
    "cut-off": _streams(chunk(content="The answer"), chunk(finish="length")),
    "says-nothing": _streams(chunk(finish="stop")),
    "401": _says(401, error("Incorrect API key provided.", code="invalid_api_key")),
    "403": _says(403, error("Country not supported.")),
    "404": _says(404, error("The model does not exist.", code="model_not_found")),
    "400": _says(400, error("Unknown parameter: 'seed'.")),
    "400-filtered": _says(400, error("The prompt triggered our content policy.", code="content_filter")),
    "422": _says(422, error("temperature: Input should be less than 2")),
    "too-long-openai": _says(
        400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded")
    ),
    "too-long-vllm": _says(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "too-long-llama.cpp": _says(
        400,
        {
            "error": {
                "code": 400,
                "message": "request (700 tokens) exceeds the available context size (512 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 700,
                "n_ctx": 512,
            }
        },
    ),
    "429": _says(429, error("Rate limit reached.")),
    "429-wait": _says(429, error("Rate limit reached."), Retry_After="7.5"),
    "429-date": _says(429, error("Rate limit reached."), Retry_After="Wed, 21 Oct 2037 07:28:00 GMT"),
    "429-for-ever": _says(429, error("Rate limit reached."), Retry_After="inf"),
    "500": _says(500, error("The server had an error.")),
    "503": _says(503, "<html><body><h1>503 Service Unavailable</h1></body></html>"),
    "503-loading": _says(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
    "html": _says(200, "<html><body>Please log in</body></html>"),
    "redirect": _says(307, "moved", Location="/v1/elsewhere"),
    "content-filter": _streams(chunk(content="The"), chunk(finish="content_filter")),
    "no-finish": _streams(chunk(content="The answer is"), chunk(content=" B")),
    "error-in-stream": _streams(chunk(content="The"), error("CUDA error: out of memory")),
    "other-json": _streams({"object": "something else"}),
    "no-json": _streams_half_an_object,
    "resets": _Handler.reset,
    "resets-in-the-middle": _breaks_off,
    "is-silent": _is_silent,
    "falls-silent": _falls_silent,
    "drips-chunks": _drips(event(chunk(content="A"))),
    "drips-bytes": _drips(b"A", head=b'data: {"id": "'),
    "drips-comments": _drips(b": keep-alive\n\n"),
    "drips-headers": _drips_headers,
    "echo-400": _echoes_what_it_was_sent,
    "echo-401": _echoes_what_it_was_sent,
    "echo-429": _echoes_what_it_was_sent,
    "echo-500": _echoes_what_it_was_sent,
    "echo-in-stream": _echoes_in_the_stream,
}


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
