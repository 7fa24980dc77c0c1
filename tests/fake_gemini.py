"""A small server that speaks the Gemini API over real HTTP, misbehaves on request and keeps real quotas.

The name of the model says what happens: one of `BEHAVIOURS`, alone or after any prefix ("gemini-2.5-flash-429-day"),
or several joined by `tests.fake_turns.THEN`, taken in turn; every other name answers "A". `GET /v1/models` lists names
in pages. The model "metered" answers as long as the `Quota` allows, counted for each key on its own. By hand:
`python -m tests.fake_gemini [port]`.
"""

import json
import re
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fake_turns import Turns
from tests.gemini_quota import (
    HELP,
    PER_DAY,
    PER_MINUTE,
    QUOTA_SPENT,
    TOKENS_PER_MINUTE,
    Body,
    Meter,
    Quota,
    error,
    over_quota,
    tokens_of,
)

DRIP_EVERY_S = 0.2
LONGEST_S = 5.0
"""No misbehaviour lasts longer than this, whoever is still listening."""

LONGEST_PAGE = 10
CALL = re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent")
LIST = re.compile(r"/v1(?:beta)?/models")
USAGE = {"promptTokenCount": 42, "candidatesTokenCount": 1, "totalTokenCount": 43}


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it came over the wire, headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body


class FakeGemini(ThreadingHTTPServer):
    """The server with all that it was sent; `latency_s` comes before every good answer, `closing` ends what drips.

    May be set at any time: the behaviour that every request meets whatever its model (`breaks`), the version that
    good answers tell (`version`), and the `names` that are listed.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, *, quota: Quota | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.received: list[Received] = []
        self.meter = Meter(quota or Quota())
        self.latency_s = 0.0
        self.breaks: str | None = None
        self.version: str | None = None
        self.names = list(BEHAVIOURS)
        self.turns = Turns()
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Report a fault of ours; a client that breaks off is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def base_url(self) -> str:
        """What a study file would name."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def fake_gemini(*, quota: Quota | None = None) -> Iterator[FakeGemini]:
    """The server on a free port, serving."""
    with FakeGemini(quota=quota) as server:
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
    server: FakeGemini
    body: Body
    asked: str
    model: str

    def do_GET(self) -> None:
        self._note({})
        parts = urlsplit(self.path)
        if not LIST.fullmatch(parts.path):
            self.answer(404, "no such page")
            return
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        first = int(query.get("pageToken", 0))
        end = first + min(LONGEST_PAGE, int(query.get("pageSize", LONGEST_PAGE)))
        names = self.server.names
        page: Body = {"models": [{"name": f"models/{name}", "version": "001"} for name in names[first:end]]}
        self.answer(200, page | ({"nextPageToken": str(end)} if end < len(names) else {}))

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(self.body)
        call = CALL.fullmatch(self.path)
        if call is None:
            self.answer(404, "no such page")
            return
        self.asked = unquote(call[1])
        self.model = self.server.turns.take(self.asked, self.prompt)
        try:
            behaviour_of(self.server.breaks or self.model)(self)
        except OSError:
            self.close_connection = True  # the client had enough

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: what was received is kept, and the prompt is nobody else's business."""

    @property
    def key(self) -> str:
        """The key that came with this request."""
        return str(self.headers.get("x-goog-api-key", ""))

    @property
    def prompt(self) -> str:
        """The text that was asked."""
        return str(self.body["contents"][0]["parts"][0]["text"])

    def answer(self, status: int, body: object, **headers: str) -> None:
        """A whole answer, JSON unless it is text."""
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.begin(status, "text/html" if isinstance(body, str) else "application/json", len(content), **headers)
        self.wfile.write(content)

    def begin(self, status: int, content_type: str, length: int, **headers: str) -> None:
        """The head of an answer."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def drip(self, piece: bytes) -> None:
        """The same piece again and again with a pause before each, until somebody has enough."""
        for _ in range(round(LONGEST_S / DRIP_EVERY_S)):
            if self.server.closing.wait(DRIP_EVERY_S):
                break
            self.wfile.write(piece)
        self.close_connection = True

    def reset(self) -> None:
        """Break the connection off without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=self.connection.detach()).close()
        self.close_connection = True

    def _note(self, body: Body) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(path=self.path, headers=headers, body=body))


Behaviour = Callable[[_Handler], None]


def candidate(*parts: Body, finish: str | None = "STOP", **more: object) -> Body:
    """A body with one candidate."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    reason = {"finishReason": finish} if finish else {}
    return {"candidates": [{**content, **reason, "index": 0, **more}], "usageMetadata": USAGE}


def info(reason: str) -> Body:
    """The detail that names a reason."""
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}


def behaviour_of(model: str) -> Behaviour:
    """What the model's name ends with; the good one if that is none of ours."""
    known = [name for name in BEHAVIOURS if model == name or model.endswith(f"-{name}")]
    return BEHAVIOURS[max(known, key=len, default="good")]


