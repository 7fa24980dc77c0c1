"""Recipes: study files whose steps make data."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from contract.errors import InputError, UsageError
from contract.spec import Name
from ops.cli.recipes import find_recipe, questions_from, recipe_changes
from producer.plan import plan_conditions, plan_jobs
from producer.study_file import read_study
from tests.builders import squad_document, write_recipe, write_study
from tests.unit.test_bbq import row as bbq_row
from tests.unit.test_opinion_datasets import ASKED

FIRST = {"step": "first", "prompt": "first.txt"}
SECOND = {"step": "second", "prompt": "second.txt", "after": "first"}
DATASET = {"name": "mill", "loader": "squad_it", "path": "squad.json", "language": "en"}

EACH = {"each": "choice", "checks": []}
WRONG = [{"file": "a.jsonl", "wrong_answer": "first"}]
SAID = {"file": "a.csv", "statements": "first"}


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"formats": [{"format": "closed"}]}, "steps", "take one of them out"),
        ({"steps": [FIRST, dict(FIRST)]}, "steps[1].step", "first is also the name of steps[0]"),
        ({"steps": [SECOND, FIRST]}, "steps[0].after", "there is no step first before this one"),
        ({"steps": [FIRST | {"after": "first"}]}, "steps[0].after", "there is no step first before this one"),
        ({"steps": [FIRST | {"checks": ["not_earlier"]}, SECOND]}, "steps[0].checks", "comes after another"),
        ({"steps": [FIRST | {"checks": ["right"]}, SECOND]}, "steps[0].checks[0]", "must be 'bare'"),
        ({"steps": [FIRST | {"prompt": "second.txt"}, SECOND]}, "steps[0].prompt", "{earlier} is for a step that"),
        ({"steps": [FIRST, SECOND | {"prompt": "first.txt"}]}, "steps[1].prompt", "places {question} and {earlier}"),
        ({"steps": [FIRST | {"prompt": "two-choice-low"}, SECOND]}, "steps[0].prompt", "nothing else in braces"),
        ({"steps": [FIRST | {"prompt": "none.txt"}, SECOND]}, "steps[0].prompt", "there is no file"),
        ({"writes": []}, "writes", "is missing; name the files"),
        (
            {"writes": [{"file": "a.jsonl", "wrong_answer": "third"}]},
            "writes[0].wrong_answer",
            "there is no step third",
        ),
        ({"writes": [{"file": "../a.jsonl", "wrong_answer": "first"}]}, "writes[0].file", ""),
        ({"writes": [{"file": "a.jsonl", "wrong_answer": "first"}] * 2}, "writes[1].file", "has the same file"),
        ({"datasets": [DATASET | {"prompt": "first.txt"}]}, "datasets[0].prompt", "the steps of a recipe name"),
        ({"datasets": [DATASET | {"stand_ins": {"seed": 1}}]}, "datasets[0].stand_ins", "makes the wrong answers"),
        ({"datasets": [DATASET | {"loader": "webgpt"}]}, "datasets[0].loader", "squad_it, or items"),
        ({"datasets": [DATASET, DATASET | {"name": "other"}]}, "datasets[1]", "of one dataset"),
        ({"steps": [FIRST, SECOND | {"each": "choice"}]}, "steps[0].each", "so must this one"),
        ({"steps": [FIRST | EACH | {"checks": ["not_right"]}]}, "steps[0].checks", "not_right is for wrong answers"),
        ({"steps": [FIRST | EACH], "writes": WRONG}, "writes[0].statements", "is missing; name the step"),
        ({"steps": [FIRST | EACH], "writes": [SAID | WRONG[0]]}, "writes[0].wrong_answer", "a text for each choice"),
        ({"steps": [FIRST | EACH], "writes": [SAID]}, "steps[0].prompt", "places {question} and {choice}"),
        ({"steps": [FIRST], "writes": [SAID]}, "writes[0].wrong_answer", "is missing; name the step"),
        ({"steps": [FIRST], "writes": [SAID | WRONG[0]]}, "writes[0].statements", "a text for each item"),
        ({"repeats": 2}, "repeats", "one text for each item and step"),
        ({"retry": {"invalid": 1, "strategy": "constrain"}}, "retry.strategy", "take resample or remind"),
        ({"retry": {"invalid": 1, "strategy": "remind"}}, "retry.strategy", "a sentence of your own"),
        (
            {"retry": {"invalid": 1, "strategy": "remind", "reminder": "Only {letters}."}},
            "retry.reminder",
            "no value for letters",
        ),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused_with_its_field(
    tmp_path: Path, changes: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        read_study(write_recipe(tmp_path, **changes))

    assert f": {field}: " in str(refused.value)
    assert said in str(refused.value)


def test_a_recipe_asks_one_model(tmp_path: Path) -> None:
    models = [{"name": name, "provider": "simulated"} for name in ("one", "other")]

    with pytest.raises(InputError, match=r"models\[1\]: a recipe asks one model"):
        read_study(write_recipe(tmp_path, models=models))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"writes": [{"file": "a.jsonl", "wrong_answer": "first"}]}, "writes"),
        ({"datasets": [{"name": "capitals", "loader": "items", "path": "items.jsonl"}]}, r"datasets\[0\].prompt"),
        ({"formats": []}, "formats"),
    ],
)
def test_a_study_that_asks_needs_what_asking_needs(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=f": {field}: "):
        read_study(write_study(tmp_path, **changes))


def test_the_right_answers_of_a_question_are_the_choices_of_its_item(tmp_path: Path) -> None:
    document = squad_document()
    blank = document["data"][0]["paragraphs"][1]["qas"][0]
    blank["answers"] = [{"text": " ", "answer_start": 0}]
    items = read_study(write_recipe(tmp_path, document=document)).items["mill"]

    assert [(item.source_id, item.choices, item.target) for item in items] == [
        ("m1", ("Ada", "ada built it"), 0),
        ("m2", ("barley",), 0),
        ("m3", ("",), None),
    ]


def test_items_with_a_right_answer_alone_will_do(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "Which?", "choices": ["this"], "target": 0, "context": "This.", "language": "en"}]
    write_study(tmp_path, items=rows)
    dataset = {"name": "plain", "loader": "items", "path": "items.jsonl"}

    (item,) = read_study(write_recipe(tmp_path, datasets=[dataset])).items["plain"]

    assert item.choices == ("this",)


def test_the_steps_of_an_item_are_planned_together_and_know_whom_they_come_after(tmp_path: Path) -> None:
    loaded = read_study(write_recipe(tmp_path))
    conditions = plan_conditions(loaded)
    first, second = (condition for condition, _ in conditions.values())

    assert (first.stage, first.format.format, first.variant.label, first.of) == ("generate", "open", "first", None)
    assert (second.variant.label, second.of) == ("second", first.digest)
    planned = [(job.item.source_id, conditions[job.condition][0].variant.label) for job in plan_jobs(loaded)]
    assert planned == [(item, step) for item in ("m1", "m2", "m3") for step in ("first", "second")]


def test_what_is_looked_at_may_change_without_asking_again_and_what_is_sent_may_not(tmp_path: Path) -> None:
    before = set(plan_conditions(read_study(write_recipe(tmp_path))))

    checked = write_recipe(tmp_path, steps=[FIRST | {"checks": ["bare"]}, SECOND | {"checks": ["not_earlier"]}])
    assert set(plan_conditions(read_study(checked))) == before

    (tmp_path / "first.txt").write_text("Another: {question}", encoding="utf-8")
    assert not set(plan_conditions(read_study(write_recipe(tmp_path, keep_prompts=True)))) & before


def test_the_recipe_that_comes_along_makes_the_files_of_its_authors(tmp_path: Path) -> None:
    path = find_recipe("squad-it-2")
    source = write_recipe(tmp_path).parent / "squad.json"
    changes = recipe_changes(path, None, "simulated:maker", None, other_questions=True)
    study = read_study(path, data=questions_from(path, str(source)), changes=changes).study

    assert study.study == "squad-it-2-simulated:maker"
    assert [step.step for step in study.steps] == ["plausible", "out-of-context", "second-out-of-context"]
    assert [output.file for output in study.writes] == [
        "squad_it_plausible.jsonl",
        "squad_it_ooc.jsonl",
        "squad_it_all-wrong_plausible-ooc.jsonl",
        "squad_it_all-wrong_ooc-ooc.jsonl",
    ]


def test_a_recipe_s_own_questions_are_meant_by_their_dataset_s_name_and_are_none_but_those(tmp_path: Path) -> None:
    path = find_recipe("squad-it-2")
    changes = recipe_changes(path, "mine", "simulated:maker", ["p"])

    assert questions_from(path, "SQuAD-it") == questions_from(path, None) == {}
    study = read_study(path, changes=changes, may_lack_data=True).study
    (dataset,) = study.datasets
    assert dataset.sha256 is not None
    assert dataset.expect is not None
    assert study.study == "mine"
    assert [(model.name, model.model) for model in study.models] == [("maker", "maker")]
    with pytest.raises(UsageError, match="name a file, an address, or squad-it"):
        questions_from(path, str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("model", "pools", "said"),
    [
        (None, None, "say who makes the texts"),
        ("gemma3", None, "--model takes PROVIDER:MODEL"),
        (":gemma3", None, "--model takes PROVIDER:MODEL"),
    ],
)
def test_a_recipe_without_a_model_needs_one_by_its_provider_and_name(
    model: str | None, pools: list[str] | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        recipe_changes(find_recipe("squad-it-2"), None, model, pools)


def test_pools_are_those_of_the_model_that_is_named_with_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--pool is for the model"):
        recipe_changes(write_recipe(tmp_path), None, None, ["p"])


def test_two_models_make_two_studies_whatever_they_are_called() -> None:
    models = (
        *("ollama:gemma3:12b", "openai:gemma3:12b", "openai:a/b", "openai:a-b", "simulated:日本", "simulated:東京"),
        *(f"ollama:hf.co/some-one/{'long-' * 20}:{quantised}" for quantised in ("Q4_K_M", "Q8_0")),
    )
    changed = [recipe_changes(find_recipe("squad-it-2"), None, model, None) for model in models]

    assert changed[0]["study"] == "squad-it-2-ollama:gemma3:12b"
    assert len({changes["study"] for changes in changed}) == len(models)
    assert len({(entry["provider"], entry["name"]) for changes in changed for entry in changes["models"]}) == len(
        models
    )
    names = TypeAdapter(Name)
    for changes in changed:
        names.validate_python(changes["study"])
        names.validate_python(changes["models"][0]["name"])


def test_an_item_of_a_recipe_has_right_answers_and_no_others(tmp_path: Path) -> None:
    dataset = {"name": "plain", "loader": "items", "path": "items.jsonl"}
    row = {"id": "a", "question": "Which?", "choices": ["this", "that"], "target": 1, "language": "en", "context": "x"}
    for wrong, said in ((row, "all choices are right answers"), (row | {"choices": []}, "there is no right answer")):
        write_study(tmp_path, items=[wrong])
        with pytest.raises(InputError, match=said) as refused:
            read_study(write_recipe(tmp_path, datasets=[dataset]))
        assert "row 1" in str(refused.value)


def test_what_should_have_nothing_to_do_with_a_paragraph_needs_one(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Which?", "choices": ["this"], "target": 0, "language": "en"}
    write_study(tmp_path, items=[row])
    (tmp_path / "bare.txt").write_text("{question}", encoding="utf-8")
    step = {"step": "first", "prompt": "bare.txt", "checks": ["not_in_context"]}
    recipe = write_recipe(
        tmp_path,
        datasets=[{"name": "plain", "loader": "items", "path": "items.jsonl"}],
        steps=[step],
        writes=[{"file": "one.jsonl", "wrong_answer": "first"}],
    )

    with pytest.raises(InputError, match="not_in_context needs a paragraph, and item a has no context"):
        read_study(recipe)


@pytest.mark.parametrize(("recipe", "row"), [("bbq-statements", bbq_row()), ("opinion-qa-statements", ASKED)])
def test_the_recipes_of_statements_ask_for_each_choice_that_says_something(
    tmp_path: Path, recipe: str, row: dict[str, Any]
) -> None:
    path = find_recipe(recipe)
    source = tmp_path / "questions.jsonl"
    source.write_text(json.dumps(row) + "\n", encoding="utf-8")
    changes = recipe_changes(path, None, "simulated:sim", None, other_questions=True)
    loaded = read_study(path, data=questions_from(path, str(source)), changes=changes)

    asked = [job.item.choices[job.part - 1] for job in plan_jobs(loaded)]

    assert asked == (["Yes", "No", "Both"] if row is ASKED else ["The baker", "The miller"])
