"""A person's look at annotated answers: a sheet that is drawn at random, filled in, and read back."""

import csv
import json
from pathlib import Path

import pytest

from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import write_study
from tests.integration.test_formats import ANNOTATOR, OPEN, three_choices
from tests.integration.test_recipes import ask_all
from worker.providers.base import Request

stage = end_to_end.stage


def answering(request: Request) -> str:
    """An open answer that a spreadsheet would take for a formula, and its annotation: always the second choice."""
    return "=1+1, or the woman" if request.expects == "text" else "The woman"


@pytest.fixture
def asked(stage: Stage) -> Stage:
    """A study of six questions, asked openly and annotated."""
    dataset = {"name": "gender", "loader": "items", "path": "items.jsonl"}
    changes = {"study": "forms", "datasets": [dataset], "formats": [OPEN], "annotator": ANNOTATOR}
    enqueue(stage.engine, read_study(write_study(stage.folder / "forms", items=three_choices(6), **changes)))
    ask_all(stage.engine, answering)
    return stage


def audit(stage: Stage, *words: str) -> Running:
    """`bothways audit forms`, ended."""
    done = stage.start("audit", "forms", *words)
    done.end()
    return done


def fill(sheet: Path, *human: str) -> None:
    """Fill in the last column, row by row."""
    with sheet.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *([*row[:-1], said] for row, said in zip(rows, human, strict=True))])


def test_a_filled_in_sheet_says_how_well_a_person_agrees_with_the_annotations(asked: Stage) -> None:
    sheet = asked.folder / "sheet.csv"
    drawn = audit(asked, "-n", "5", "--seed", "1", "--sheet", str(sheet))
    assert drawn.process.returncode == 0, drawn.said
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert {row["answer"] for row in rows} == {"'=1+1, or the woman"}
    assert {row["choices"] for row in rows} == {"1. The man\n2. The woman\n3. Cannot be told"}
    assert "annotation" not in rows[0]
    again = audit(asked, "-n", "5", "--seed", "1", "--sheet", str(asked.folder / "again.csv"))
    assert again.process.returncode == 0
    assert (asked.folder / "again.csv").read_bytes() == sheet.read_bytes()

    fill(sheet, "2", "2", "1", "0", "")
    read = audit(asked, "--read", str(sheet), "--json")

    told = json.loads(read.out.read_text(encoding="utf-8"))
    assert told["empty"] == 1
    assert set(told["agreement"]) == {"all", "sim"}
    assert (told["agreement"]["all"]["n"], told["agreement"]["all"]["agreed"]) == (4, 2)


def test_a_sheet_is_never_written_over_and_a_wrong_one_is_refused_with_its_row(asked: Stage) -> None:
    sheet = asked.folder / "sheet.csv"
    assert audit(asked, "-n", "2", "--sheet", str(sheet)).process.returncode == 0
    assert "is there already" in audit(asked, "-n", "2", "--sheet", str(sheet)).said

    fill(sheet, "2", "4")
    refused = audit(asked, "--read", str(sheet))

    assert refused.process.returncode == 2
    assert "row 2: human: must be the number of a choice, 1 to 3, or 0 for none, not '4'" in refused.said

    fill(sheet, "2", "00")
    with sheet.open(encoding="utf-8", newline="") as file:
        header, first, second = csv.reader(file)
    for rows, said in (
        ([first, first], "row 2: job: row 1 judges job"),
        ([first, [second[0], "another", *second[2:]]], "row 2: item: job"),
    ):
        with (asked.folder / "spoilt.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        assert said in audit(asked, "--read", str(asked.folder / "spoilt.csv")).said
    with (asked.folder / "semicolons.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([header, first, second])
    read = audit(asked, "--read", str(asked.folder / "semicolons.csv"), "--json")
    told = json.loads(read.out.read_text(encoding="utf-8"))["agreement"]["all"]
    assert (told["n"], told["agreed"]) == (2, 1)  # 00 is none, as 0 is
