"""Bringing in answers that somebody else has recorded."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contract.database import postgres_errors
from contract.errors import UsageError
from contract.recorded import RecordedModel
from ops.cli.connect import connect
from ops.cli.fetching import Fetching
from ops.cli.names import DataPaths, Json, OneModel, StudyFile, data_paths
from ops.cli.terminal import err, print_json, visible

if TYPE_CHECKING:
    from producer.loaded_study import LoadedStudy
    from producer.recorded_import import Imported

SHOWN = 5


def import_(
    study: StudyFile,
    file: Annotated[Path, typer.Argument(help="The answers: CSV, TSV, JSON Lines or Parquet.", show_default=False)],
    model: OneModel = None,
    data: DataPaths = None,
    as_given: Annotated[
        bool,
        typer.Option("--answers-as-given", help="Where a row's answer is not what its completion says, it counts."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would come; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Bring recorded answers in as finished jobs of a model of the provider `recorded`, marked with their origin.

    The study file says what the file calls our fields and what its codes mean. A row that cannot be used is named and
    nothing is imported; importing the same file again changes nothing.

    \b
    bothways import study.yaml answers.csv --dry-run
    bothways import study.yaml answers.csv --model published
    """
    from producer.recorded_import import import_answers
    from producer.study_file import read_study

    loaded = read_study(study, data=data_paths(data), fetch=Fetching())
    chosen = _chosen(loaded, model)
    engine = connect().engine
    with postgres_errors(engine):
        done = import_answers(engine, loaded, chosen, file, as_given=as_given, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "file": str(file), **asdict(done)})
    for line in _lines(done, as_given=as_given, dry_run=dry_run):
        err.print(visible(line))


def _chosen(loaded: "LoadedStudy", name: str | None) -> RecordedModel:
    """The recorded model that is named, or the only one there is."""
    if loaded.study.steps:
        raise UsageError(f"{loaded.study.study} is a recipe: it makes texts and has no recorded answers")
    known = [model for model in loaded.study.models if isinstance(model, RecordedModel)]
    found = [model for model in known if name in (None, model.name)]
    if len(found) == 1:
        return found[0]
    if not known:
        raise UsageError(f"study {loaded.study.study} has no model of the provider recorded; add one to its models")
    names = ", ".join(model.name for model in known)
    raise UsageError(f"name one of the recorded models of {loaded.study.study} with --model: {names}")


def _lines(done: "Imported", *, as_given: bool, dry_run: bool) -> Iterator[str]:
    """What came of it, in words."""
    passed = f" ({done.of_others:,} of other models passed over)" if done.of_others else ""
    rows, jobs = (
        f"{count:,} {name}{'s' * (count != 1)}" for count, name in ((done.rows, "row"), (done.finished, "job"))
    )
    jobs += f" {'would be ' if dry_run else ''}finished"
    yield f"{done.model}: {rows}{passed}: {done.answered:,} answered, {done.invalid:,} invalid; {jobs}"
    if done.waiting:
        yield f"{done.waiting:,} jobs {'would be' if dry_run else 'are'} still without an answer"
    if done.for_annotator:
        yield f"{done.for_annotator:,} answers of open texts are left out: the study's annotator is to give them anew"
    if done.disagreements:
        counts = "what is given" if as_given else "what is read"
        yield f"{len(done.disagreements):,} rows give another answer than their completion: {counts} counts"
    for one in done.disagreements[:SHOWN]:
        yield f"  row {one.row}, item {one.item}: given {_shown(one.given)}, read {_shown(one.read)}"


def _shown(number: int | None) -> str:
    return "nothing" if number is None else str(number)
