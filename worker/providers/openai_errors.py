"""What an OpenAI-compatible server's refusal means, as one of our errors, without keys, headers or the prompt."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx2
import openai

from worker.providers.base import (
    ExhaustedError,
    MisconfiguredError,
    ProviderError,
    RefusedError,
    RejectedError,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.hidden import without
from worker.providers.openai_waits import named_wait

_TOO_LONG = (
    "exceed_context_size",
    "context_length",
    "context length",
    "context size",
    "longer than the context",
    "longer than the maximum model length",
)
_BLOCKED = ("content_filter", "content_policy", "responsibleaipolicyviolation", "flagged_input", "input was flagged")
_WRONG_KEY = ("api_key_invalid", "api key not valid", "invalid_api_key", "incorrect api key")
_UNPAID = ("insufficient_quota", "billing_hard_limit_reached")
_OF_THE_DAY = re.compile(r"per[-_ ]?day|\b[rt]pd\b|\bdaily\b")
_NEWER_BUDGET_NAME = re.compile(r"unsupported parameter: 'max_tokens'.*'max_completion_tokens'")


class BudgetNameError(TransientError):
    """The server knows the answer budget by its newer name only: asked with that one it may answer."""


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    """What a server said in place of an answer. `signs` is all of it in lower case; header names are too."""

    status: int
    said: str
    signs: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        return f"HTTP {self.status}: {self.said}"

    def shows(self, *signs: str) -> bool:
        """Whether one of the `signs` is there."""
        return any(sign in self.signs for sign in signs)


@contextmanager
def translated(*hidden: str, where: str | None) -> Iterator[None]:
    """Make ours of every error of the SDK and of the HTTP library under it, with the `hidden` texts taken out.

    `where` is the server's address as people may see it. The original is left behind on purpose: it carries the
    request's headers and body.
    """
    try:
        yield
    except ProviderError:
        raise
    except openai.APIStatusError as error:
        raise _meaning(_refusal(error, error.status_code, hidden)) from None
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        raise TransientError(without(hidden, _unanswered(error, where))) from None
    except openai.APIError as error:
        raise _in_the_stream(error, hidden) from None
    except (ValueError, TypeError, AttributeError, openai.OpenAIError) as error:
        raise TransientError(f"not an answer of this protocol: {type(error).__name__}") from None


def _unanswered(error: Exception, where: str | None) -> str:
    """What kept the server's answer away; the address where nobody was reached there."""
    cause = error.__cause__ or error
    if isinstance(cause, httpx2.ConnectTimeout):
        return f"connection: {where} cannot be reached in time"
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return "no answer within the time allowed"
    if not isinstance(cause, httpx2.ConnectError):
        return f"connection: {str(cause) or type(error).__name__}"
    return f"connection: {where} cannot be reached: {cause}"


def _in_the_stream(error: openai.APIError, hidden: tuple[str, ...]) -> ProviderError:
    """An error that came when the answer had begun, with HTTP 200: its code counts where it is one of HTTP."""
    code = error.body.get("code") if isinstance(error.body, dict) else None
    refusal = _refusal(error, code if isinstance(code, int) else 0, hidden)
    if 400 <= refusal.status < 600:
        return _meaning(refusal)
    return TransientError(f"the answer broke off: {refusal.said}")


def _refusal(error: openai.APIError, status: int, hidden: tuple[str, ...]) -> _Refusal:
    signs = f"{error.message} {json.dumps(error.body, default=str)}"
    return _Refusal(
        status=status,
        said=without(hidden, _said(error)),
        # A prompt that is quoted back must not decide what kind of error this is.
        signs=without(hidden, signs).lower(),
        headers=dict(error.response.headers) if isinstance(error, openai.APIStatusError) else {},
    )


def _said(error: openai.APIError) -> str:
    """The server's own sentence where it has one that is no web page, else what the SDK made of it."""
    body = error.body
    if isinstance(body, list) and body and isinstance(body[0], dict):  # as Gemini writes errors for this protocol
        body = body[0].get("error")
    said = body.get("message", body.get("detail")) if isinstance(body, dict) else body
    return said if isinstance(said, str) and said and not said.startswith("<") else error.message


def _meaning(refusal: _Refusal) -> ProviderError:
    """What an HTTP status says about the key, the model, this request, or just this moment."""
    status = refusal.status
    if status == 429:
        return _too_much(refusal)
    if status == 403 and refusal.shows(*_BLOCKED):
        return RefusedError(refusal.message)
    if status in (401, 402, 403):
        return MisconfiguredError(refusal.message, credential=True)
    if status == 404:
        return MisconfiguredError(f"{refusal.message} (no such model there, or the base_url is not the whole one)")
    if status >= 500 or status in (408, 409, 425):
        return TransientError(refusal.message)
    if status < 400:
        return MisconfiguredError(f"HTTP {status}: the server redirects; give its final address")
    return _of_the_request(refusal)


def _too_much(refusal: _Refusal) -> ProviderError:
    """Whether somebody must pay, tomorrow must come, or a pause is enough."""
    if refusal.shows(*_UNPAID):
        return MisconfiguredError(refusal.message, credential=True)
    wait_s = named_wait(refusal.headers, refusal.said, now=datetime.now(UTC))
    # Days of these servers roll: what was spent comes back bit by bit, and who says when is believed.
    if wait_s is None and _OF_THE_DAY.search(refusal.signs):
        return ExhaustedError(refusal.message)
    # Some servers speak of quota and billing at every limit: who also names a wait only means a pause.
    if wait_s is None and refusal.shows("quota") and refusal.shows("billing"):
        return MisconfiguredError(refusal.message, credential=True)
    return ThrottledError(refusal.message, wait_s=wait_s)


def _of_the_request(refusal: _Refusal) -> ProviderError:
    """What a status of 400 to 499 says that blames the request."""
    if refusal.status == 413 or refusal.shows(*_TOO_LONG):
        return TooLongError(refusal.message)
    if refusal.shows(*_BLOCKED):
        return RefusedError(refusal.message)
    if refusal.shows(*_WRONG_KEY):
        return MisconfiguredError(refusal.message, credential=True)
    if _NEWER_BUDGET_NAME.search(refusal.signs):
        return BudgetNameError(refusal.message)
    return RejectedError(refusal.message)
