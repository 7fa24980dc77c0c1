"""One call of one job, from the rendered prompt to the attempt as it will be stored. No SQL, no Celery."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.errors import ErrorKind
from contract.formats import closed
from contract.reading import STRICT, STRICT_VERSION
from contract.storable import storable
from worker.providers.base import Provider, ProviderError, RefusedError, Request, ThrottledError
from worker.records import Attempt, ClaimedJob, Deployment
from worker.retry import Tally, Verdict


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of one call: the attempt to store, the verdict to decide on, and who answered (None if nobody did)."""

    attempt: Attempt
    verdict: Verdict
    deployment: Deployment | None = None


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A call as far as it is known before it is made."""

    id: uuid.UUID
    started_at: datetime
    seed: int
    prompt: str | None = None


def ask_once(job: ClaimedJob, tally: Tally, open_provider: Callable[[], Provider]) -> Asked:
    """Render, call the provider once, read. Whatever happens becomes an attempt; nothing is raised."""
    call, started_at, seed = uuid.uuid4(), datetime.now(UTC), job.seed(tally.invalid)
    try:
        prompt = closed.render(job.item, job.variant, job.rules.prompt)
    except Exception as error:  # noqa: BLE001 - a fault of ours must end this job, not its bundle
        begun = _Begun(id=call, started_at=started_at, seed=seed)
        return _without_completion(begun, 0, ErrorKind.BUG, f"rendering failed: {error!r}")
    begun = _Begun(id=call, started_at=started_at, seed=seed, prompt=prompt)
    request = Request(
        call=call,
        number=tally.calls + 1,
        prompt=prompt,
        sampling=job.rules.format.sampling,
        seed=seed,
        timeout_s=job.rules.model.timeout_s,
    )
    return _call(job, begun, request, open_provider)


def _call(job: ClaimedJob, begun: _Begun, request: Request, open_provider: Callable[[], Provider]) -> Asked:
    start = time.monotonic()
    try:
        provider = open_provider()
        completion = provider.complete(request)
    except ProviderError as error:
        return _without_completion(begun, _milliseconds_since(start), error.kind, str(error), error)
    except Exception as error:  # noqa: BLE001 - an SDK error that no table of signals knows yet
        problem = f"unknown error {type(error).__name__}"
        return _without_completion(begun, _milliseconds_since(start), ErrorKind.TRANSIENT, problem)
    latency_ms = _milliseconds_since(start)
    try:
        return _with_completion(job, begun, latency_ms, completion, provider)
    except Exception as error:  # noqa: BLE001 - what a server says may be of any type
        problem = f"the completion could not be taken up: {error!r}"
        return _without_completion(begun, latency_ms, ErrorKind.BUG, problem)


def _with_completion(
    job: ClaimedJob, begun: _Begun, latency_ms: int, completion: Completion, provider: Provider
) -> Asked:
    kept = storable(completion.text)
    if kept.text != completion.text:
        completion = replace(completion, text=kept.text, truncated_from=kept.cut_from)
    answer, fault = _read(job, completion)
    attempt = Attempt(
        id=begun.id,
        started_at=begun.started_at,
        latency_ms=latency_ms,
        prompt=begun.prompt,
        seed=begun.seed,
        outcome="answered" if answer.valid else "invalid",
        completion=completion.text,
        completion_length=kept.cut_from or len(completion.text),
        thinking=_kept(completion.thinking),
        finish_reason=_kept(completion.finish_reason),
        tokens_in=_count(completion.tokens_in),
        tokens_out=_count(completion.tokens_out),
        tokens_cached=_count(completion.tokens_cached),
        answer=answer.choice,
        tier=answer.tier,
        reason=answer.reason,
        reading=STRICT,
        reading_version=STRICT_VERSION,
        error_kind=ErrorKind.BUG if fault else None,
        error_message=fault,
    )
    endpoint = provider.endpoint
    deployment = Deployment(
        provider=endpoint.provider,
        model=_kept(completion.model_reported) or endpoint.model,
        endpoint=endpoint.label,
        server_version=_kept(completion.server_version),
    )
    return Asked(attempt=attempt, verdict=Verdict(answer=answer), deployment=deployment)


def _read(job: ClaimedJob, completion: Completion) -> tuple[Answer, str | None]:
    """The answer read; if reading itself fails, the completion is kept and the fault named beside it."""
    try:
        return closed.read(completion, job.item, job.variant), None
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
        prompt=begun.prompt,
        seed=begun.seed,
        outcome="refused" if isinstance(error, RefusedError) else "no_completion",
        error_kind=kind,
        error_message=storable(message).text,
    )
    wait_s = error.wait_s if isinstance(error, ThrottledError) else None
    return Asked(attempt=attempt, verdict=Verdict(error=kind, wait_s=wait_s))


def _kept(said: object) -> str | None:
    """What a server says beside the completion, as a row can hold it; None if it is no text: nobody checks servers."""
    return storable(said).text if isinstance(said, str) else None


def _count(said: object) -> int | None:
    """A number of tokens, if it is one that a row can hold."""
    return said if isinstance(said, int) and 0 <= said < 2**31 else None


def without_details(attempt: Attempt) -> Attempt:
    """The attempt with nothing in it that a server said but the completion and what was read in it.

    For an attempt that could not be stored: the call was paid for and must be counted, or it is made for ever.
    """
    return replace(
        attempt,
        thinking=None,
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