def _says(status: int, body: object, **headers: str) -> Behaviour:
    return lambda handler: handler.answer(status, body, **headers)


def _gives(body: Body, version: str = "{}") -> Behaviour:
    """A good answer after the latency; `version`: the model's version, made from the name that was asked."""

    def behave(handler: _Handler) -> None:
        handler.server.closing.wait(handler.server.latency_s)
        told = handler.server.version or version.format(handler.asked)
        handler.answer(200, body | {"modelVersion": told, "responseId": "r-1"})

    return behave


def _is_metered(handler: _Handler) -> None:
    tokens = tokens_of(handler.prompt)
    refusal = handler.server.meter.admit(handler.key, tokens)
    if refusal is not None:
        handler.answer(429, refusal)
        return
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 1, "totalTokenCount": tokens + 1}
    _gives(candidate({"text": "A"}) | {"usageMetadata": usage})(handler)


def _echoes_what_it_was_sent(handler: _Handler) -> None:
    status = int(handler.model.rpartition("-")[2])
    handler.answer(status, error(status, "UNKNOWN", f"bad request: {handler.key} asked: {handler.prompt}"))


def _echoes_as_text(handler: _Handler) -> None:
    handler.answer(502, f"<html>{handler.key} asked: {handler.prompt}</html>")


def _breaks_off(handler: _Handler) -> None:
    handler.begin(200, "application/json", 1000)
    handler.wfile.write(b'{"candidates": [')
    handler.reset()


def _ends_early(handler: _Handler) -> None:
    handler.begin(200, "application/json", 1000)
    handler.wfile.write(b'{"candidates": [')
    handler.close_connection = True


def _is_silent(handler: _Handler) -> None:
    handler.server.closing.wait(LONGEST_S)
    handler.close_connection = True


def _falls_silent(handler: _Handler) -> None:
    handler.begin(200, "application/json", 1000)
    handler.server.closing.wait(0.7)
    handler.wfile.write(b'{"candidates": [')
    _is_silent(handler)


def _drips_bytes(handler: _Handler) -> None:
    handler.begin(200, "application/json", 1000)
    handler.drip(b" ")


