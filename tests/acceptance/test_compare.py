"""A paper's table beside what a study measured, as people ask for it."""

import json
from dataclasses import replace

import pytest

from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import Stage
from tests.builders import write_study

stage = end_to_end.stage

COMPARE = ("compare", "pairs", "--with", "positional-bias")


@pytest.fixture
def asked(stage: Stage) -> Stage:
    """A study of ten pairs, asked whole: one dataset and one model bear the paper's names, another model does not."""
    models = [
        {"name": name, "provider": "simulated", "options": {"knows": 0.5, "prefers_first": 0.5, "seed": 1}}
        for name in ("Gemma-3-12B-Q", "newer")
    ]
    dataset = {"name": "winning-arguments", "loader": "items", "path": "items.jsonl", "prompt": "more-persuasive"}
    study = write_study(stage.folder / "pairs", items=10, study="pairs", models=models, datasets=[dataset])
    stage.start_worker()
    stage.run(study)
    return stage


def test_the_paper_s_figures_stand_beside_those_of_the_same_names(asked: Stage) -> None:
    done = asked.start(*COMPARE, "--json")
    assert done.end() == 0
    cells = json.loads(done.out.read_text(encoding="utf-8"))

    assert len(cells) == 25 * 5
    ours = [cell for cell in cells if cell["measured"] is not None]
    assert {(cell["dataset"], cell["model"]) for cell in ours} == {("winning-arguments", "Gemma-3-12B-Q")}
    assert [cell["n"] for cell in ours] == [10] * 5

    wide = replace(asked, environment=asked.environment | {"COLUMNS": "120"})
    shown = wide.start(*COMPARE, "--as", "newer=Gemini-2")
    assert shown.end() == 0
    text = shown.out.read_text(encoding="utf-8")
    assert "Gemini-2 (newer)" in text
    assert "lies outside the interval of the measured one" in text
    assert "not in the paper" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--with", "another"), "no paper 'another'; known: positional-bias, answer-format"),
        (("--with", "positional-bias", "--as", "newer"), "--as takes MODEL=PRINTED"),
        (("--with", "positional-bias", "--as", "x=Gemini-2"), "the study has no model 'x'"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(stage: Stage, words: tuple[str, ...], said: str) -> None:
    enqueue(stage.engine, read_study(write_study(stage.folder / "pairs", items=1, study="pairs")))

    done = stage.start("compare", "pairs", *words)

    assert done.end() == 2
    assert said in done.said
    assert len(done.said.splitlines()) == 1
