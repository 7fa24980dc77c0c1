"""Making a dataset, as people do it: a command that can be stopped, files that are whole, and a list of what is not."""

import json
import time
from pathlib import Path
from typing import Any

from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Running, Stage
from tests.builders import squad_document, write_recipe, write_study

stage = end_to_end.stage
ROOT = Path(__file__).parents[2]


def document(questions: int) -> dict[str, Any]:
    """A SQuAD document of so many questions about one paragraph."""
    whole = squad_document()
    asked = [
        {"id": f"m{number}", "question": f"What is number {number}?", "answers": [{"text": "Ada", "answer_start": 0}]}
        for number in range(questions)
    ]
    whole["data"][0]["paragraphs"] = [{"context": "Ada built the mill in May.", "qas": asked}]
    return whole


def slow(**options: object) -> list[dict[str, Any]]:
    """A simulated model with these options."""
    return [{"name": "sim", "provider": "simulated", "timeout_s": 5, "options": options}]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a data file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def build(stage: Stage, recipe: Path | str, *more: str) -> Running:
    """`bothways build`, ended."""
    running = stage.start("build", str(recipe), "--out", str(stage.folder / "made"), *more)
    running.end()
    return running


def test_a_build_that_is_killed_goes_on_and_asks_for_no_text_twice(stage: Stage) -> None:
    recipe = write_recipe(stage.folder / "recipe", document=document(20), models=slow(latency_s=0.05))
    stage.start_worker()
    killed = stage.start("build", str(recipe), "--out", str(stage.folder / "made"))
    end = time.monotonic() + end_to_end.LONGEST_S
    while stage.count("state = 'answered'") < 5:
        assert time.monotonic() < end
        time.sleep(0.05)
    killed.process.kill()
    killed.end()
    assert not (stage.folder / "made" / "two.jsonl").exists()

    done = build(stage, recipe)

    assert done.process.returncode == 0, done.said
    assert len(stage.calls()) == 40
    both = rows(stage.folder / "made" / "two.jsonl")
    assert [row["id"] for row in both] == [f"m{number}" for number in range(20)]
    assert all(row["wrong_answer"] != row["second_wrong_answer"] for row in both)
    assert (stage.folder / "made" / "left_out.jsonl").read_bytes() == b""
    origin = json.loads((stage.folder / "made" / "origin.json").read_text(encoding="utf-8"))
    assert origin["answered_by"][0]["texts"] == 40
    assert origin["files"]["two.jsonl"]["rows"] == 20


def test_what_is_no_good_is_left_out_and_listed_and_the_command_says_so(stage: Stage) -> None:
    recipe = write_recipe(stage.folder / "recipe", document=document(30), models=slow(invalid_rate=0.5, seed=3))
    stage.start_worker()

    done = build(stage, recipe)

    assert done.process.returncode == 1
    kept = {row["id"] for row in rows(stage.folder / "made" / "one.jsonl")}
    listed = rows(stage.folder / "made" / "left_out.jsonl")
    assert 0 < len(kept) < 30
    assert {row["id"] for row in listed if row["step"] == "first"} == {f"m{number}" for number in range(30)} - kept
    assert {row["why"] for row in listed} == {"invalid: empty", "the step before it has no text"}
    assert "x first: invalid: empty" in done.said
    assert "bothways retry recipe --outcome invalid, then the same command" in done.said


def test_files_that_a_person_has_changed_are_never_written_over(stage: Stage) -> None:
    recipe = write_recipe(stage.folder / "recipe")
    stage.start_worker()
    assert build(stage, recipe).process.returncode == 0
    assert build(stage, recipe).process.returncode == 0
    file = stage.folder / "made" / "one.jsonl"
    edited = file.read_text(encoding="utf-8").replace("made up", "written by hand")
    file.write_text(edited, encoding="utf-8")

    refused = build(stage, recipe)

    assert refused.process.returncode == 2
    assert "one.jsonl was changed since it was made" in refused.said
    assert file.read_text(encoding="utf-8") == edited


def test_the_recipe_of_the_paper_makes_files_that_its_loader_reads(stage: Stage) -> None:
    source = stage.folder / "squad.json"
    source.write_text(json.dumps(document(4)), encoding="utf-8")
    stage.start_worker()

    done = build(stage, "squad-it-2", "--from", str(source), "--model", "simulated:maker")

    assert done.process.returncode == 0, done.said
    ways = (
        ("squad_it_plausible", "low", "two-choice-low"),
        ("squad_it_all-wrong_ooc-ooc", "high", "two-choice-medium"),
    )
    for name, setting, prompt in ways:
        path = stage.folder / "made" / f"{name}.jsonl"
        dataset = {"name": "made", "loader": "squad_it_2", "path": str(path), "setting": setting, "prompt": prompt}
        study = write_study(stage.folder / name, study=name, datasets=[dataset])
        assert stage.run(study).process.returncode == 0
    assert stage.count("state = 'answered'") == 12 + 2 * 8
    shown = stage.start("report", "squad-it-2-simulated:maker")
    assert shown.end() == 2
    assert "is a recipe: it makes data and measures nothing" in shown.said
