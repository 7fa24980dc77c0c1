"""Reading a study's stored completions again."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from contract.errors import UsageError
from contract.reading import known_reading
from ops.cli.connect import connect
from ops.cli.names import Json, StudyName, study_name
from ops.cli.terminal import err, out, print_json, visible
from ops.progress import read_measuring_spec
from ops.readings import readings_in_use
from ops.reparse import Reparsed, Reread
from ops.reparse import reparse as read_again


def reparse(
    study: StudyName,
    reading: Annotated[
        str | None, typer.Option(help="The rules to read by; those of the study file if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Read every stored completion again, without asking anybody, and say what changed, by condition.

    A reading that is given becomes the study's own, so that answers to come are read alike: put it into the study file,
    or the next run sets back what is there.

    \b
    bothways reparse demo --dry-run
    bothways reparse demo --reading first-letter
    """
    name = study_name(study)
    connected = connect()
    try:
        chosen = None if reading is None else known_reading(reading)
    except ValueError as error:
        raise UsageError(f"--reading {error}; not {reading!r}") from None
    if chosen is not None:
        read_measuring_spec(connected.engine, name)
    done = read_again(connected.engine, name, reading=chosen, dry_run=dry_run)
    if as_json:
        print_json(_json(done, dry_run=dry_run))
        return
    for line in _lines(done):
        out.print(visible(line))
    err.print(_told(done, dry_run=dry_run))
    otherwise = 0 if dry_run else readings_in_use(connected.engine, name).otherwise
    if otherwise:
        err.print(f"{otherwise:,} completions came meanwhile and are read by other rules: run this again")


def _lines(done: Reparsed) -> Iterator[str]:
    for condition in done.conditions:
        if not condition.moves:
            continue
        moved = sum(condition.moves.values())
        yield f"{_name(condition)}: {moved:,} of {condition.read:,} are read otherwise"
        for move, times in condition.moves.most_common():
            before, after = move
            yield f"  {times:,} x {before} -> {after}"
            for example in condition.examples[move]:
                yield f"      {example.source_id}: {example.completion!r}"


def _name(condition: Reread) -> str:
    kind = "step" if condition.variant.step else "order"
    return f"{condition.model} on {condition.dataset}, {kind} {condition.variant.label}"


def _told(done: Reparsed, *, dry_run: bool) -> str:
    read = sum(condition.read for condition in done.conditions)
    moved = sum(sum(condition.moves.values()) for condition in done.conditions)
    if dry_run:
        return f"{read:,} completions, {moved:,} would be read otherwise"
    return f"{read:,} completions, {moved:,} are read otherwise; {done.results:,} jobs have another result"


def _json(done: Reparsed, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "results": done.results,
        "conditions": [
            {
                "model": condition.model,
                "dataset": condition.dataset,
                "variant": condition.variant.label,
                "read": condition.read,
                "moves": [
                    {
                        "before": before,
                        "after": after,
                        "attempts": times,
                        "examples": [asdict(example) for example in condition.examples[before, after]],
                    }
                    for (before, after), times in condition.moves.most_common()
                ],
            }
            for condition in done.conditions
        ],
    }
