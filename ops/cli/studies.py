"""Commands about studies: begin one, run it, look at it, measure it."""

import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from contract.errors import UsageError
from ops.cli.connect import Connected, connect
from ops.cli.fetching import Fetching
from ops.cli.follow import fault_lines, stuck_reasons, watch
from ops.cli.format_files import write_formats
from ops.cli.names import DataPaths, Json, OneModel, StudyFile, StudyName, data_paths, study_name
from ops.cli.needs import needing
from ops.cli.terminal import Exit, err, out, print_json, text_width, visible
from ops.cli.view import Pace, render
from ops.progress import Progress, read_measuring_spec, read_progress, study_names
from ops.readings import readings_in_use

WORKERS_SEE_WITHIN_S = 4.0
SCORED = (
    "pairs are made of closed answers to questions with two choices, the scores of BBQ of items with groups (loader "
    "bbq), distances of questions with human shares (`human` of loader opinion_qa, or global_opinion_qa)"
)
PROBE = ".bothways-writes-here"


def init(
    folder: Annotated[Path, typer.Argument(help="Where to; made if it is not there.")] = Path(),
) -> None:
    """Write a commented study file and a three-row data file that run as they are.

    \b
    bothways init my-study
    bothways run my-study/study.yaml --wait
    """
    from producer.starter import write_starter

    for path in write_starter(folder):
        out.print(str(path))
    err.print(f"next: bothways up, and in another terminal: bothways run {folder / 'study.yaml'} --wait")


def run(
    study: StudyFile,
    wait: Annotated[bool, typer.Option("--wait", help="Follow to the end; dispatch if nobody else does.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items of each dataset.")] = None,
    data: DataPaths = None,
    wait_for: Annotated[
        float | None,
        typer.Option(
            "--wait-for",
            min=0,
            help="With --wait: seconds to wait for what rests; if left out, half an hour for a server that fails and "
            "without an end for a quota.",
        ),
    ] = None,
) -> None:
    """Plan a study and enqueue what is new; running it again adds nothing. Data that live at an address are fetched.

    \b
    bothways run studies/demo.yaml --wait
    bothways run studies/squad_it_low.yaml --limit 40 --wait
    bothways run studies/squad_it_low.yaml --limit 40 --data squad-it-low=SQuAD_it-test.json.gz --wait
    """
    from ops.cli.study import enqueue_study, follow_until_left
    from producer.study_file import read_study

    loaded = read_study(study, limit=limit, data=data_paths(data), fetch=Fetching())
    connected = connect()
    enqueue_study(connected, loaded)
    if wait:
        code = follow_until_left(connected, loaded.study.study, wait_for_s=wait_for)
        if loaded.study.steps and code is not Exit.INTERRUPTED:
            err.print(visible(f"it is a recipe: bothways build {study} writes its files"))
        raise typer.Exit(code)
    for reason in _still_stuck(connected, loaded.study.study):
        err.print(visible(f"nothing moves yet: {reason}{_advice(reason)}"))


def status(
    study: Annotated[
        str | None, typer.Argument(help="A study's name or file; all without it.", show_default=False)
    ] = None,
    watching: Annotated[bool, typer.Option("--watch", help="Go on showing it until it is done.")] = False,
    as_json: Json = False,
) -> None:
    """Show how far a study is: by model and dataset, what failed and why, what waits and for what.

    \b
    bothways status demo --watch
    bothways status --json
    """
    if watching and as_json:
        raise UsageError("--watch is for people and --json for programs; give one of them")
    connected = connect()
    names = [study_name(study)] if study else study_names(connected.engine)
    if watching and names:
        watch(connected.engine, names)
        return
    found = [read_progress(connected.engine, name) for name in names]
    if as_json:
        print_json([_progress_json(progress) for progress in found])
        return
    if not found:
        err.print("no study yet: bothways run STUDY.yaml")
    for progress in found:
        _print_status(progress)


