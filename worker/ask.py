"""One call of one job, from the rendered prompt to the attempt as it will be stored. No SQL, no Celery."""

import math
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.errors import ErrorKind
from contract.formats import asking
from contract.orders import letters_for
from contract.storable import storable
from worker.prepare import Prepared, expected
from worker.providers.base import (
    Description,
    Endpoint,
    Provider,
    ProviderError,
    RefusedError,
    Request,
    TransientError,
)
from worker.records import Attempt, ClaimedJob, Deployment
from worker.retry import Tally, Verdict

_UNKNOWN = Description()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of one call: the attempt to store, the verdict to decide on, and who answered (None if nobody did).

    `fault` is the error that the provider ended with, None if it gave a completion; `reported` the model that it named.
    """

    attempt: Attempt
    verdict: Verdict
    deployment: Deployment | None = None
    fault: ProviderError | None = None
    reported: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A call that is being made."""

    id: uuid.UUID
    started_at: datetime
    prepared: Prepared
    pool: str | None


def ask_once(
    job: ClaimedJob,
    tally: Tally,
    prepared: Prepared,
    provider: Provider,
    description: Description = _UNKNOWN,
    pool: str | None = None,
) -> Asked:
    """Call the provider once and read. Whatever happens becomes an attempt; nothing is raised."""
    begun = _Begun(id=uuid.uuid4(), started_at=datetime.now(UTC), prepared=prepared, pool=pool)
    request = Request(
        call=begun.id,
        number=tally.calls + 1,
        prompt=prepared.prompt or "",
        sampling=job.rules.format.sampling,
        seed=prepared.seed,
        timeout_s=job.rules.model.timeout_s,
        allowed=letters_for(len(job.item.choices)) if prepared.constrained else None,
        expects=expected(job.rules.format),
    )
    return _call(job, begun, request, provider, description)


def cannot_ask(prepared: Prepared) -> Asked:
    """What a call comes to that cannot be made at all."""
    begun = _Begun(id=uuid.uuid4(), started_at=datetime.now(UTC), prepared=prepared, pool=None)
    return _without_completion(begun, 0, ErrorKind.BUG, prepared.error or "there is no prompt")


def _call(job: ClaimedJob, begun: _Begun, request: Request, provider: Provider, description: Description) -> Asked:
    start = time.monotonic()
    try:
        completion = provider.complete(request)
    except ProviderError as error:
        return _without_completion(begun, _milliseconds_since(start), error.kind, str(error), error)
    except Exception as error:  # noqa: BLE001 - an SDK error that no table of signals knows yet
        fault = TransientError(f"unknown error {type(error).__name__}")
        return _without_completion(begun, _milliseconds_since(start), fault.kind, str(fault), fault)
    latency_ms = _milliseconds_since(start)
    try:
        return _with_completion(
            job, begun, latency_ms, completion, deployment_of(provider.endpoint, description, completion)
        )
    except Exception as error:  # noqa: BLE001 - what a server says may be of any type
        problem = f"the completion could not be taken up: {error!r}"
        return _without_completion(begun, latency_ms, ErrorKind.BUG, problem)


def deployment_of(endpoint: Endpoint, description: Description, completion: Completion) -> Deployment:
    """What exactly answered, by all that is known of it."""
    return Deployment(
        provider=endpoint.provider,
        model=_kept(completion.model_reported) or endpoint.model,
        endpoint=endpoint.label,
        server_version=_kept(completion.server_version) or _kept(description.server_version),
        digest=_kept(description.digest),
        quantisation=_kept(description.quantisation),
        context_length=_count(description.context_length),
        template_digest=_kept(description.template_digest),
    )


