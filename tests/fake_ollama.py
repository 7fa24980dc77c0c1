"""A small server that speaks Ollama's own protocol over real HTTP, and misbehaves on request.

The tag of the model says what happens; a tag that no behaviour has is answered as "good" is, and behaviours joined by
`tests.fake_turns.THEN` are taken in turn. Like Ollama it keeps one
model loaded, with so many slots, and loads another only when nobody uses that one. By hand:
`python -m tests.fake_ollama [port]`.
"""

import hashlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.fake_http import FakeHandler, FakeServer, serve, serving
from tests.fake_ollama_faults import FAILS_TO_LOAD, FAULTS, line, part, says
from tests.fake_turns import Turns

VERSION = "0.30.5"
TEMPLATE = "{{ .System }} {{ .Prompt }}"
DETAILS = {"family": "llama", "format": "gguf", "parameter_size": "8.0B", "quantization_level": "Q4_K_M"}
CANDIDATES = (("A", -0.1), ("B", -2.5), (" A", -4.0), ("The", -5.5), ("a", -7.0))
"""What the first token of every answer might have been; those of its thoughts are spelt with a star."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A question that was dealt with: its model's tag, the prompt, and from when to when, in monotonic seconds."""

    tag: str
    prompt: str
    start: float
    end: float


class FakeOllama(FakeServer):
    """The server and its one loaded model.

    May be set at any time: `tags` with their digests, the `answer` to a prompt, the number of slots (`parallel`), the
    seconds that an answer (`generation_s`), a load (`load_s`) and the list of tags (`tags_s`) take, `size` and
    `size_vram` of a model in bytes, and the behaviour that every request (`behaves`), or every one that needs a model
    (`runs`), meets whatever its model. `loads` has the tag of every load, `calls` all questions.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port, _Handler)
        self.tags = {f"{name}:latest": digest(name) for name in BEHAVIOURS}
        self.answer: Callable[[str], str] = lambda _: "A"
        self.parallel = 1
        self.generation_s = 0.0
        self.load_s = self.tags_s = 0.0
        self.size = self.size_vram = 5_000_000_000
        self.behaves: str | None = None
        self.turns = Turns()
        self.runs: str | None = None
        self.calls: list[Call] = []
        self.loads: list[str] = []
        self.loaded: tuple[str, int, bool] | None = None
        self._turn = threading.Condition()
        self._users = self._running = 0

    @property
    def label(self) -> str:
        """How a worker on this machine calls the server."""
        return f"{socket.gethostname()}:{self.server_port}"

    @contextmanager
    def use(self, body: Mapping[str, Any]) -> Iterator[None]:
        """Use the model as the call wants it run: it is loaded first where the last one wanted it otherwise.

        Whoever wants the loaded one goes ahead of those who want another.
        """
        wanted = (whole_tag(body["model"]), body.get("options", {}).get("num_ctx", 4096), body.get("shift", True))
        with self._turn:
            self._turn.wait_for(lambda: self.loaded == wanted or not self._users)
            self._users += 1
            if self.loaded != wanted:
                self.loaded = None
                self.loads.append(wanted[0])
                self.closing.wait(self.load_s)
                self.loaded = wanted
        try:
            yield
        finally:
            with self._turn:
                self._users -= 1
                self._turn.notify_all()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """One of the loaded model's slots."""
        with self._turn:
            self._turn.wait_for(lambda: self._running < self.parallel)
            self._running += 1
        try:
            yield
        finally:
            with self._turn:
                self._running -= 1
                self._turn.notify_all()


class _Handler(FakeHandler):
    server: FakeOllama

    def behave(self) -> None:
        """What every request meets, or else what the path and the tag say."""
        if self.server.behaves is not None:
            BEHAVIOURS[self.server.behaves](self)
        else:
            _PAGES.get(self.path, says(404, "404 page not found"))(self)


Behaviour = Callable[[_Handler], None]


@contextmanager
def fake_ollama() -> Iterator[FakeOllama]:
    """The server on a free port, serving."""
    with serving(FakeOllama()) as server:
        yield server


