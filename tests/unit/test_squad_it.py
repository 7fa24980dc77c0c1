"""SQuAD 1.1 as two-choice items, with wrong answers from a companion file or from neighbouring questions."""

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.items import Item
from contract.study import Dataset, StandIns, Study
from producer.datasets import load_dataset
from producer.datasets.squad_it import read_questions
from producer.datasets.stand_ins import Neighbours, Question, folded
from producer.study_file import read_study
from tests.builders import squad_document, write_study

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
with_the_real_file = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with SQuAD-it")
REAL = Path(FOLDER or ".") / "squad_it" / "SQuAD_it-test.json.gz"
STUDY = Path(__file__).parents[2] / "studies" / "squad_it_low.yaml"


def dataset(seed: int = 1, **changes: Any) -> Dataset:  # noqa: ANN401
    """A dataset of loader `squad_it` with stand-ins."""
    made = Dataset(
        name="mill", loader="squad_it", path="mill.json", prompt="two-choice-low", stand_ins=StandIns(seed=seed)
    )
    return made.model_copy(update=changes)


def write(folder: Path, document: object) -> Path:
    """A SQuAD file."""
    path = folder / "mill.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def question(source_id: str, *answers: str, paragraph: str = "p1", title: str = "t1") -> Question:
    """A question as the choice of stand-ins sees it."""
    return Question(id=source_id, title=title, paragraph=paragraph, answers=answers)


def by_id(items: list[Item]) -> dict[str, Item]:
    """The items by their ids."""
    return {item.source_id: item for item in items}


def test_an_item_is_its_paragraph_question_first_gold_answer_and_a_wrong_one(tmp_path: Path) -> None:
    items = by_id(load_dataset(dataset(), write(tmp_path, squad_document())))

    assert list(items) == ["m1", "m2", "m3"]
    first = items["m1"]
    assert (first.question, first.choices, first.target) == ("Who built the mill?", ("Ada", "barley"), 0)
    assert (first.context, first.language) == ("Ada built the mill in May. It ground barley.", "it")
    assert first.cluster == items["m2"].cluster != items["m3"].cluster


def test_a_packed_file_gives_the_same_items(tmp_path: Path) -> None:
    path = write(tmp_path, squad_document())
    packed = tmp_path / "mill.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))

    assert load_dataset(dataset(), packed) == load_dataset(dataset(), path)


def test_the_study_file_may_name_another_language(tmp_path: Path) -> None:
    items = load_dataset(dataset(language="en"), write(tmp_path, squad_document()))

    assert {item.language for item in items} == {"en"}


def test_a_stand_in_is_from_the_paragraph_before_the_title() -> None:
    questions = [question("a", "one"), question("b", "two"), question("c", "three", paragraph="p2")]

    neighbours = Neighbours.of(questions)

    assert [(made.text, made.origin) for made in neighbours.stand_ins(questions[0], 1)] == [("two", "paragraph")]
    ((from_title,),) = (neighbours.stand_ins(questions[2], 1),)
    assert from_title.origin == "title"
    assert from_title.text in ("one", "two")


def test_a_stand_in_equals_no_gold_answer_whatever_its_case_and_outer_space() -> None:
    asked = question("a", "one", "Two ", "THREE")
    questions = [asked, question("b", "two"), question("c", " three"), question("d", "four", paragraph="p2")]

    for seed in range(20):
        (made,) = Neighbours.of(questions).stand_ins(asked, seed)
        assert (made.text, made.origin) == ("four", "title")


def test_no_stand_in_comes_from_another_title() -> None:
    asked = question("a", "one")

    with pytest.raises(LookupError, match="no stand-in"):
        Neighbours.of([asked, question("b", "two", title="t2", paragraph="p2")]).stand_ins(asked, 1)


def test_a_stand_in_depends_on_seed_and_question_and_not_on_the_order_of_the_file() -> None:
    questions = [question(f"q{number}", f"answer {number}") for number in range(40)]
    straight, reverse = Neighbours.of(questions), Neighbours.of(reversed(questions))

    first = [straight.stand_ins(asked, 1) for asked in questions]

    assert first == [reverse.stand_ins(asked, 1) for asked in questions]
    assert (
        sum(one != other for one, other in zip(first, (straight.stand_ins(q, 2) for q in questions), strict=True)) > 30
    )
    assert len({made.text for (made,) in first}) > 15


def test_an_added_answer_changes_no_stand_in_but_those_that_become_it() -> None:
    questions = [question(f"q{number}", f"answer {number}") for number in range(40)]
    before, after = Neighbours.of(questions), Neighbours.of([*questions, question("new", "new answer")])

    for asked in questions:
        (old,), (new,) = before.stand_ins(asked, 1), after.stand_ins(asked, 1)
        assert new.text in (old.text, "new answer")


