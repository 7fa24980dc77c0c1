"""What an OpenAI-compatible server's refusal means, as one of our errors, without the key or the prompt."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import openai

from worker.providers.base import (
    MisconfiguredError,
    ProviderError,
    RefusedError,
    RejectedError,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.hidden import without

_TOO_LONG = ("exceed_context_size", "context_length", "context length", "context size", "longer than the context")
_BLOCKED = ("content_filter", "content_policy", "responsibleaipolicyviolation")


@contextmanager
def translated(*hidden: str) -> Iterator[None]:
    """Make ours of every error of the SDK and of the HTTP library under it, with the `hidden` texts taken out.

    The original is left behind on purpose: it carries the request's headers and body.
    """
    try:
        yield
    except ProviderError:
        raise
    except (openai.APITimeoutError, httpx2.TimeoutException):
        raise TransientError("no answer within the time allowed") from None
    except openai.APIStatusError as error:
        raise _from_status(error, hidden) from None
    except (openai.APIError, httpx2.HTTPError) as error:
        text = str(error.__cause__ or error) or type(error).__name__
        raise TransientError(f"connection: {without(hidden, text)}") from None
    except (ValueError, TypeError, AttributeError, openai.OpenAIError) as error:
        raise TransientError(f"not an answer of this protocol: {type(error).__name__}") from None


def _from_status(error: openai.APIStatusError, hidden: tuple[str, ...]) -> ProviderError:
    """What an HTTP status says about this request, this model, or just this moment."""
    status = error.status_code
    message = f"HTTP {status}: {without(hidden, _said(error))}"
    signs = f"{error.message} {json.dumps(error.body, default=str)}".lower()
    if status == 429:
        return ThrottledError(message, wait_s=_retry_after(error))
    if status in (401, 403, 404):
        return MisconfiguredError(message)
    if status >= 500 or status in (408, 409, 425):
        return TransientError(message)
    if status < 400:
        return MisconfiguredError(f"HTTP {status}: the server redirects; give its final address")
    if any(sign in signs for sign in _TOO_LONG):
        return TooLongError(message)
    if any(sign in signs for sign in _BLOCKED):
        return RefusedError(message)
    return RejectedError(message)


def _said(error: openai.APIStatusError) -> str:
    """The server's own sentence where it speaks the protocol, else what the SDK made of it."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return said if isinstance(said, str) else error.message


def _retry_after(error: openai.APIStatusError) -> float | None:
    """The wait in seconds that the server named; None for a date or for anything that is no number."""
    try:
        wait_s = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, wait_s) if math.isfinite(wait_s) else None
