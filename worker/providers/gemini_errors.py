"""What a refusal of the Gemini API means, as one of our errors, without the key or the prompt."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from google.genai import errors

from worker.providers.base import (
    ExhaustedError,
    MisconfiguredError,
    ProviderError,
    RejectedError,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.hidden import without

_PASSING = (408, 409, 425, 499)
_BAD_KEY = ("api key not valid", "api key expired", "user location")
_TOO_LONG = ("exceeds the maximum number of tokens", "input token count")
_NO_QUOTA_AT_ALL = re.compile(r"\blimit: 0(?!\.?[0-9])")
_RETRY_IN = re.compile(r"retry in ([0-9.hms]*[hms])")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[hms]))+")
_PART = re.compile(r"([0-9.]+)(ms|[hms])")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@contextmanager
def translated(*hidden: str, model: str) -> Iterator[None]:
    """Make ours of every error of the SDK and of the HTTP library under it, with the `hidden` texts taken out.

    The original is left behind on purpose: it carries the request's headers and body. `model` is named where it is
    the model that is not there.
    """
    try:
        yield
    except ProviderError:
        raise
    except httpx2.TimeoutException:
        raise TransientError("no answer within the time allowed") from None
    except errors.APIError as error:
        raise _from_status(error, hidden, model) from None
    except httpx2.HTTPError as error:
        raise TransientError(f"connection: {without(hidden, str(error) or type(error).__name__)}") from None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise TransientError(f"not an answer of this protocol: {type(error).__name__}") from None


def _from_status(error: errors.APIError, hidden: tuple[str, ...], model: str) -> ProviderError:
    """What an HTTP status says about this request, this key, this model, or just this moment."""
    status = error.code
    message = f"HTTP {status}: {without(hidden, _said(error))}"
    if status == 429:
        return _over_quota(message, _details(error), error.response.headers.get("retry-after", ""))
    if status >= 500 or status < 300 or status in _PASSING:
        return TransientError(message)
    if status < 400:
        return MisconfiguredError(f"HTTP {status}: the server redirects; give its final address")
    if status in (401, 403):
        return MisconfiguredError(message, credential=True)
    if status == 404:
        said = without(hidden, _said(error))
        return MisconfiguredError(f"HTTP 404: no model {model} here, it is retired or misspelt: {said}")
    return _bad_request(message, error)


def _bad_request(message: str, error: errors.APIError) -> ProviderError:
    """A request that was not taken: because of the key, the prompt's length, or something in this one only."""
    said = message.lower()
    unknown_key = any(detail.get("reason") == "API_KEY_INVALID" for detail in _details(error))
    if unknown_key or error.status == "FAILED_PRECONDITION" or any(sign in said for sign in _BAD_KEY):
        return MisconfiguredError(message, credential=True)
    if any(sign in said for sign in _TOO_LONG):
        return TooLongError(message)
    return RejectedError(message)


def _over_quota(message: str, details: list[dict[str, Any]], retry_after: str) -> ProviderError:
    """The most severe of all quotas that were exceeded; a hint to retry soon is given even when the day is over."""
    violations = [violation for detail in details for violation in _dicts(detail.get("violations"))]
    if _NO_QUOTA_AT_ALL.search(message) or any(str(broken.get("quotaValue")) == "0" for broken in violations):
        return MisconfiguredError(f"{message} (limit: 0, the key's project may not ask this model)", credential=True)
    if any("PerDay" in str(broken.get("quotaId")) for broken in violations):
        return ExhaustedError(message)
    return ThrottledError(message, wait_s=_wait_s(message, details, retry_after))


def _wait_s(message: str, details: list[dict[str, Any]], retry_after: str) -> float | None:
    """The wait in seconds that the server named in its details, else in its sentence, else in its header."""
    sentence = _RETRY_IN.search(message)
    hints = [detail.get("retryDelay") for detail in details] + [sentence[1] if sentence else None, f"{retry_after}s"]
    return next((wait_s for wait_s in map(_seconds, hints) if wait_s is not None), None)


def _seconds(duration: object) -> float | None:
    """The seconds of "47s", "47.5s", "1m30s" or "900ms"; None for anything else."""
    if not isinstance(duration, str) or not _DURATION.fullmatch(duration):
        return None
    seconds = sum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(duration))
    return seconds if math.isfinite(seconds) else None


def _said(error: errors.APIError) -> str:
    """The server's own sentence, or its word for the status where it says nothing."""
    return next((said for said in (error.message, error.status) if said and isinstance(said, str)), "no reason given")


def _details(error: errors.APIError) -> list[dict[str, Any]]:
    """The typed details of an error; none where the body is none of this API's."""
    body = error.details
    inner = body.get("error") if isinstance(body, dict) else None
    return _dicts(inner.get("details")) if isinstance(inner, dict) else []


def _dicts(listed: object) -> list[dict[str, Any]]:
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
