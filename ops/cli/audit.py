"""Having a person judge some open answers, and how well the annotations agree with that."""

import csv
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contract.errors import InputError, UsageError
from ops.audit import Annotated as Answer
from ops.audit import draw, find
from ops.cli.connect import connect
from ops.cli.names import Json, StudyName, study_name
from ops.cli.needs import needing
from ops.cli.terminal import err, out, print_json, visible

if TYPE_CHECKING:
    from analysis.agreement import Agreement

COLUMNS = ("job", "item", "model", "variant", "question", "choices", "answer", "human")


def audit(
    study: StudyName,
    n: Annotated[int, typer.Option("-n", min=1, help="How many answers.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Which ones: the same number draws the same.")] = 0,
    out_file: Annotated[Path | None, typer.Option("--sheet", help="The file; STUDY-audit.csv if left out.")] = None,
    read: Annotated[Path | None, typer.Option("--read", help="A sheet that a person has filled in.")] = None,
    as_json: Json = False,
) -> None:
    """Write a random sheet of annotated open answers; read it back and say how well a person agrees with them.

    The sheet does not show what the annotation says, so that it leads nobody. In the column `human` goes the number of
    the choice that the answer gives, or 0 for none; rows that are left empty are counted and do not count. Categories
    are the groups of the choices where the data have any, else their numbers.

    \b
    bothways audit answer_format_bbq -n 100 --seed 1
    bothways audit answer_format_bbq --read answer_format_bbq-audit.csv
    """
    name = study_name(study)
    engine = connect().engine
    if read is not None:
        _tell(list(_judged(read, find(engine, name, [job for job, *_ in _rows(read)]))), as_json=as_json)
        return
    answers = draw(engine, name, n=n, seed=seed)
    if not answers:
        raise UsageError(f"{name} has no annotated open answers yet")
    path = out_file or Path(f"{name.replace(':', '-')}-audit.csv")
    _write(path, answers)
    if as_json:
        print_json({"sheet": str(path), "answers": [asdict(answer) for answer in answers]})
    err.print(visible(f"{path}: {len(answers):,} answers; fill in the column human, then --read {path}"))


def _write(path: Path, answers: list[Answer]) -> None:
    """Never over a sheet that is there: somebody may have filled it in."""
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for one in answers:
                choices = "\n".join(f"{number}. {choice}" for number, choice in enumerate(one.choices, start=1))
                shown = (one.item, one.model, one.variant, one.question, choices, one.said)
                writer.writerow([one.job, *map(_cell, shown), ""])
    except FileExistsError:
        raise UsageError(f"{path} is there already; name another file with --sheet") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text


def _rows(path: Path) -> Iterator[tuple[int, int, str, str | None]]:
    """The job, the number of its row, what the person wrote, and the item where the sheet still names it."""
    from producer.datasets.layouts import read_table

    for row in read_table(path):
        job = row.text("job")
        if not job.isdecimal():
            raise row.refuse("job", f"must be the number that the sheet was written with, not {job!r:.40}")
        if "human" not in row.values:
            raise row.refuse("human", f"is missing; {row.has}")
        yield int(job), row.number, (row.values["human"] or "").strip(), row.optional_text("item")


def _judged(path: Path, known: dict[int, Answer]) -> Iterator[tuple[str, str, str] | None]:
    """The model, the annotation's category and the person's; None for a row that says nothing."""
    seen: dict[int, int] = {}
    for job, number, human, item in _rows(path):
        answer = known.get(job)
        if answer is None:
            raise InputError(path, f"the study has no annotated answer {job}; was the sheet drawn from it?", row=number)
        if item is not None and item not in (answer.item, _cell(answer.item)):
            problem = f"job {job} is of item {answer.item}, not {item!r:.80}; keep each row as it was written"
            raise InputError(path, problem, row=number, field="item")
        if seen.setdefault(job, number) != number:
            raise InputError(path, f"row {seen[job]} judges job {job} already; keep one", row=number, field="job")
        if not human:
            yield None
            continue
        if not (human.isdecimal() and int(human) <= len(answer.choices)):
            most = len(answer.choices)
            problem = f"must be the number of a choice, 1 to {most}, or 0 for none, not {human!r:.40}"
            raise InputError(path, problem, row=number, field="human")
        choice = int(human) - 1 if int(human) else None
        yield answer.model, answer.category(answer.annotation), answer.category(choice)


def _tell(judged: list[tuple[str, str, str] | None], *, as_json: bool) -> None:
    with needing("report"):
        from analysis.agreement import agreement
    said = [one for one in judged if one is not None]
    models = dict.fromkeys(model for model, _, _ in said)
    found = {"all": agreement([(ours, theirs) for _, ours, theirs in said])}
    found |= {name: agreement([(ours, theirs) for model, ours, theirs in said if model == name]) for name in models}
    empty = len(judged) - len(said)
    if as_json:
        print_json({"empty": empty, "agreement": {name: asdict(each) for name, each in found.items()}})
        return
    for name, each in found.items():
        out.print(visible(f"{name}: {_figures(each)}"))
    if empty:
        err.print(f"{empty:,} rows are left empty and do not count")


def _figures(each: "Agreement") -> str:
    if each.share is None or each.low is None or each.high is None:
        return "nothing judged yet"
    kappa = "–" if each.kappa is None else f"{each.kappa:.3f}"
    return f"{each.agreed:,} of {each.n:,} agree, {each.share:.3f} [{each.low:.3f}, {each.high:.3f}], kappa {kappa}"