def test_wrong_answers_come_from_the_companion_file_by_id(tmp_path: Path) -> None:
    rows = [{"id": f"m{number}", "wrong_answer": f"wrong {number}", "context": "unused"} for number in (3, 1, 2)]
    companion = tmp_path / "wrong.jsonl"
    companion.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    path = write(tmp_path, squad_document())

    items = by_id(load_dataset(dataset(stand_ins=None, wrong_answers="wrong.jsonl"), path, companion))

    assert [items[f"m{number}"].choices[1] for number in (1, 2, 3)] == ["wrong 1", "wrong 2", "wrong 3"]
    assert items["m1"].choices[0] == "Ada"


def test_a_first_gold_answer_without_text_gives_way_to_the_next(tmp_path: Path) -> None:
    document = squad_document()
    document["data"][0]["paragraphs"][0]["qas"][0]["answers"].insert(0, {"text": " ", "answer_start": 0})

    assert load_dataset(dataset(), write(tmp_path, document))[0].choices == ("Ada", "barley")


def test_where_all_gold_answers_are_blank_no_choice_is_right(tmp_path: Path) -> None:
    document = squad_document()
    document["data"][0]["paragraphs"][0]["qas"][0]["answers"] = [{"text": "", "answer_start": 0}]
    companion = tmp_path / "wrong.jsonl"
    rows = [{"id": f"m{number}", "wrong_answer": "one", "second_wrong_answer": "two"} for number in (1, 2, 3)]
    companion.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    path = write(tmp_path, document)

    made = by_id(load_dataset(dataset(), path))
    given = by_id(load_dataset(dataset(stand_ins=None, wrong_answers="wrong.jsonl"), path, companion))

    assert (made["m1"].choices, made["m1"].target) == (("barley", "in a dry summer"), None)
    assert (given["m1"].choices, given["m1"].target) == (("one", "two"), None)
    assert (given["m2"].choices, given["m2"].target) == (("barley", "one"), 0)


def test_a_question_without_a_stand_in_is_refused_with_its_place_and_id(tmp_path: Path) -> None:
    document = squad_document()
    document["data"].append({"title": "Alone", "paragraphs": [document["data"][0]["paragraphs"].pop()]})

    with pytest.raises(InputError, match="question m3: no stand-in") as caught:
        load_dataset(dataset(), write(tmp_path, document))

    assert caught.value.field == "data[1].paragraphs[0].qas[0]"


def test_every_table_of_a_study_with_stand_ins_says_so(tmp_path: Path) -> None:
    plain = read_study(write_study(tmp_path)).study
    with_stand_ins = plain.model_copy(update={"datasets": (*plain.datasets, dataset())})

    assert (plain.title_note, with_stand_ins.title_note) == (None, "stand-in distractors")
    assert Study.model_validate_json(with_stand_ins.model_dump_json()) == with_stand_ins


@with_the_real_file
def test_the_study_reads_the_real_file_whole() -> None:
    loaded = read_study(STUDY, data={"squad-it-low": REAL})
    items = loaded.items["squad-it-low"]

    # 2,010 paragraphs, 19 of them without a question and 3 a second time.
    assert (len(items), len({item.cluster for item in items})) == (7609, 1988)
    assert [item.source_id for item in items if item.target is None] == ["d250"]
    assert {item.language for item in items} == {"it"}
    assert loaded.study.title_note == "stand-in distractors"


@with_the_real_file
def test_a_limit_keeps_the_first_real_items_and_the_expectation_is_of_the_file() -> None:
    items = read_study(STUDY, limit=40, data={"squad-it-low": REAL}).items["squad-it-low"]

    assert (len(items), items[0].source_id) == (40, "5725b33f6a3fe71400b8952d")
    assert items[0].choices[0] == "ottobre 1973"


@with_the_real_file
def test_real_stand_ins_are_wrong_and_nearly_all_from_the_paragraph() -> None:
    questions = [asked.question for asked in read_questions(REAL)]
    neighbours = Neighbours.of(questions)
    origins: Counter[str] = Counter()

    for asked in questions:
        for made in neighbours.stand_ins(asked, 1, 2 - len(asked.answers[:1])):
            assert folded(made.text) not in map(folded, asked.answers)
            origins[made.origin] += 1

    assert origins == {"paragraph": 7493, "title": 117}


@with_the_real_file
def test_reading_the_real_file_again_gives_the_same_items() -> None:
    assert load_dataset(dataset(), REAL) == load_dataset(dataset(), REAL)
    assert load_dataset(dataset(2), REAL) != load_dataset(dataset(), REAL)
