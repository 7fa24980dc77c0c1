"""Commands about studies: run one, look at it, measure it."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ops.cli.connect import Connected, connect
from ops.cli.follow import Pace, render, stuck_reasons
from ops.cli.terminal import err, out, text_width
from ops.progress import Progress, read_progress, study_names

StudyFile = Annotated[Path, typer.Argument(help="The study file (YAML).", show_default=False)]
StudyName = Annotated[str, typer.Argument(help="A study's name, or its file.", show_default=False)]


def run(
    study: StudyFile,
    wait: Annotated[bool, typer.Option("--wait", help="Follow to the end; dispatch if nobody else does.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items of each dataset.")] = None,
) -> None:
    """Plan a study and enqueue what is new; running it again adds nothing.

    bothways run studies/demo.yaml --wait
    """
    from ops.cli.study import enqueue_study, follow_study
    from producer.study_file import read_study

    loaded = read_study(study, limit=limit)
    connected = connect()
    enqueue_study(connected, loaded)
    if wait:
        raise typer.Exit(follow_study(connected, loaded.study.study))
    for reason in stuck_reasons(read_progress(connected.engine, loaded.study.study)):
        err.print(f"nothing moves yet: {reason}; start `bothways up` or `bothways worker`", markup=False)


def status(
    study: Annotated[
        str | None, typer.Argument(help="A study's name or file; all without it.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show how far a study is: by model and dataset, what failed and why, what waits and for what."""
    connected = connect()
    names = [_study_name(study)] if study else study_names(connected.engine)
    found = [read_progress(connected.engine, name) for name in names]
    if as_json:
        out.print_json(json.dumps([_progress_json(progress) for progress in found]))
        return
    if not found:
        err.print("no study yet: bothways run STUDY.yaml")
    for progress in found:
        out.print(render(progress, Pace()))
        for fault in progress.faults:
            out.print(f"  failed: {fault.jobs:,} x {fault.kind}: {fault.message or ''}", markup=False)
        if progress.unplanned:
            out.print(f"  {progress.unplanned:,} jobs are no longer planned; they are kept and count nowhere")


def report(
    study: StudyName,
    out_dir: Annotated[Path | None, typer.Option("--out", help="The folder; report/STUDY if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure what is there: accuracy by slot, PF, PC with intervals and counts, as text, CSV and JSON."""
    name = _study_name(study)
    write_study_report(connect(), name, out_dir or Path("report") / name, as_json=as_json)


def write_study_report(connected: Connected, study: str, out_dir: Path, *, as_json: bool = False) -> None:
    from analysis.load import load_results
    from analysis.report import write_report

    progress = read_progress(connected.engine, study)
    results = load_results(connected.database_url, study)
    origin = {
        "name": progress.study,
        "revision": progress.revision,
        "planned": progress.planned,
        "finished": progress.finished,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    files = write_report(results, out_dir, study=origin, width=text_width())
    if as_json:
        out.print_json((out_dir / "report.json").read_text(encoding="utf-8"))
    else:
        out.print(files.text, markup=False)
    err.print(f"report: {', '.join(str(path) for path in files.paths)}", markup=False)


def _study_name(study: str) -> str:
    """The name behind what a person typed: a name as it is, a study file by what it says."""
    if not study.endswith((".yaml", ".yml")):
        return study
    from producer.study_file import study_name

    return study_name(Path(study))


def _progress_json(progress: Progress) -> dict[str, Any]:
    plain = asdict(progress)
    return plain | {"planned": progress.planned, "finished": progress.finished, "done": progress.done}
