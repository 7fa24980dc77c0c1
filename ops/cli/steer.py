"""Commands that steer a study: pause, resume, cancel, and ask again what did not end well."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from contract.errors import ErrorKind, UsageError
from ops.cli.connect import connect
from ops.cli.names import Datasets, Json, Models, OneModel, StudyName, listed, study_name
from ops.cli.terminal import err, out, print_json, visible
from producer.steering import RETRIABLE, Chosen, Selection, steer
from producer.steering import retry as retry_jobs

Outcomes = Annotated[
    str, typer.Option("--outcome", help=f"Which jobs, by outcome: any of {', '.join(RETRIABLE)}, with commas.")
]
ErrorKinds = Annotated[
    list[str] | None,
    typer.Option("--error-kind", help="Only jobs whose last call ended with this kind of error; may be repeated."),
]


def retry(
    study: StudyName,
    outcome: Outcomes = "failed",
    error_kind: ErrorKinds = None,
    model: Models = None,
    dataset: Datasets = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Ask again just what did not end well, in a new round; every attempt is kept.

    \b
    bothways retry demo --outcome failed --dry-run
    bothways retry demo --outcome invalid,refused --model SmolLM2-135M
    bothways retry demo --error-kind transient
    """
    selection = Selection(
        outcomes=_known("outcome", outcome.split(","), RETRIABLE),
        kinds=_known("error kind", error_kind, tuple(ErrorKind)) if error_kind else None,
        models=listed(model),
        datasets=listed(dataset),
    )
    chosen = retry_jobs(connect().engine, study_name(study), selection, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "chosen": [asdict(part) for part in chosen]})
        return
    for part in chosen:
        out.print(f"{part.jobs:>8,} {part.outcome}: {part.model} on {part.dataset}")
    err.print(_told(chosen, dry_run=dry_run))


def pause(study: StudyName, model: OneModel = None, as_json: Json = False) -> None:
    """Let nothing new be asked; calls in flight end and are stored.

    \b
    bothways pause demo
    bothways pause demo --model SmolLM2-135M
    """
    _steer(study, "paused", model, as_json=as_json)


def resume(
    study: StudyName,
    model: OneModel = None,
    accept_digest: Annotated[
        bool,
        typer.Option("--accept-digest", help="Let the other digest or version that answered do so from now on."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take up again what was paused, cancelled or stopped by a fault.

    \b
    bothways resume demo
    bothways resume demo --model llama --accept-digest
    """
    _steer(study, "active", model, accept_digest=accept_digest, as_json=as_json)


def cancel(study: StudyName, model: OneModel = None, as_json: Json = False) -> None:
    """End a study, or one model of it, before it is done: nothing more is asked, what is there is kept.

    \b
    bothways cancel demo
    """
    _steer(study, "cancelled", model, as_json=as_json)


def _steer(
    study: str,
    state: Literal["active", "paused", "cancelled"],
    model: str | None,
    *,
    accept_digest: bool = False,
    as_json: bool,
) -> None:
    name = study_name(study)
    steered = steer(connect().engine, name, state, model=model, accept_digest=accept_digest)
    if as_json:
        print_json({"study": name, "model": model, **asdict(steered)})
        return
    err.print(f"{name}{f', model {model},' if model else ''} is {state}")
    for digest in steered.accepted:
        err.print(visible(f"{digest} may answer from now on"))
    if accept_digest and not steered.accepted:
        err.print("no other digest or version has answered; there was nothing to accept")
    if state == "active" and model is None:
        for held in steered.still_held:
            err.print(f"model {held} still stands still: bothways resume {name} --model {held}")
    if state == "active" and steered.study_state != "active":
        err.print(f"the study itself is {steered.study_state}: bothways resume {name}")


def _known(what: str, values: list[str], known: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(value.strip() for value in values)
    for value in found:
        if value not in known:
            raise UsageError(f"no {what} {value!r}; there are: {', '.join(known)}")
    return found


def _told(chosen: list[Chosen], *, dry_run: bool) -> str:
    jobs = sum(part.jobs for part in chosen)
    if not jobs:
        return "no job matches; nothing to ask again"
    return f"{jobs:,} jobs would be asked again" if dry_run else f"{jobs:,} jobs go back to pending in a new round"