def _with_completion(
    job: ClaimedJob, begun: _Begun, latency_ms: int, completion: Completion, deployment: Deployment
) -> Asked:
    kept = storable(completion.text)
    if kept.text != completion.text:
        completion = replace(completion, text=kept.text, truncated_from=kept.cut_from)
    answer, fault = _read(job, completion)
    reading, version = asking.reading_of(job.rules.format)
    attempt = Attempt(
        id=begun.id,
        started_at=begun.started_at,
        latency_ms=latency_ms,
        prompt=begun.prepared.prompt,
        seed=begun.prepared.seed,
        pool=begun.pool,
        outcome="answered" if answer.valid else "invalid",
        completion=completion.text,
        completion_length=kept.cut_from or len(completion.text),
        thinking=_kept(completion.thinking),
        finish_reason=_kept(completion.finish_reason),
        tokens_in=_count(completion.tokens_in),
        tokens_out=_count(completion.tokens_out),
        tokens_cached=_count(completion.tokens_cached),
        logprobs=_finite(completion.logprobs),
        answer=answer.number,
        text=answer.text,
        tier=answer.tier,
        reason=answer.reason,
        reading=reading,
        reading_version=version,
        error_kind=ErrorKind.BUG if fault else None,
        error_message=fault,
    )
    reported = _kept(completion.model_reported)
    return Asked(attempt=attempt, verdict=Verdict(answer=answer), deployment=deployment, reported=reported)


def by_another(asked: Asked, reason: str) -> Asked:
    """The same call, when who answered must not: what it said is kept and counts as no answer."""
    attempt = replace(
        asked.attempt,
        outcome="no_completion",
        answer=None,
        text=None,
        tier=None,
        reason=None,
        reading=None,
        reading_version=None,
        error_kind=ErrorKind.MISCONFIGURED,
        error_message=storable(reason).text,
    )
    return replace(asked, attempt=attempt, verdict=Verdict(error=ErrorKind.MISCONFIGURED))


def _read(job: ClaimedJob, completion: Completion) -> tuple[Answer, str | None]:
    """The answer read; if reading itself fails, the completion is kept and the fault named beside it."""
    try:
        return asking.read(job.rules.format, completion, job.item, job.variant, earlier=job.earlier), None
    except Exception as error:  # noqa: BLE001 - paid work is kept even when our reading breaks on it
        invalid = Answer(choice=None, tier="bug", reason=InvalidReason.UNREADABLE)
        return invalid, f"reading failed: {error!r}"


def _without_completion(
    begun: _Begun, latency_ms: int, kind: ErrorKind, message: str, error: ProviderError | None = None
) -> Asked:
    attempt = Attempt(
        id=begun.id,
        started_at=begun.started_at,
        latency_ms=latency_ms,
        prompt=begun.prepared.prompt,
        seed=begun.prepared.seed,
        pool=begun.pool,
        outcome="refused" if isinstance(error, RefusedError) else "no_completion",
        error_kind=kind,
        error_message=storable(message).text,
    )
    return Asked(attempt=attempt, verdict=Verdict(error=kind), fault=error)


def _kept(said: object) -> str | None:
    """What a server says beside the completion, as a row can hold it; None if it is no text: nobody checks servers."""
    return storable(said).text if isinstance(said, str) else None


def _count(said: object) -> int | None:
    """A number of tokens, if it is one that a row can hold."""
    return said if isinstance(said, int) and 0 <= said < 2**31 else None


def _finite(logprobs: object) -> dict[str, float] | None:
    """Log-probabilities as JSON can hold them; None if there are none."""
    if not isinstance(logprobs, dict):
        return None
    finite = {
        storable(token).text: value
        for token, value in logprobs.items()
        if isinstance(token, str) and isinstance(value, float) and math.isfinite(value)
    }
    return finite or None


def without_details(attempt: Attempt) -> Attempt:
    """The attempt with nothing in it that a server said but the completion and what was read in it.

    For an attempt that could not be stored: the call was paid for and must be counted, or it is made for ever.
    """
    return replace(
        attempt,
        thinking=None,
        logprobs=None,
        finish_reason=None,
        tokens_in=None,
        tokens_out=None,
        tokens_cached=None,
        deployment=None,
        error_kind=ErrorKind.BUG,
        error_message="what came with the completion could not be stored",
    )


def _milliseconds_since(start: float) -> int:
    return round((time.monotonic() - start) * 1000)