def show(
    study: StudyName,
    item: Annotated[str, typer.Argument(help="The item's id in its data file.", show_default=False)],
    model: OneModel = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what is no longer planned.")] = False,
    as_json: Json = False,
) -> None:
    """Show one item whole: both orders side by side, prompts as sent, every attempt, how it was read and why.

    \b
    bothways show demo it-01
    bothways show demo it-01 --model SmolLM2-135M --json
    """
    from ops.cli.show import render_item
    from ops.inspection import read_item

    name = study_name(study)
    jobs = [job for job in read_item(connect().engine, name, item, model=model) if everything or job.planned]
    if not jobs:
        err.print("nothing of this item is planned any more; --all shows what was")
    if as_json:
        print_json([asdict(job) for job in jobs])
    else:
        out.print(render_item(jobs), width=text_width())


def report(
    study: StudyName,
    out_dir: Annotated[Path | None, typer.Option("--out", help="The folder; report/STUDY if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what is there: tables and figures with intervals and counts, as text, CSV, JSON, LaTeX, pictures, HTML.

    \b
    bothways report demo --out report/demo
    """
    name = study_name(study)
    write_study_report(connect(), name, out_dir or Path("report") / name, as_json=as_json)


def write_study_report(connected: Connected, study: str, out_dir: Path, *, as_json: bool = False) -> None:
    """Load, measure and write the report of `study`; its text goes to standard output."""
    with needing("report"):
        import polars as pl

        from analysis.load import load_results
        from analysis.report import write_report

    _must_be_writable(out_dir)
    spec = read_measuring_spec(connected.engine, study)
    progress = read_progress(connected.engine, study)
    results = load_results(connected.database_url, study)
    origin = {
        "name": progress.study,
        "revision": progress.revision,
        "planned": progress.planned,
        "finished": progress.finished,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    unfinished = None if progress.done else f"unfinished: {progress.finished:,} of {progress.planned:,} jobs"
    mixed = readings_in_use(connected.engine, study).note
    title_note = "; ".join(filter(None, (spec.title_note, unfinished, mixed))) or None
    formats = write_formats(connected.database_url, study, out_dir, title_note=title_note)
    parts = [one.part for one in formats]
    # Of more than two choices no pair is made: tables of such datasets would hold nothing but dashes.
    scored = pl.col("dataset").is_in([one.dataset for one in formats])
    results = results.filter(~scored | (pl.col("choices") == 2))
    files = write_report(results, out_dir, study=origin, width=text_width(), title_note=title_note, parts=parts)
    if as_json:
        print_json(files.data | ({"formats": {one.dataset: one.data for one in formats}} if formats else {}))
    else:
        texts = [one.part.text for one in formats]
        out.print("\n".join(texts if results.is_empty() and texts else [files.text, *texts]))
    if results.is_empty() and not formats:
        err.print(_unscored(progress))
    written = len(files.paths) + sum(len(one.paths) for one in formats)
    err.print(f"report: {written} files in {out_dir}; open {out_dir / 'index.html'}")


def _must_be_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PROBE).touch()
        (folder / PROBE).unlink()
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}; name another folder with --out") from None


def _unscored(progress: Progress) -> str:
    """Why there is nothing in a report, and what there is all the same."""
    counts = ", ".join(f"{progress.count(state):,} {state}" for state in ("answered", "invalid", "refused", "failed"))
    return (
        f"{progress.finished:,} of {progress.planned:,} jobs are finished ({counts}), and none can be scored: {SCORED}"
    )


def _still_stuck(connected: Connected, study: str) -> list[str]:
    """Why nothing moves once workers had time to see what is new: they look every second."""
    end = time.monotonic() + WORKERS_SEE_WITHIN_S
    while reasons := stuck_reasons(read_progress(connected.engine, study)):
        if time.monotonic() > end:
            return reasons
        time.sleep(0.5)
    return []


def _advice(reason: str) -> str:
    """What gets a study going that nobody is there for; a reason that knows more says so itself."""
    if reason.startswith("no dispatcher"):
        return "; start `bothways up` or `bothways dispatch`"
    return "; start `bothways up` or `bothways worker`" if re.fullmatch(r"no worker serves \S+", reason) else ""


def _print_status(progress: Progress) -> None:
    out.print(render(progress, Pace()))
    for line in fault_lines(progress):
        out.print(line)
    if progress.unplanned:
        out.print(f"  {progress.unplanned:,} jobs are no longer planned; they are kept and count nowhere")


def _progress_json(progress: Progress) -> dict[str, Any]:
    plain = asdict(progress)
    return plain | {"planned": progress.planned, "finished": progress.finished, "done": progress.done}
