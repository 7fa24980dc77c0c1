"""Any OpenAI-compatible server: llama.cpp, vLLM, hosted ones."""

from collections.abc import Iterable

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from contract.completion import Completion
from contract.models import OpenAIModel
from worker.providers.base import Description, Endpoint, RefusedError, Request, TransientError
from worker.providers.deadline import DeadlineTransport, deadline
from worker.providers.openai_errors import translated

_CONNECT_TIMEOUT_S = 10.0
_LIST_TIMEOUT_S = 10.0
_CONNECTIONS = 256
_NO_KEY = "none"
_SENT_HEADERS = frozenset(
    ("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent")
)


class OpenAIProvider:
    """One model behind one address. The client is shared by all threads of a process."""

    def __init__(self, model: OpenAIModel, *, base_url: str, api_key: str | None) -> None:
        self._model = model.model
        self._key = api_key or _NO_KEY
        url = httpx2.URL(base_url)
        label = f"{url.host}:{url.port}" if url.port else url.host
        self.endpoint = Endpoint(provider="openai", model=model.model, label=label)
        self._client = openai.OpenAI(
            api_key=self._key,
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.Client(
                transport=DeadlineTransport(connections=_CONNECTIONS),
                follow_redirects=False,
                event_hooks={"request": [_strip_headers]},
            ),
        )

    def complete(self, request: Request) -> Completion:
        """Ask once, over a stream, and be back within `request.timeout_s` however slowly the server answers."""
        sampling = request.sampling
        with translated(self._key, request.prompt), deadline(request.timeout_s):
            stream = self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "user", "content": request.prompt}],
                temperature=sampling.temperature,
                top_p=openai.omit if sampling.top_p is None else sampling.top_p,
                max_tokens=sampling.max_tokens,
                seed=request.seed,
                stream=True,
                stream_options={"include_usage": True},
                timeout=httpx2.Timeout(request.timeout_s, connect=min(_CONNECT_TIMEOUT_S, request.timeout_s)),
            )
            with stream:
                return _collect(stream)

    def models(self) -> list[str] | None:
        """The ids that the server lists."""
        with translated(self._key), deadline(_LIST_TIMEOUT_S):
            return [model.id for model in self._client.models.list(timeout=_LIST_TIMEOUT_S)]

    def describe(self) -> Description:
        """Nothing: the protocol has no words for it."""
        return Description()


def _strip_headers(request: httpx2.Request) -> None:
    """Send what the protocol needs and nothing that the SDK took from the environment: it may be meant for another."""
    for name in set(request.headers) - _SENT_HEADERS:
        del request.headers[name]


def _collect(chunks: Iterable[ChatCompletionChunk]) -> Completion:
    """Put the chunks together; a stream that ends without a finish reason was cut off and is no completion."""
    text: list[str] = []
    thinking: list[str] = []
    finish = model = version = usage = None
    for chunk in chunks:
        model = chunk.model or model
        version = chunk.system_fingerprint or version
        usage = chunk.usage or usage
        for choice in (chunk.choices or [])[:1]:
            text.append(_text(choice.delta.content))
            thinking.append(_text(getattr(choice.delta, "reasoning_content", None)))
            finish = choice.finish_reason or finish
    if finish is None:
        raise TransientError("the stream ended before the answer was finished")
    if finish == "content_filter":
        raise RefusedError("the provider's content filter blocked the answer")
    cached = usage.prompt_tokens_details.cached_tokens if usage and usage.prompt_tokens_details else None
    return Completion(
        text="".join(text),
        thinking="".join(thinking) or None,
        finish_reason=finish,
        tokens_in=usage.prompt_tokens if usage else None,
        tokens_out=usage.completion_tokens if usage else None,
        tokens_cached=cached,
        model_reported=model,
        server_version=version,
    )


def _text(said: object) -> str:
    """A piece of text; nothing if it is none: the SDK does not check what it hands on."""
    return said if isinstance(said, str) else ""
