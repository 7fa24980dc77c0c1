"""What the fake OpenAI-compatible server does, by the name of the model; refusals have a page of their own."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tests.fake_openai_refusals import REFUSALS, error

if TYPE_CHECKING:
    from tests.fake_openai import Handler

DRIP_EVERY_S = 0.2
LONGEST_S = 4.0
"""No misbehaviour lasts longer than this, whoever is still listening."""

USAGE = {
    "prompt_tokens": 42,
    "completion_tokens": 3,
    "total_tokens": 45,
    "prompt_tokens_details": {"cached_tokens": 40},
}

Behaviour = Callable[["Handler"], None]


def event(data: object) -> bytes:
    """A server-sent event on the wire."""
    return f"data: {json.dumps(data)}\n\n".encode()


def chunk(*, finish: str | None = None, logprobs: object = None, **delta: object) -> dict[str, Any]:
    """A chunk of a chat completion; `logprobs` are those of its tokens."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake-1-0613",
        "system_fingerprint": "fp-7",
        "choices": [
            {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs and {"content": logprobs}}
        ],
    }


def token(text: str, logprob: object, candidates: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """A token as it was chosen, beside the likeliest candidates."""
    return {"token": text, "logprob": logprob, "top_logprobs": [{"token": t, "logprob": p} for t, p in candidates]}


def _streams(*events: object) -> Behaviour:
    return lambda handler: handler.stream(*events)


def _says(handler: "Handler") -> None:
    text = handler.server.answer(handler.prompt)
    handler.stream(chunk(content=text), chunk(finish="stop"), chunk() | {"choices": [], "usage": USAGE})


def _knows_the_newer_name(handler: "Handler") -> None:
    if "max_tokens" in handler.body:
        said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
        handler.answer(400, error(f"{said} instead.", param="max_tokens", code="unsupported_parameter"))
    else:
        handler.stream(chunk(content="B"), chunk(finish="stop"))


def _refuses(status: int, body: object, headers: Mapping[str, str]) -> Behaviour:
    return lambda handler: handler.answer(status, body, **headers)


def _drips(piece: bytes, head: bytes = b"") -> Behaviour:
    def behave(handler: "Handler") -> None:
        handler.begin()
        if head:
            handler.write(head)
        handler.drip(iter(lambda: piece, b""))

    return behave


def _all_it_was_sent(handler: "Handler") -> dict[str, Any]:
    return error(f"bad request: {handler.prompt} {' '.join(handler.headers.values())}")


def _echoes_what_it_was_sent(handler: "Handler") -> None:
    handler.answer(int(handler.behaviour.removeprefix("echo-")), _all_it_was_sent(handler))


def _echoes_in_the_stream(handler: "Handler") -> None:
    handler.stream(_all_it_was_sent(handler))


def _breaks_off(handler: "Handler") -> None:
    handler.begin()
    handler.event(chunk(content="A"))
    handler.reset()


def _streams_half_an_object(handler: "Handler") -> None:
    handler.begin()
    handler.write(b"data: {half\n\n")
    handler.end()


def _is_silent(handler: "Handler") -> None:
    handler.server.closing.wait(LONGEST_S)
    handler.close_connection = True


def _falls_silent(handler: "Handler") -> None:
    handler.begin()
    handler.server.closing.wait(0.7)
    handler.event(chunk(content="A"))
    _is_silent(handler)


def _drips_headers(handler: "Handler") -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(round(LONGEST_S / DRIP_EVERY_S)):
        if handler.server.closing.wait(DRIP_EVERY_S):
            break
        handler.wfile.write(b"x")
    handler.close_connection = True


_B = token("B", -0.25, [("B", -0.25), ("A", -1.5)])
_ENDS = token("", -0.1, [("", -0.1), ("B", -3.0)])

BEHAVIOURS: Mapping[str, Behaviour] = {
    "good": _streams(
        chunk(role="assistant", content=""),
        chunk(content="The answer"),
        chunk(content=" is B"),
        chunk(finish="stop"),
        chunk() | {"choices": [], "usage": USAGE},
    ),
    "says": _says,
    "tells-no-usage": _streams(chunk(content="B"), chunk(finish="stop")),
    "thinks": _streams(
        chunk(reasoning_content="A? No,"),
        chunk(reasoning_content=" B."),
        chunk(content="B"),
        chunk(finish="stop"),
    ),
    "thinks-newly": _streams(
        chunk(reasoning="A? No,", logprobs=[token("A", -0.5, [("A", -0.5)])]),
        chunk(reasoning=" B.", reasoning_content=None),
        chunk(content="", logprobs=[_ENDS]),
        chunk(content="B", logprobs=[_B]),
        chunk(finish="stop"),
    ),
    "thinks-and-says-at-once": _streams(
        chunk(reasoning="B.", content="B", logprobs=[token("B", -0.5, [("A", -0.5)]), _ENDS, _B]),
        chunk(content="!", logprobs=[token("!", -0.5, [("!", -0.5)])]),
        chunk(finish="stop"),
    ),
    "logprobs": _streams(
        chunk(role="assistant", content=""),
        chunk(content="B", logprobs=[_B]),
        chunk(content=".", logprobs=[token(".", -0.5, [(".", -0.5)])]),
        chunk(finish="stop"),
    ),
    "logprobs-without-the-chosen": _streams(
        chunk(content=" C", logprobs=[token(" C", -7.0, [("A", -0.5), ("B", -1)])]), chunk(finish="stop")
    ),
    "logprobs-of-nothing": _streams(
        chunk(
            content="B",
            logprobs=[
                token(
                    "B",
                    None,
                    [
                        ("A", float("-inf")),
                        ("B", float("nan")),
                        ("C", -9999.0),
                        ("D", -3.4028234663852886e38),
                        ("E", "low"),
                        ("F", float("inf")),
                        ("\n", -2.5),
                    ],
                )
            ],
        ),
        chunk(finish="stop"),
    ),
    "logprobs-of-the-end": _streams(chunk(logprobs=[_ENDS]), chunk(finish="stop")),
    "logprobs-of-another-kind": _streams(chunk(content="B", logprobs="none"), chunk(finish="stop")),
    "knows-the-newer-name": _knows_the_newer_name,
    "cut-off": _streams(chunk(content="The answer"), chunk(finish="length")),
    "says-nothing": _streams(chunk(finish="stop")),
    "content-filter": _streams(chunk(content="The"), chunk(finish="content_filter")),
    "no-finish": _streams(chunk(content="The answer is"), chunk(content=" B")),
    "error-in-stream": _streams(chunk(content="The"), error("CUDA error: out of memory")),
    "429-in-stream": _streams(chunk(content="The"), error("Rate limit exceeded, retry in 2s", code=429)),
    "other-json": _streams({"object": "something else"}),
    "no-json": _streams_half_an_object,
    "resets": lambda handler: handler.reset(),
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
} | {name: _refuses(*refusal) for name, refusal in REFUSALS.items()}
