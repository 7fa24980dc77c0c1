"""How one item looks: both orders side by side, from the prompt as sent to what was read and why."""

import math
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from contract.orders import letters_for
from ops.cli.terminal import visible
from ops.inspection import AttemptSeen, JobSeen

SIDE_BY_SIDE = 2
SHOWN_OF_DIGEST = 12


def render_item(jobs: Iterable[JobSeen]) -> RenderableType:
    """The item's jobs by dataset, model and repeat, the orders of each next to each other."""
    blocks: list[RenderableType] = []
    for (dataset, model, repeat), group in groupby(jobs, key=lambda job: (job.dataset, job.model, job.repeat)):
        orders = list(group)
        first = orders[0]
        target = first.item["target"]
        right = (
            "no choice is right" if target is None else f"right: choice {target + 1}, {first.item['choices'][target]!r}"
        )
        heading = f"{first.source_id} on {dataset}, asked of {model}, repeat {repeat}; cluster {first.cluster}; {right}"
        table = Table.grid(expand=True, padding=(0, 1))
        for _ in range(SIDE_BY_SIDE):
            table.add_column(ratio=1, overflow="fold")
        for start in range(0, len(orders), SIDE_BY_SIDE):
            table.add_row(*(_order(job) for job in orders[start : start + SIDE_BY_SIDE]))
        blocks += [_text(heading, style="bold"), table]
    return Group(*blocks)


def _text(content: str, style: str = "") -> Text:
    """Text for a terminal, whoever wrote it."""
    return Text(visible(content), style=style)


def _order(job: JobSeen) -> RenderableType:
    parts: list[RenderableType] = []
    prompt: str | None = None
    for number, attempt in enumerate(job.attempts, start=1):
        if attempt.prompt is not None and attempt.prompt != prompt:
            prompt = attempt.prompt
            parts += [_text("prompt as sent", style="dim"), _text(prompt), _text("")]
        parts += [*_attempt(job, number, attempt), _text("")]
    if not job.attempts:
        parts.append(_text("not asked yet"))
    unplanned = "" if job.planned else ", no longer planned"
    return Panel(Group(*parts), title=_text(f"{_form(job)}: {_result(job)}{unplanned}"), title_align="left")


def _form(job: JobSeen) -> str:
    """How the job was asked, in words."""
    match job.format, job.stage:
        case "closed", _:
            return f"order {job.variant}"
        case "likert", _:
            return f"scale {job.variant}, statement of choice {job.part}"
        case _, "annotate":
            return f"annotation of {job.variant}"
        case _, "generate":
            return f"step {job.variant}" + (f", choice {job.part}" if job.part else "")
        case _:
            return f"open, {job.variant}"


def _result(job: JobSeen) -> str:
    """The job's state, with the text, the rating or the choice that was read."""
    if job.text is not None:
        return f"{job.state}, {job.text!r}"
    if job.answer is None:
        return job.state
    if job.format == "likert":
        return f"{job.state}, {job.answer}"
    letter = f"{letters_for(len(job.order))[job.order.index(job.answer)]} = " if job.order else ""
    return f"{job.state}, {letter}choice {job.answer + 1}, {job.item['choices'][job.answer]!r}"


def _attempt(job: JobSeen, number: int, attempt: AttemptSeen) -> list[Text]:
    counted = " (counted)" if attempt.id == job.counted_attempt else ""
    started = attempt.started_at.astimezone().isoformat(timespec="seconds")
    lines = [
        _text(f"attempt {number}, round {attempt.round}: {attempt.outcome}{counted}", style="dim"),
        *([_text(f"thinking: {attempt.thinking}")] if attempt.thinking else []),
        *([_text(_said(attempt))] if attempt.completion is not None else []),
        *([_text(f"{attempt.error_kind}: {attempt.error_message}")] if attempt.error_kind else []),
        _text(_how_read(job, attempt)),
        _text(f"{started}, {attempt.latency_ms} ms, seed {attempt.seed}, finish {attempt.finish_reason or 'unknown'}"),
        _text(_tokens(attempt)),
        *([_text(_candidates(attempt.logprobs))] if attempt.logprobs else []),
        _text(f"answered by {_deployment(attempt)}; worker {attempt.worker}"),
    ]
    return [line for line in lines if line.plain]


def _said(attempt: AttemptSeen) -> str:
    """The raw completion with every control character shown, and its true length where it was cut."""
    completion, length = attempt.completion or "", attempt.completion_length
    cut = f" (cut from {length:,} characters)" if length is not None and length > len(completion) else ""
    return f"{completion!r}{cut}"


def _how_read(job: JobSeen, attempt: AttemptSeen) -> str:
    if attempt.reading is None:
        return ""
    what = f"nothing: {attempt.reason}"
    if attempt.text is not None:
        what = f"the text {attempt.text!r}"
    elif attempt.answer is not None and job.order:
        what = f"letter {letters_for(len(job.order))[job.order.index(attempt.answer)]}"
    elif attempt.answer is not None:
        what = f"the rating {attempt.answer}" if job.format == "likert" else f"choice {attempt.answer + 1}"
    return f"read {what}, by tier {attempt.tier} of {attempt.reading} {attempt.reading_version}"


def _tokens(attempt: AttemptSeen) -> str:
    counts = {"in": attempt.tokens_in, "out": attempt.tokens_out, "from cache": attempt.tokens_cached}
    return "tokens: " + ", ".join(f"{'unknown' if count is None else count} {what}" for what, count in counts.items())


def _candidates(logprobs: dict[str, float]) -> str:
    """The first token's candidates by their probabilities, the likeliest first."""
    likeliest = sorted(logprobs.items(), key=lambda candidate: -candidate[1])
    return "first token: " + ", ".join(f"{token!r} {math.exp(logprob):.3f}" for token, logprob in likeliest)


def _deployment(attempt: AttemptSeen) -> str:
    known: dict[str, Any] = {
        "at": attempt.endpoint,
        "version": attempt.server_version,
        "digest": attempt.digest and attempt.digest[:SHOWN_OF_DIGEST],
        "quantised as": attempt.quantisation,
        "through pool": attempt.pool,
    }
    return " ".join([attempt.answered_by or "nobody", *(f"{name} {value}" for name, value in known.items() if value)])
