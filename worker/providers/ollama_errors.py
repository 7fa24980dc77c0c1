"""What an Ollama server's refusal means, as one of our errors, without the prompt."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import ollama

from worker.providers.base import (
    HostError,
    MisconfiguredError,
    ProviderError,
    RejectedError,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.hidden import without

_IN_MID_STREAM = -1
"""The library's status of an error that came within a stream which had begun well."""

_NO_MEMORY = (
    "out of memory",
    "cudamalloc failed",
    "failed to allocate",
    "not enough memory",
    "more system memory",
)
_CRASHED = (
    "model runner has unexpectedly stopped",
    "process no longer running",
    "process has terminated",
    "cuda error",
    "ggml_assert",
)
_TOO_LONG = (
    "longer than the context length",
    "exceed_context_size",
    "exceeds the available context",
    "context length",
)
_CANNOT = ("does not support", "top_logprobs")


@contextmanager
def translated(host: str, model: str | None, *hidden: str) -> Iterator[None]:
    """Make ours of every error of the library and of the HTTP library under it, with the `hidden` texts taken out.

    `host` and `model` are named where a person must do something about them. The original is left behind on purpose:
    it carries the request's headers and body.
    """
    try:
        yield
    except ProviderError:
        raise
    except httpx.TimeoutException:
        raise TransientError(f"no answer from {host} within the time allowed") from None
    except ollama.ResponseError as error:
        raise _from_response(error, host, model, hidden) from None
    except ConnectionError:
        raise TransientError(f"connection: {host} cannot be reached") from None
    except httpx.HTTPError as error:
        text = str(error) or type(error).__name__
        raise TransientError(f"connection: {host}: {without(hidden, text)}") from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise TransientError(f"not an answer of this protocol from {host}: {type(error).__name__}") from None


def _from_response(error: ollama.ResponseError, host: str, model: str | None, hidden: tuple[str, ...]) -> ProviderError:
    """What the server's answer says about this request, this model, this host, or just this moment."""
    status = error.status_code
    said = without(hidden, _said(error))
    if status == _IN_MID_STREAM:
        return _from_host(500, said.lower(), f"{host} broke off: {said}")
    message = f"HTTP {status} from {host}: {said}"
    if status < 400:
        return MisconfiguredError(f"HTTP {status} from {host}: the server redirects; give its final address")
    if status >= 500:
        return _from_host(status, said.lower(), message)
    if status == 404:
        return MisconfiguredError(_absent(said.lower(), host, model) or f"{message}; is an Ollama server there?")
    if status in (401, 403):
        return MisconfiguredError(message, credential=True)
    return _from_request(status, said.lower(), message)


def _from_host(status: int, said: str, message: str) -> ProviderError:
    """A fault of the server; only what it says with a 500 tells whether another host would do better."""
    if status == 500 and any(sign in said for sign in _NO_MEMORY):
        return HostError(message, lasting=True)
    if status == 500 and any(sign in said for sign in _CRASHED):
        return HostError(message)
    return TransientError(message)


def _from_request(status: int, said: str, message: str) -> ProviderError:
    """A request that was not taken: too early, too long, or one that this model or server never takes."""
    if status == 429:
        return ThrottledError(message)
    if status in (408, 425, 499):
        return TransientError(message)
    if status == 400 and any(sign in said for sign in _TOO_LONG):
        return TooLongError(message)
    if status == 400 and any(sign in said for sign in _CANNOT):
        return MisconfiguredError(message)
    return RejectedError(message)


def _absent(said: str, host: str, model: str | None) -> str | None:
    """What to do where it is the model that was not found; None where it is the page."""
    if model is None or "model" not in said or not ("not found" in said or "try pulling" in said):
        return None
    return f"model {model} is not on {host}: run `ollama pull {model}` there"


def _said(error: ollama.ResponseError) -> str:
    """The server's own sentence: Ollama's is a text; one that llama.cpp wrote stands within an object."""
    said: object = error.error
    inner = said.get("message") if isinstance(said, dict) else said
    return str(inner)
