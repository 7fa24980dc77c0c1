"""The lines of Ollama's protocol, and every way in which the fake Ollama server answers badly."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fake_http import FakeHandler

Behaviour = Callable[[FakeHandler], None]

FAILS_TO_LOAD = frozenset(("out-of-memory", "no-memory", "busy", "no-thinking", "401", "403", "html", "silent"))
"""The tags that misbehave even when they are only to be loaded."""


def line(data: object) -> bytes:
    """A line on the wire, with as little escaped as Ollama escapes."""
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def part(content: str = "", *, thinking: str | None = None, **more: object) -> dict[str, Any]:
    """A line of an answer; `more` stands beside the message."""
    thought = {} if thinking is None else {"thinking": thinking}
    message = {"role": "assistant", "content": content} | thought
    return {"model": "fake", "created_at": "2026-11-02T10:00:00.1Z", "message": message, "done": False} | more


def says(status: int, body: object, **headers: str) -> Behaviour:
    """A whole answer, whatever was asked."""
    return lambda handler: handler.say(status, body, **headers)


def _fails(status: int, message: str) -> Behaviour:
    return says(status, {"error": message})


def _streams(*lines: object) -> Behaviour:
    def behave(handler: FakeHandler) -> None:
        handler.begin()
        for data in lines:
            handler.write(line(data))
        handler.end()

    return behave


def _drips(piece: bytes, *, head: bytes = b"", status: int = 200) -> Behaviour:
    def behave(handler: FakeHandler) -> None:
        handler.begin(status)
        if head:
            handler.write(head)
        handler.drip(piece)

    return behave


def _sent(handler: FakeHandler) -> str:
    """What an unkind server would put into its error."""
    return f"{handler.headers.get('Authorization')} asked: {handler.body['messages'][0]['content']}"


def _echoes(handler: FakeHandler) -> None:
    handler.say(int(handler.behaviour.removeprefix("echo-")), {"error": f"bad request: {_sent(handler)}"})


def _echoes_in_the_stream(handler: FakeHandler) -> None:
    handler.begin()
    handler.write(line(part("The")))
    handler.write(line({"error": f"bad request: {_sent(handler)}"}))
    handler.end()


def _breaks_off(handler: FakeHandler) -> None:
    handler.begin()
    handler.write(line(part("A")))
    handler.reset()


def _streams_half_an_object(handler: FakeHandler) -> None:
    handler.begin()
    handler.write(b"{half\n")
    handler.end()


def _falls_silent(handler: FakeHandler) -> None:
    handler.begin()
    handler.server.closing.wait(0.7)
    handler.write(line(part("A")))
    handler.fall_silent()


FAULTS: Mapping[str, Behaviour] = {
    "runner-crash": _fails(
        500, "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error"
    ),
    "server-crash": _fails(500, "llama-server process no longer running: -1 signal: segmentation fault"),
    "cuda-error": _fails(500, "CUDA error: an illegal memory access was encountered"),
    "assert": _fails(500, "GGML_ASSERT(n_tokens <= n_batch) failed"),
    "out-of-memory": _fails(500, "CUDA error: out of memory"),
    "no-cuda-memory": _fails(500, "cudaMalloc failed: device 0 has no room for 4096.00 MiB"),
    "no-buffer": _fails(500, "llama-server process has terminated: failed to allocate CUDA0 buffer"),
    "not-enough-memory": _fails(500, "not enough memory for the model's context"),
    "no-memory": _fails(500, "model requires more system memory (23.4 GiB) than is available (15.1 GiB)"),
    "other-500": _fails(500, "unexpected EOF"),
    "busy": _fails(503, "server busy, please try again.  maximum pending requests exceeded"),
    "499": _fails(499, "request canceled"),
    "408": says(408, "Request Time-out"),
    "429": _fails(429, "too many requests"),
    "pull-first": _fails(404, 'model "pull-first" not found, try pulling it first'),
    "no-page": says(404, "404 page not found"),
    "too-long": _fails(400, "the prompt is longer than the context length currently available to the model"),
    "too-long-object": says(
        400,
        {
            "error": {
                "code": 400,
                "message": "request (700 tokens) exceeds the available context size (512 tokens), try increasing it",
                "type": "exceed_context_size_error",
            }
        },
    ),
    "too-long-type": _fails(400, "exceed_context_size_error: 700 tokens"),
    "no-thinking": _fails(400, '"no-thinking" does not support thinking'),
    "no-chat": _fails(400, '"no-chat" does not support chat'),
    "top-logprobs": _fails(400, "top_logprobs must be between 0 and 20"),
    "other-400": _fails(400, "invalid options: seed"),
    "413": says(413, "<html><body><h1>413 Request Entity Too Large</h1></body></html>"),
    "401": _fails(401, "unauthorized"),
    "403": _fails(403, "remote inference is unavailable"),
    "redirect": says(307, "moved", Location="/elsewhere"),
    "html": says(200, "<html><body>Please log in</body></html>"),
    "html-502": says(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "no-done": _streams(part("The answer is"), part(" B")),
    "says-done": _streams(part("A", done=True, done_reason="stop")),
    "no-line": _streams(),
    "error-in-stream": _streams(part("The"), {"error": "an error was encountered while running the model"}),
    "crash-in-stream": _streams(part("The"), {"error": "CUDA error: unspecified launch failure"}),
    "other-json": _streams({"object": "something else"}),
    "a-list": _streams([1, 2]),
    "no-json": _streams_half_an_object,
    "reset": FakeHandler.reset,
    "reset-in-the-middle": _breaks_off,
    "silent": FakeHandler.fall_silent,
    "falls-silent": _falls_silent,
    "drips-lines": _drips(line(part("A"))),
    "drips-bytes": _drips(b"A", head=b'{"model": "'),
    "drips-blank-lines": _drips(b"\n"),
    "drips-headers": FakeHandler.drip_headers,
    "drips-an-error": _drips(b"x", head=b'{"error": "', status=500),
    "echo-400": _echoes,
    "echo-401": _echoes,
    "echo-404": _echoes,
    "echo-429": _echoes,
    "echo-500": _echoes,
    "echo-in-stream": _echoes_in_the_stream,
}
