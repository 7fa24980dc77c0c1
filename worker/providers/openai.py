"""Any OpenAI-compatible server: llama.cpp, vLLM, hosted ones. The only file that imports the openai SDK."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from contract.completion import Completion
from contract.study import OpenAIModel
from worker.providers.base import (
    Endpoint,
    MisconfiguredError,
    ProviderError,
    RefusedError,
    RejectedError,
    Request,
    ThrottledError,
    TooLongError,
    TransientError,
)

_CONNECT_TIMEOUT_S = 10.0
_LIST_TIMEOUT_S = 10.0
_CONNECTIONS = 256
_NO_KEY = "none"
_TOO_LONG = ("exceed_context_size", "context length", "context_length", "longer than the context")


class OpenAIProvider:
    """One model behind one address. The client is shared by all threads of a process."""

    def __init__(self, model: OpenAIModel, *, base_url: str, api_key: str | None) -> None:
        self._model = model.model
        url = httpx2.URL(base_url)
        label = f"{url.host}:{url.port}" if url.port else url.host
        self.endpoint = Endpoint(provider="openai", model=model.model, label=label)
        # A key, an organisation or a project from the environment must not reach a server that was not meant to see it.
        self._client = openai.OpenAI(
            api_key=api_key or _NO_KEY,
            base_url=base_url,
            max_retries=0,
            default_headers={"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()},  # type: ignore[dict-item]
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            ),
        )

    def complete(self, request: Request) -> Completion:
        """Ask once over a stream, so that the deadline holds also for a server that answers drop by drop."""
        deadline = time.monotonic() + request.timeout_s
        sampling = request.sampling
        with _translated():
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
                return _collect(_until(deadline, stream))

    def models(self) -> list[str] | None:
        """The ids that the server lists."""
        with _translated():
            return [model.id for model in self._client.models.list(timeout=_LIST_TIMEOUT_S)]


def _until(deadline: float, stream: Iterator[ChatCompletionChunk]) -> Iterator[ChatCompletionChunk]:
    for chunk in stream:
        if time.monotonic() > deadline:
            raise TransientError("the answer was still going on at the deadline; the call was given up")
        yield chunk


def _collect(chunks: Iterator[ChatCompletionChunk]) -> Completion:
    """Put the chunks together; a stream that ends without a finish reason was cut off and is no completion."""
    text: list[str] = []
    thinking: list[str] = []
    finish = model = version = usage = None
    for chunk in chunks:
        model = chunk.model or model
        version = chunk.system_fingerprint or version
        usage = chunk.usage or usage
        for choice in chunk.choices[:1]:
            text.append(choice.delta.content or "")
            thinking.append(getattr(choice.delta, "reasoning_content", None) or "")
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


@contextmanager
def _translated() -> Iterator[None]:
    """Make ours of every error of the SDK and of the HTTP library under it; the original is left behind on purpose."""
    try:
        yield
    except ProviderError:
        raise
    except openai.APITimeoutError:
        raise TransientError("no answer within the time allowed") from None
    except openai.APIStatusError as error:
        raise _from_status(error) from None
    except (openai.APIError, httpx2.HTTPError) as error:
        raise TransientError(f"connection: {_cause(error)}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, openai.OpenAIError) as error:
        raise TransientError(f"not an answer of this protocol: {type(error).__name__}") from None


def _from_status(error: openai.APIStatusError) -> ProviderError:
    """What an HTTP status says about this request, this model, or just this moment."""
    status = error.status_code
    message = f"HTTP {status}: {error.message}"
    if status == 429:
        return ThrottledError(message, wait_s=_retry_after(error))
    if status in (401, 403, 404):
        return MisconfiguredError(message)
    if status >= 500 or status in (408, 409, 425):
        return TransientError(message)
    if any(sign in error.message.lower() for sign in _TOO_LONG):
        return TooLongError(message)
    if status < 400:
        return MisconfiguredError(f"HTTP {status}: the server redirects; give its final address")
    return RejectedError(message)


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None


def _cause(error: Exception) -> str:
    return str(error.__cause__ or error) or type(error).__name__
