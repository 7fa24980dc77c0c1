"""Making a dataset: a recipe asks a model for texts, and its files are written from what came."""

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from contract.errors import InputError
from contract.study import Study
from ops.cli.connect import Connected, connect
from ops.cli.fetching import Fetching
from ops.cli.names import Json
from ops.cli.plan import tell_plan
from ops.cli.recipes import find_recipe, questions_from, recipe_changes
from ops.cli.terminal import Exit, err, print_json, visible
from ops.made_files import LEFT_OUT, prepare_folder, write_made
from ops.made_texts import LeftOut, Made, read_made, rows_of
from ops.progress import read_progress
from ops.reparse import reparse
from producer.fetching.cache import sha256_of
from producer.loaded_study import LoadedStudy

SHOWN = 10
OUTCOMES = ("invalid", "refused", "failed")


def build(
    recipe: Annotated[
        str, typer.Argument(help="One that comes along (squad-it-2, opinion-qa-statements, bbq-statements), or a file.")
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", help="The questions: a file, an address, or the dataset's name.", show_default=False),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:MODEL", help="Who makes the texts, as ollama:gemma3:12b.")
    ] = None,
    pool: Annotated[list[str] | None, typer.Option(help="A pool that its calls go through; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items.")] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="The folder; data/STUDY if left out.")] = None,
    name: Annotated[str | None, typer.Option(help="The study's name; RECIPE-PROVIDER-MODEL if left out.")] = None,
    wait_for: Annotated[
        float | None, typer.Option("--wait-for", min=0, help="Seconds to wait for what rests, as in run.")
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Say what it asks and costs, ask nobody.")] = False,
    as_json: Json = False,
) -> None:
    """Make a dataset by a recipe: ask a model for texts, check what comes, write the files.

    It is a study like any other: it can be stopped and the same command goes on, status, show, pause and retry know it.
    What a check finds fault with is asked for again as the recipe says; what stays bad is left out of the files and
    listed beside them, and the command ends with 1.

    \b
    bothways build squad-it-2 --from SQuAD-it --model gemini:gemini-3-flash --pool gemini-flash
    bothways build squad-it-2 --from SQuAD_it-test.json.gz --model ollama:gemma3:12b --plan
    bothways build opinion-qa-statements --from questions.csv --model ollama:gemma3:12b
    """
    from ops.cli.study import enqueue_study, follow_until_left
    from producer.study_file import read_study

    path = find_recipe(recipe)
    data = questions_from(path, source)
    changes = recipe_changes(path, name, model, pool, other_questions=bool(data))
    fetch = None if plan_only else Fetching()
    loaded = read_study(path, limit=limit, data=data, changes=changes, may_lack_data=plan_only, fetch=fetch)
    if not loaded.study.steps:
        raise InputError(path, "is no recipe: it has no steps; run it with: bothways run", line=1)
    if plan_only:
        tell_plan(loaded, as_json=as_json)
        return
    study = loaded.study.study
    folder = out_dir or Path("data") / study.replace(":", "-")
    prepare_folder(folder, study, [*(output.file for output in loaded.study.writes), LEFT_OUT])
    connected = connect()
    enqueue_study(connected, loaded)
    _hold_against_checks(connected, study)
    code = follow_until_left(connected, study, wait_for_s=wait_for)
    if code in (Exit.DONE, Exit.SOME_FAILED):
        code = _write(connected, loaded, folder, as_json=as_json)
    raise typer.Exit(code)


def _hold_against_checks(connected: Connected, study: str) -> None:
    """Texts that are there are judged by the checks of now, which may be others than when they came."""
    changed = reparse(connected.engine, study).results
    if changed:
        err.print(f"{changed:,} texts that were there are judged otherwise by the checks of now")


def _write(connected: Connected, loaded: LoadedStudy, folder: Path, *, as_json: bool) -> Exit:
    """Write the files and say what is in them and what is not."""
    study = loaded.study.study
    made = read_made(connected.engine, study)
    files: dict[str, list[dict[str, Any]]] = {}
    left_out = list(made.left_out)
    for output in loaded.study.writes:
        files[output.file], twins = rows_of(output, made.items)
        left_out += twins
    files[LEFT_OUT] = [asdict(one) for one in left_out]
    write_made(folder, study, files, _origin(connected, loaded, made))
    told = {name: len(rows) for name, rows in files.items() if name != LEFT_OUT}
    if as_json:
        print_json({"study": study, "folder": str(folder), "rows": told, "left_out": files[LEFT_OUT]})
    else:
        _tell(folder, made, told, left_out, loaded.study)
    return Exit.SOME_FAILED if left_out else Exit.DONE


def _tell(folder: Path, made: Made, rows: dict[str, int], left_out: list[LeftOut], study: Study) -> None:
    statements = [output.file for output in study.writes if output.statements]
    for name, count in rows.items():
        unit = "statements for" if name in statements else "of"
        err.print(visible(f"{folder / name}: {count:,} {unit} {len(made.items):,} items"))
    for name in statements:
        err.print(visible(f"read {folder / name} and mend what is wrong; then name it in a study: statements: {name}"))
    blank = sum(not item.payload["choices"][0] for item in made.items)
    if blank:
        err.print(f"the right answer is blank as it is in the data: {blank:,} items")
    if not left_out:
        return
    err.print(visible(f"{len(left_out):,} texts are left out, each with its reason in {folder / LEFT_OUT}:"))
    for (where, why), times in Counter((one.step or one.file, one.why) for one in left_out).most_common(SHOWN):
        err.print(visible(f"  {times:,} x {where}: {why}"))
    again = ",".join(outcome for outcome in OUTCOMES if any(one.state == outcome for one in left_out))
    if again:
        retry = f"bothways retry {study.study} --outcome {again}"
        err.print(visible(f"to ask for them again: {retry}, then the same command"))


def _origin(connected: Connected, loaded: LoadedStudy, made: Made) -> dict[str, Any]:
    """What made the files, for who reads them later."""
    study = loaded.study
    progress = read_progress(connected.engine, study.study)
    source = loaded.files[study.datasets[0].name].data
    path = source.at_hand()
    return {
        "revision": progress.revision,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "questions": {"path": source.address.shown if source.address else str(path), "sha256": sha256_of(path)},
        "answered_by": made.answered_by,
        "prompts": {step.step: dict(loaded.prompts[step.prompt].bodies) for step in study.steps},
        "recipe": study.model_dump(mode="json", exclude_none=True),
    }