def whole_tag(model: str) -> str:
    """The tag as the server lists it."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def digest(text: str) -> str:
    """A digest as the server has one for each tag."""
    return hashlib.sha256(text.encode()).hexdigest()


def _lists_tags(handler: _Handler) -> None:
    handler.server.closing.wait(handler.server.tags_s)
    models = [
        {"name": tag, "model": tag, "modified_at": "2026-11-01T00:00:00Z", "size": handler.server.size}
        | {"digest": weights, "details": DETAILS}
        for tag, weights in handler.server.tags.items()
    ]
    handler.say(200, {"models": models})


def _lists_loaded(handler: _Handler) -> None:
    server = handler.server
    models = []
    if (loaded := server.loaded) is not None:
        tag, context, _ = loaded
        sizes = {"size": server.size, "size_vram": server.size_vram, "context_length": context}
        known = {"name": tag, "model": tag, "digest": server.tags.get(tag, ""), "details": DETAILS}
        models.append(known | sizes | {"expires_at": "2026-11-02T11:00:00Z"})
    handler.say(200, {"models": models})


def _shows(handler: _Handler) -> None:
    if whole_tag(handler.body["model"]) not in handler.server.tags:
        handler.say(404, {"error": f"model '{handler.body['model']}' not found"})
        return
    told = {"general.architecture": "llama", "llama.context_length": 8192}
    handler.say(200, {"details": DETAILS, "template": TEMPLATE, "model_info": told, "capabilities": ["completion"]})


def _chats(handler: _Handler) -> None:
    """Load, or do what the tag says."""
    model = handler.body["model"]
    name = model.split(":")[0]
    if whole_tag(model) not in handler.server.tags:
        handler.say(404, {"error": f"model '{model}' not found"})
    elif handler.server.runs is not None:
        BEHAVIOURS[handler.server.runs](handler)
    elif handler.body["messages"]:
        start = time.monotonic()
        handler.behaviour = handler.server.turns.take(name, _prompt(handler))
        BEHAVIOURS.get(handler.behaviour, _generates())(handler)
        call = Call(tag=whole_tag(model), prompt=_prompt(handler), start=start, end=time.monotonic())
        handler.server.calls.append(call)
    elif name in FAILS_TO_LOAD:
        BEHAVIOURS[name](handler)
    else:
        with handler.server.use(handler.body):
            handler.say(200, part(model=model, done=True, done_reason="load"))


def _generates(*, thoughts: tuple[str, ...] = (), done_reason: str = "stop", heeds_format: bool = True) -> Behaviour:
    """Load, wait for a slot, answer, and tell how long it took."""

    def behave(handler: _Handler) -> None:
        body, server, came = handler.body, handler.server, time.monotonic_ns()
        model = body["model"]
        words = re.findall(r"\S+\s*|\s+", _text(handler, heeds_format=heeds_format))
        with server.use(body), server.slot():
            began = time.monotonic_ns()
            server.closing.wait(server.generation_s)
            handler.begin()
            for thought in thoughts:
                handler.write(line(part(model=model, thinking=thought, **_logprobs(body, thought, "*"))))
            for word in words:
                handler.write(line(part(word, model=model, **_logprobs(body, word))))
            told = _durations(came, began) | {"prompt_eval_count": 42, "eval_count": len(thoughts) + len(words) + 1}
            handler.write(line(part(model=model, done=True, done_reason=done_reason, **told)))
        handler.end()

    return behave


def _prompt(handler: _Handler) -> str:
    return str(handler.body["messages"][-1]["content"])


def _text(handler: _Handler, *, heeds_format: bool) -> str:
    """The answer; where it is limited, as JSON, and the first of those allowed unless it is one of them."""
    text = handler.server.answer(_prompt(handler))
    if not heeds_format or "format" not in handler.body:
        return text
    allowed = handler.body["format"]["enum"]
    return json.dumps(text if text in allowed else allowed[0])


def _durations(came: int, began: int) -> dict[str, Any]:
    """What a call took that came and began when the clock showed so many nanoseconds."""
    now = time.monotonic_ns()
    took = max(2, now - began)
    evaluated = {"prompt_eval_duration": took // 2, "eval_duration": took - took // 2}
    return {"total_duration": now - came, "load_duration": began - came} | evaluated


def _logprobs(body: Mapping[str, Any], token: str, mark: str = "") -> dict[str, Any]:
    """The log-probabilities of one token, if they were asked for."""
    if not body.get("logprobs"):
        return {}
    best = [
        {"token": candidate + mark, "logprob": logprob, "bytes": list((candidate + mark).encode())}
        for candidate, logprob in CANDIDATES[: body.get("top_logprobs", 0)]
    ]
    return {"logprobs": [{"token": token, "logprob": -0.1, "bytes": list(token.encode()), "top_logprobs": best}]}


_PAGES: Mapping[str, Behaviour] = {
    "/api/version": says(200, {"version": VERSION}),
    "/api/tags": _lists_tags,
    "/api/ps": _lists_loaded,
    "/api/show": _shows,
    "/api/chat": _chats,
}

BEHAVIOURS: Mapping[str, Behaviour] = {
    "good": _generates(),
    "thinks": _generates(thoughts=("A? ", "No, ", "B.")),
    "cut-off": _generates(done_reason="length"),
    "constrained": _generates(),
    "ignores-format": _generates(heeds_format=False),
    **FAULTS,
}


if __name__ == "__main__":
    serve(FakeOllama(port=int(sys.argv[1]) if len(sys.argv) > 1 else 11435), BEHAVIOURS)