def _drips_chunks(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.drip(b"1\r\n \r\n")


def _drips_headers(handler: _Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    handler.drip(b"x")


def _unfinished(reason: str) -> Behaviour:
    return _gives(candidate(finish=reason))


BEHAVIOURS: Mapping[str, Behaviour] = {
    "good": _gives(candidate({"text": "A"})),
    "metered": _is_metered,
    "pro": _gives(candidate({"text": "A"}), "{}-001"),
    "rerouted": _gives(candidate({"text": "A"}), "gemini-other-flash"),
    "thinks": _gives(
        candidate({"text": "A? No,", "thought": True}, {"text": " B.", "thought": True}, {"text": "B"}, {"text": ")"})
        | {"usageMetadata": USAGE | {"thoughtsTokenCount": 17, "cachedContentTokenCount": 40}}
    ),
    "spaced": _gives(candidate({"text": " A\n"})),
    "logprobs": _gives(
        candidate(
            {"text": "A"},
            logprobsResult={
                "chosenCandidates": [{"token": "A", "logProbability": -0.25}, {"token": ".", "logProbability": -0.1}],
                "topCandidates": [
                    {"candidates": [{"token": "B", "logProbability": -1.5}, {"token": "A", "logProbability": -0.25}]},
                    {"candidates": [{"token": ".", "logProbability": -0.1}]},
                ],
            },
        )
    ),
    "tells-no-usage": _says(200, {"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}]}),
    "continues": _gives(candidate({"text": "A"}, finish="CONTINUATION", continuationToken="bW9yZQ==")),
    "cut-off": _gives(candidate({"text": "The answer"}, finish="MAX_TOKENS")),
    "max-tokens-empty": _gives(
        {
            "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}],
            "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 15, "totalTokenCount": 20},
        }
    ),
    "no-candidates": _gives({"usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}),
    "new-reason": _gives(candidate({"text": "A"}, finish="BRAND_NEW")),
    "new-reason-empty": _unfinished("BRAND_NEW"),
    "recitation": _unfinished("RECITATION"),
    "recitation-partly": _gives(candidate({"text": "It was the best"}, finish="RECITATION")),
    "other": _unfinished("OTHER"),
    "language": _unfinished("LANGUAGE"),
    "malformed": _unfinished("MALFORMED_RESPONSE"),
    "safety": _unfinished("SAFETY"),
    "safety-partly": _gives(candidate({"text": "First you"}, finish="SAFETY")),
    "prohibited": _unfinished("PROHIBITED_CONTENT"),
    "blocklist": _unfinished("BLOCKLIST"),
    "spii": _unfinished("SPII"),
    "image-safety": _unfinished("IMAGE_SAFETY"),
    "blocked-prompt": _gives({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE}),
    "429-minute": _says(429, over_quota(PER_MINUTE, wait_s=47), Retry_After="99"),
    "429-fraction": _says(429, over_quota(PER_MINUTE, TOKENS_PER_MINUTE, wait_s=47.5)),
    "429-day": _says(429, over_quota(PER_DAY, wait_s=47), Retry_After="47"),
    "429-both": _says(429, over_quota(PER_MINUTE, PER_DAY, wait_s=47)),
    "429-zero": _says(429, over_quota(PER_DAY, PER_MINUTE, wait_s=47, value="0")),
    "429-zero-said": _says(
        429,
        over_quota(PER_DAY, wait_s=47, sentence=f"{QUOTA_SPENT}\n* Quota exceeded for metric: x, limit: 0, model: y\n"),
    ),
    "429-limit-said": _says(429, over_quota(PER_MINUTE, wait_s=2, sentence=f"{QUOTA_SPENT} limit: 0.5, limit: 05")),
    "429-bare": _says(429, error(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")),
    "429-help": _says(429, error(429, "RESOURCE_EXHAUSTED", QUOTA_SPENT, HELP)),
    "429-sentence": _says(429, error(429, "RESOURCE_EXHAUSTED", f"{QUOTA_SPENT} Please retry in 1m5.25s.", HELP)),
    "429-header": _says(429, error(429, "RESOURCE_EXHAUSTED", "Slow down."), Retry_After="7.5"),
    "429-date": _says(429, error(429, "RESOURCE_EXHAUSTED", "Slow."), Retry_After="Wed, 21 Oct 2037 07:28:00 GMT"),
    "429-html": _says(429, "<html><body>Too many requests</body></html>"),
    "400": _says(400, error(400, "INVALID_ARGUMENT", "Thinking level is not supported for this model.")),
    "413": _says(413, "<html><body>Payload too large</body></html>"),
    "key-invalid": _says(
        400,
        error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", info("API_KEY_INVALID")),
    ),
    "key-expired": _says(400, error(400, "INVALID_ARGUMENT", "Renew the key.", info("API_KEY_INVALID"))),
    "key-invalid-said": _says(400, error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")),
    "location": _says(400, error(400, "FAILED_PRECONDITION", "User location is not supported for the API use.")),
    "too-long": _says(
        400,
        error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ),
    "401": _says(401, error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")),
    "403": _says(403, error(403, "PERMISSION_DENIED", "Your API key was reported as leaked.")),
    "404": _says(404, error(404, "NOT_FOUND", "models/x is not found for API version v1. Call ListModels.")),
    "408": _says(408, error(408, "UNKNOWN", "The request took too long.")),
    "500": _says(500, error(500, "INTERNAL", "An internal error has occurred.")),
    "502-html": _says(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "503": _says(503, error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")),
    "504": _says(504, error(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")),
    "500-list": _says(500, [error(500, "INTERNAL", "An error in a list.")]),
    "500-odd": _says(500, {"error": "odd"}),
    "redirect": _says(307, "moved", Location="/v1/models/good:generateContent"),
    "202": _says(202, candidate({"text": "A"})),
    "html": _says(200, "<html><body>Please log in</body></html>"),
    "empty": _says(200, ""),
    "other-json": _says(200, {"object": "something else"}),
    "no-object": _says(200, [1, 2]),
    "wrong-types": _says(200, {"candidates": [{"content": 7, "finishReason": "STOP"}]}),
    "reset": _Handler.reset,
    "resets-in-the-middle": _breaks_off,
    "ends-early": _ends_early,
    "silent": _is_silent,
    "falls-silent": _falls_silent,
    "drips-bytes": _drips_bytes,
    "drips-chunks": _drips_chunks,
    "drips-headers": _drips_headers,
    "echo-400": _echoes_what_it_was_sent,
    "echo-401": _echoes_what_it_was_sent,
    "echo-404": _echoes_what_it_was_sent,
    "echo-429": _echoes_what_it_was_sent,
    "echo-500": _echoes_what_it_was_sent,
    "echo-html": _echoes_as_text,
}


def main() -> None:
    """Serve in the foreground until Ctrl-C."""
    with FakeGemini(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8002) as server:
        sys.stderr.write(f"serving {server.base_url}; models: {', '.join(BEHAVIOURS)}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.closing.set()


if __name__ == "__main__":
    main()
