"""What was measured beside what a paper prints."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from contract.errors import UsageError
from ops.cli.connect import Connected, connect
from ops.cli.names import Json, StudyName, study_name
from ops.cli.needs import needing
from ops.cli.terminal import err, out, print_json, text_width, visible
from ops.progress import read_measuring_spec, read_progress

if TYPE_CHECKING:
    from analysis.comparison import Compared

DASH = "–"


def compare(
    study: StudyName,
    paper: Annotated[str, typer.Option("--with", help="Which paper: positional-bias or answer-format.")],
    as_: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="MODEL=PRINTED", help="A model of the study stands for one of the paper's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Put a paper's table beside what was measured, figure by figure, with intervals.

    Datasets and models are matched by their names; --as lets another model stand for a printed one. First answers are
    compared. Cells of the paper that were not measured are counted; --json has them too.

    \b
    bothways compare positional_bias --with positional-bias --as Gemini-first=Gemini-1.5
    bothways compare answer_format_bbq --with answer-format
    """
    with needing("report"):
        from analysis.format_comparison import PAPER
        from analysis.published import papers

    name = study_name(study)
    known = (*papers(), PAPER)
    if paper not in known:
        raise UsageError(f"no paper {paper!r}; known: {', '.join(known)}")
    connected = connect()
    read_measuring_spec(connected.engine, name)
    progress = read_progress(connected.engine, name)
    beside = _formats(connected, name, as_) if paper == PAPER else _positions(connected, name, paper, as_)
    compared = beside.compared
    if as_json:
        print_json([asdict(each) | {"difference": each.difference, "inside": each.inside} for each in compared])
        return
    if not any(each.measured_as for each in compared):
        theirs = ", ".join(dict.fromkeys(each.model for each in compared))
        err.print(visible(f"nothing of this paper is measured in {name}; --as lets a model stand for one of: {theirs}"))
        return
    out.print(_table(compared), width=text_width())
    for line in [*_notes(compared), *beside.notes]:
        out.print(visible(line))
    if not progress.done:
        err.print(f"unfinished: {progress.finished:,} of {progress.planned:,} jobs")


@dataclass(frozen=True, kw_only=True)
class _Beside:
    """Printed and measured figures, and what is to be said of that paper's alone."""

    compared: list["Compared"]
    notes: list[str]


def _positions(connected: Connected, study: str, paper: str, as_: list[str] | None) -> _Beside:
    from analysis import tables
    from analysis.comparison import compare as beside
    from analysis.load import load_results
    from analysis.published import printed

    rows = printed(paper)
    report = tables.build(load_results(connected.database_url, study))
    names = _stands_for(as_, {row.model for row in report.rows}, {row.model for row in rows})
    compared = beside(report, rows, names)
    used = {(each.dataset, each.measured_as) for each in compared}
    left = sorted({f"{row.model} on {row.dataset}" for row in report.rows if (row.dataset, row.model) not in used})
    notes = [
        (
            "invalid: share of all jobs, refused ones too. PF (implied): the paper prints none; what its accuracy and "
            "invalid answers imply, + second slot, - first."
        )
    ]
    return _Beside(compared=compared, notes=[*notes, *_not_in_paper(left)])


def _formats(connected: Connected, study: str, as_: list[str] | None) -> _Beside:
    from analysis.format_comparison import compare_formats, printed_models
    from analysis.format_load import load_formats, notes_of, scores_of
    from analysis.pairing import View

    found = load_formats(connected.database_url, study, View.FIRST)
    scored = [scores_of(one) for one in found]
    biases = [row for bias, _ in scored for row in bias]
    distances = [row for _, opinions in scored for row in opinions]
    measured = {row.model for row in biases} | {row.model for row in distances}
    names = _stands_for(as_, measured, set(printed_models()))
    try:
        compared = compare_formats(biases, distances, names)
    except ValueError as error:
        raise UsageError(f"--as: {error}") from None
    left = sorted(measured - {each.measured_as for each in compared})
    return _Beside(compared=compared, notes=[*notes_of(found), *_not_in_paper(left)])


def _not_in_paper(left: list[str]) -> list[str]:
    return [f"measured and not in the paper: {', '.join(left)}"] if left else []


def _stands_for(given: list[str] | None, measured: set[str], printed: set[str]) -> dict[str, str]:
    names = {}
    for entry in given or ():
        model, separator, stands_for = entry.partition("=")
        if not separator:
            raise UsageError(f"--as takes MODEL=PRINTED, not {entry!r}")
        if model not in measured:
            raise UsageError(f"--as {entry}: the study has no model {model!r}; it has: {', '.join(sorted(measured))}")
        if stands_for not in printed:
            raise UsageError(f"--as {entry}: the paper has no {stands_for!r}; it has: {', '.join(sorted(printed))}")
        names[model] = stands_for
    return names


def _table(compared: list["Compared"]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("dataset", "model"):
        table.add_column(heading, overflow="fold")
    table.add_column("figure", no_wrap=True)
    for heading in ("printed", "measured", "difference", "n"):
        table.add_column(heading, justify="right", no_wrap=True)
    last: tuple[str, str] | None = None
    for each in (one for one in compared if one.measured_as is not None):
        cell = (each.dataset, each.model)
        opens = cell != last
        model = each.model + (f" ({each.measured_as})" if each.measured_as != each.model else "")
        names = (each.dataset, visible(model)) if opens else ("", "")
        table.add_row(*map(Text, (*names, each.figure, f"{each.printed:.3f}", *_measured(each))))
        last = cell
    return table


def _measured(each: "Compared") -> tuple[str, str, str]:
    if each.measured is None or each.difference is None:
        return DASH, DASH, DASH
    interval = "" if each.low is None or each.high is None else f" [{each.low:.3f}, {each.high:.3f}]"
    mark = " *" if each.inside is False else ""
    difference = round(each.difference, 3) + 0.0  # no minus before a nought
    return f"{each.measured:.3f}{interval}", f"{difference:+.3f}{mark}", f"{each.n:,}"


def _notes(compared: list["Compared"]) -> list[str]:
    outside = sum(each.inside is False for each in compared)
    judged = sum(each.inside is not None for each in compared)
    lines = [f"* the printed figure lies outside the interval of the measured one: {outside} of {judged}"]
    missing = {(each.dataset, each.model) for each in compared if each.measured_as is None}
    if missing:
        cells = len({(each.dataset, each.model) for each in compared})
        lines.append(f"not measured, and not shown: {len(missing)} of the paper's {cells} pairs of dataset and model")
    return lines
