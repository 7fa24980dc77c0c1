"""Answer formats side by side, as people ask for them."""

import json

import pytest

from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Stage
from tests.builders import write_study
from tests.integration.test_format_load import bbq_row, write_lines
from tests.integration.test_formats import ANNOTATOR, CLOSED, LIKERT, OPEN

stage = end_to_end.stage


@pytest.fixture
def asked(stage: Stage) -> Stage:
    """Six questions of BBQ in every format, answered by a model with a name of the paper's and one without."""
    folder = stage.folder / "formats"
    folder.mkdir()
    rows = [
        bbq_row(number, "ambig" if number % 2 else "disambig", 1 if number % 2 else 0) | {"question_index": str(number)}
        for number in range(6)
    ]
    said = [
        {"example_id": row["example_id"], "choice": row[slot], "statement": f"{row[slot]} was the secretary."}
        for row in rows
        for slot in ("ans0", "ans2")
    ]
    dataset = {
        "name": "bbq",
        "loader": "bbq",
        "path": write_lines(folder / "bbq.jsonl", rows),
        "statements": write_lines(folder / "statements.jsonl", said),
    }
    models = [
        {"name": name, "provider": "simulated", "options": {"seed": seed}}
        for seed, name in enumerate(("Mistral-7B", "newer"), start=1)
    ]
    study = write_study(
        folder, study="formats", models=models, datasets=[dataset], formats=[CLOSED, LIKERT, OPEN], annotator=ANNOTATOR
    )
    stage.start_worker()
    stage.run(study)
    return stage


def test_a_report_sets_formats_side_by_side_and_they_stand_beside_the_paper_s(asked: Stage) -> None:
    out = asked.folder / "report"
    done = asked.start("report", "formats", "--out", str(out), "--json")
    assert done.end() == 0
    told = json.loads(done.out.read_text(encoding="utf-8"))

    assert set(told["formats"]) == {"bbq"}
    written = {path.name for path in (out / "formats" / "bbq").iterdir()}
    assert {"formats.txt", "formats.csv", "formats.tex", "heat-bbq-closed.png", "heat-bbq-likert.svg"} <= written
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "Answer formats: bbq" in page
    assert page.count("<svg") == 3  # a map for each format, and nothing of pairs that there are not

    beside = asked.start("compare", "formats", "--with", "answer-format", "--as", "newer=Gemma-3-12B", "--json")
    assert beside.end() == 0
    cells = json.loads(beside.out.read_text(encoding="utf-8"))
    ours = [cell for cell in cells if cell["measured_as"] is not None]
    assert {(cell["model"], cell["measured_as"]) for cell in ours} == {
        ("Mistral-7B", "Mistral-7B"),
        ("Gemma-3-12B", "newer"),
    }
    closed = [cell["n"] for cell in ours if (cell["dataset"], cell["figure"]) == ("BBQ, combined", "s_AMB, closed")]
    assert closed == [18, 18]  # three ambiguous questions in six orders


def test_two_models_cannot_stand_for_one_of_the_paper_s(asked: Stage) -> None:
    done = asked.start("compare", "formats", "--with", "answer-format", "--as", "newer=Mistral-7B")

    assert done.end() == 2
    assert "both stand for Mistral-7B: choose one" in done.said
