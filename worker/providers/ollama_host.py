"""One Ollama server: what it has, what it has loaded, how much it does at once, and the one way to chat with it."""

import hashlib
import ipaddress
import json
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import ollama

from contract.models import OllamaOptions, whole_tag
from worker.providers.base import Description, TransientError
from worker.providers.deadline import deadline
from worker.providers.deadline_httpx import DeadlineTransport
from worker.providers.ollama_errors import translated

_CONNECT_TIMEOUT_S = 10.0
_ASK_TIMEOUT_S = 10.0
_CONNECTIONS = 256
_KEEP_ALIVE = "30m"
_NANOSECONDS = 1e9
_TRIAL = "Count from one to one hundred in words."
_TRIAL_TOKENS = 16
_BLUR = 0.2
_SENT_HEADERS = frozenset(
    ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent")
)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model in a server's memory: its tag and digest, its context in tokens, its sizes in bytes."""

    model: str
    digest: str
    context_length: int | None
    size: int
    size_in_vram: int

    @property
    def on_cpu(self) -> float:
        """The share of the model that is not on a GPU, from 0 to 1."""
        return min(1.0, max(0.0, 1 - self.size_in_vram / self.size)) if self.size else 0.0


class OllamaHost:
    """The server at `base_url`. Its client is shared by all threads of a process; every method is back in time.

    `label` tells it from all others by its machine and port: `machine` if that is given, else the name in its address,
    or this machine's own where a loopback address says nothing.
    """

    def __init__(self, base_url: str, machine: str | None = None) -> None:
        self.client = ollama.Client(
            host=base_url,
            follow_redirects=False,
            trust_env=False,
            timeout=httpx.Timeout(_ASK_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            transport=DeadlineTransport(connections=_CONNECTIONS),
            event_hooks={"request": [_strip_headers]},
        )
        self._http: httpx.Client = self.client._client  # noqa: SLF001 - the library cannot send all that a call needs
        self.label = _label(self._http.base_url, machine)

    def close(self) -> None:
        """Let go of all connections."""
        self._http.close()

    def tags(self) -> dict[str, str]:
        """The digest of every model that the server has, by its whole tag. Raises only ProviderError."""
        with self._asking():
            listed = self.client.list().models
        return {whole_tag(model.model): model.digest for model in listed if model.model and model.digest}

    def version(self) -> str:
        """The version of the server. Raises only ProviderError."""
        with self._asking():
            response = self._http.get("/api/version")
            if not response.is_success:
                raise ollama.ResponseError(response.text, response.status_code)
            return str(response.json()["version"])

    def describe(self, model: str) -> Description:
        """What the server tells of a model that it has. Raises only ProviderError."""
        digest = self.tags().get(whole_tag(model))
        with self._asking(model):
            shown = self.client.show(model)
        told = shown.modelinfo or {}
        context = told.get(f"{told.get('general.architecture')}.context_length")
        return Description(
            digest=digest,
            quantisation=shown.details.quantization_level or None if shown.details else None,
            context_length=context if isinstance(context, int) else None,
            server_version=self.version(),
            template_digest=hashlib.sha256(shown.template.encode()).hexdigest() if shown.template else None,
        )

    def loaded(self) -> tuple[Loaded, ...]:
        """The models in the server's memory. Raises only ProviderError."""
        with self._asking():
            running = self.client.ps().models
        return tuple(
            Loaded(
                model=whole_tag(model.model or model.name or ""),
                digest=model.digest or "",
                context_length=model.context_length,
                size=int(model.size or 0),
                size_in_vram=int(model.size_vram or 0),
            )
            for model in running
        )

    def warm_up(self, model: str, options: OllamaOptions, timeout_s: float) -> None:
        """Have the model loaded just as calls with these options need it. Raises only ProviderError."""
        last = self.chat(chat_body(model, options, prompt=None), timeout_s)[-1]
        if last.done_reason != "load":
            raise TransientError(f"{self.label} does not say that it has loaded {model}")

    def parallel(self, model: str, options: OllamaOptions, most: int, timeout_s: float) -> int:
        """How many calls of a loaded model the server runs at once, from 1 to `most`. Raises only ProviderError.

        It cannot be asked, so it is tried: `most` short calls are sent together.
        """
        body = chat_body(model, options, prompt=_TRIAL, temperature=0.0, num_predict=_TRIAL_TOKENS)
        with ThreadPoolExecutor(most) as threads:
            trials = [threads.submit(self._running_interval, body, timeout_s) for _ in range(most)]
            return most_at_once([trial.result() for trial in trials])

    def chat(self, body: Mapping[str, Any], timeout_s: float, *hidden: str) -> list[ollama.ChatResponse]:
        """Send one call and take in its stream up to the line that says it is done, within `timeout_s` in all.

        The library's own `chat` cannot send `truncate` and `shift`. The `hidden` texts are in no error. Raises only
        ProviderError.
        """
        timeout = httpx.Timeout(timeout_s, connect=min(_CONNECT_TIMEOUT_S, timeout_s))
        with (
            translated(self.label, body["model"], *hidden),
            deadline(timeout_s),
            self._http.stream("POST", "/api/chat", json=body, timeout=timeout) as response,
        ):
            if not response.is_success:
                response.read()
                raise ollama.ResponseError(response.text, response.status_code)
            said = [_understood(line) for line in _lines(response.iter_bytes())]
        if not (said and said[-1].done):
            raise TransientError(f"the stream from {self.label} ended before the answer was done")
        return said

    @contextmanager
    def _asking(self, model: str | None = None) -> Iterator[None]:
        """Around a short question, which has its own time and raises our errors."""
        with translated(self.label, model), deadline(_ASK_TIMEOUT_S):
            yield

    def _running_interval(self, body: Mapping[str, Any], timeout_s: float) -> tuple[float, float]:
        """From when to when the server worked at a call, in seconds of this machine's clock."""
        last = self.chat(body, timeout_s)[-1]
        end = time.monotonic()
        return end - ((last.prompt_eval_duration or 0) + (last.eval_duration or 0)) / _NANOSECONDS, end


def _label(url: httpx.URL, machine: str | None) -> str:
    host = machine or (socket.gethostname() if _is_loopback(url.host) else url.host)
    return f"{f'[{host}]' if ':' in host else host}:{url.port or {'http': 80, 'https': 443}[url.scheme]}"


def _is_loopback(host: str) -> bool:
    """Whether a host name or address means the machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def chat_body(model: str, options: OllamaOptions, *, prompt: str | None, **sampling: object) -> dict[str, Any]:
    """The body of a call; without a prompt the server loads the model and does no more.

    A call whose context length or `shift` differs from the last one's makes the server load the model again: every
    body is made here. Without `truncate` and `shift` a prompt that is too long is refused instead of cut in silence.
    """
    thinking = {} if options.think is None else {"think": options.think}
    return {
        "model": model,
        "messages": [] if prompt is None else [{"role": "user", "content": prompt}],
        "stream": True,
        "options": {"num_ctx": options.context, **sampling},
        "truncate": False,
        "shift": False,
        "keep_alive": _KEEP_ALIVE,
        **thinking,
    }


def most_at_once(intervals: Sequence[tuple[float, float]]) -> int:
    """The largest number of intervals, each from start to end, that run at one moment; at least 1.

    A fifth of each is left out at both ends: what is measured across a network is blurred, and intervals that touch
    are calls that were run one after the other.
    """
    cores = [(start + _BLUR * (end - start), end - _BLUR * (end - start)) for start, end in intervals]
    return max((sum(start <= moment < end for start, end in cores) for moment, _ in cores), default=0) or 1


def _strip_headers(request: httpx.Request) -> None:
    """Send what the protocol needs and nothing that the library took from the environment: a key for another host."""
    for name in set(request.headers) - _SENT_HEADERS:
        del request.headers[name]


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream that hold something; httpx would also cut at characters that an answer may hold."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from filter(bytes.strip, lines)
    if rest.strip():
        yield rest


def _understood(line: bytes) -> ollama.ChatResponse:
    """One line of a stream; an error may come in it although the answer began well."""
    part = json.loads(line)
    if part.get("error"):
        raise ollama.ResponseError(line.decode())
    return ollama.ChatResponse(**part)
