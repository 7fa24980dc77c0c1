"""BBQ in its authors' layout: an order of choices that no shuffle of slots changes, groups, and the stereotyped one."""

import csv
import gzip
import itertools
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contract.corrections import Correction
from contract.errors import InputError
from contract.items import Item
from contract.study import Dataset
from producer.datasets import load_dataset
from producer.study_file import read_study
from tests.builders import write_study

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
with_real_data = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with BBQ")
REAL = Path(FOLDER or ".")
GENDER = REAL / "bbq" / "Gender_identity.jsonl.gz"
SUBSET = REAL / "bbq" / "answer_format_subset_example_ids.csv"
MENDED = Correction(find="talk the teacher", replace="talk to the teacher")

ANSWERS = (
    ("The baker", "man", "man"),
    ("The miller", "woman", "woman"),
    ("Nobody can say", "Nobody can say", "unknown"),
)
BODY = (("Ada", "small", "nonTall"), ("Bo", "tall", "tall"), ("Unclear", "Unclear", "unknown"))


def row(answers: Sequence[tuple[str, str, str]] = ANSWERS, right: int = 1, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row as BBQ lays it out; an answer is its text, what stands for it in short, and its group."""
    slots = {f"ans{slot}": text for slot, (text, _, _) in enumerate(answers)}
    info = {f"ans{slot}": [said, group] for slot, (_, said, group) in enumerate(answers)}
    values = {
        "example_id": 7,
        "question_index": "3",
        "question_polarity": "neg",
        "context_condition": "disambig",
        "category": "Gender_identity",
        "answer_info": info,
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["F"], "version": "", "source": "ours"},
        "context": "A man baked and a woman milled. The woman lost her keys.",
        "question": "Who lost the keys?",
        **slots,
        "label": right,
    }
    return values | changes


def stereotyped(*groups: str) -> dict[str, Any]:
    """What a row says of the groups that its stereotype is about."""
    return {"additional_metadata": {"stereotyped_groups": list(groups)}}


def load(folder: Path, *rows: dict[str, Any], subset: str | None = None, **fields: Any) -> list[Item]:  # noqa: ANN401
    """The items of a file with these rows."""
    path = folder / "bbq.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    beside = None
    if subset is not None:
        beside = folder / fields.pop("named", "subset.csv")
        beside.write_text(subset, encoding="utf-8")
    return load_dataset(Dataset(name="bbq", path=str(path), loader="bbq", **fields), path, None, beside)


def test_male_stands_first_then_female_then_unknown_with_what_scores_need(tmp_path: Path) -> None:
    (item,) = load(tmp_path, row(ANSWERS[::-1], right=1))

    assert item == Item(
        dataset="bbq",
        source_id="7",
        question="Who lost the keys?",
        choices=("The baker", "The miller", "Nobody can say"),
        groups=("M", "F", "UNKNOWN"),
        target=1,
        cluster="Gender_identity-3",
        context="A man baked and a woman milled. The woman lost her keys.",
        language="en",
        traits={
            "polarity": "neg",
            "context_condition": "disambig",
            "category": "Gender_identity",
            "subset": "labels",
            "stereotyped": "F",
        },
    )


@pytest.mark.parametrize("answers", [ANSWERS, BODY, (("He", "boy", "boy"), ("Him", "man", "man"), ANSWERS[2])])
def test_shuffling_the_slots_changes_nothing_of_the_item(
    tmp_path: Path, answers: tuple[tuple[str, str, str], ...]
) -> None:
    items = {
        load(tmp_path, row(shuffled, right=shuffled.index(answers[0])))[0].digest
        for shuffled in itertools.permutations(answers)
    }

    assert len(items) == 1


def test_other_groups_stand_in_the_order_of_their_names_and_keep_them(tmp_path: Path) -> None:
    (item,) = load(tmp_path, row(BODY[::-1], right=0, category="Body", **stereotyped("Tall")))

    assert (item.choices, item.groups, item.target) == (
        ("Ada", "Bo", "Unclear"),
        ("nonTall", "tall", "UNKNOWN"),
        2,
    )
    assert (item.traits["stereotyped"], item.traits["subset"]) == ("tall", None)


@pytest.mark.parametrize(
    ("groups", "known", "found"),
    [
        (("boy", "man"), ["F"], None),
        (("girl", "woman"), ["F"], None),
        (("girl", "man"), ["women"], "F"),
        (("nonTrans", "trans"), ["transgender women", "trans"], "trans"),
        (("nonTrans_M", "trans_F"), ["Transgender women", "transgender men", "trans"], "trans_F"),
        (("M", "F"), [], None),
        (("nonOld", "old"), ["old"], "old"),
        (("nonOld", "old"), ["nonOld"], "nonOld"),
        (("highSES", "lowSES"), ["low SES"], "lowSES"),
        (("M-Black", "F-White"), ["Black"], "M-Black"),
        (("African", "African American"), ["African American"], "African American"),
    ],
)
def test_the_stereotyped_group_is_that_of_the_one_choice_that_a_stereotype_is_about(
    tmp_path: Path, groups: tuple[str, str], known: list[str], found: str | None
) -> None:
    answers = (*((f"The {group}", group, group) for group in groups), ANSWERS[2])

    (item,) = load(tmp_path, row(answers, **stereotyped(*known)))

    assert item.traits["stereotyped"] == found


def test_a_nation_is_known_by_its_people_and_crossed_categories_have_no_stereotyped_group(tmp_path: Path) -> None:
    answers = (("The Ruritanian", "Ruritanian", "Europe"), ("The Erewhonian", "Erewhonian", "Oceania"), ANSWERS[2])
    nation = row(answers, category="Nationality", **stereotyped("Ruritanian"))

    found, crossed = load(tmp_path, nation, nation | {"category": "Race_x_gender"})

    assert (found.traits["stereotyped"], crossed.traits["stereotyped"]) == ("Europe", None)


def test_a_group_that_is_left_blank_goes_by_what_stands_for_the_answer_in_short(tmp_path: Path) -> None:
    answers = (("The Latina", "Latina woman", ""), ("The White woman", "White woman", "F-White"), ANSWERS[2])

    (item,) = load(tmp_path, row(answers, category="Race_x_gender"))

    assert item.groups == ("F-White", "Latina woman", "UNKNOWN")


def test_questions_up_to_the_twenty_fifth_ask_of_labels_and_later_ones_of_names(tmp_path: Path) -> None:
    rows = [row(example_id=number, question_index=str(number)) for number in (25, 26)]

    assert [item.traits["subset"] for item in load(tmp_path, *rows)] == ["labels", "names"]


def test_a_file_of_several_categories_tells_its_items_apart_by_them(tmp_path: Path) -> None:
    items = load(tmp_path, row(), row(BODY, category="Body"))

    assert [item.source_id for item in items] == ["Gender_identity-7", "Body-7"]
    assert items[0].cluster != items[1].cluster


def test_only_the_answer_that_the_file_marks_is_unknown_whatever_the_texts_say(tmp_path: Path) -> None:
    answers = (("Unknown", "Unknown", "man"), ("unknown", "woman", "woman"), ("The third", "The third", "unknown"))

    (item,) = load(tmp_path, row(answers))

    assert item.groups == ("M", "F", "UNKNOWN")
    assert item.choices == ("Unknown", "unknown", "The third")


INFO = row()["answer_info"]
BAD = {
    "no id": (row(example_id=None), "example_id", "must be a whole number from 0, not None"),
    "an id in words": (row(example_id="seven"), "example_id", "must be a whole number"),
    "true as an id": (row(example_id=True), "example_id", "must be a whole number"),
    "a question below zero": (row(question_index=-1), "question_index", "must be a whole number from 0, not -1"),
    "another polarity": (row(question_polarity="positive"), "question_polarity", "must be neg or nonneg"),
    "another condition": (row(context_condition="clear"), "context_condition", "must be ambig or disambig"),
    "a list as category": (row(category=["Age"]), "category", "must be text"),
    "a label out of range": (row(right=3), "label", "must be the slot of the right answer, 0, 1 or 2, not 3"),
    "a label below zero": (row(right=-1), "label", "must be the slot"),
    "true as a label": (row(label=True), "label", "must be the slot"),
    "a label that is no whole number": (row(label=1.0), "label", "must be the slot"),
    "a list as label": (row(label=[1]), "label", "must be the slot"),
    "no context": (row(context="  "), "context", "is empty"),
    "an answer that is a number": (row(ans1=2), "ans1", "must be text, not 2"),
    "text as answer_info": (row(answer_info="man"), "answer_info", "must be a JSON object with ans0"),
    "a slot without a group": (row(answer_info=INFO | {"ans0": ["man"]}), "answer_info.ans0", "must be [TEXT, GROUP]"),
    "null as a group": (row(answer_info=INFO | {"ans0": ["man", None]}), "answer_info.ans0[1]", "is empty"),
    "a group that is a number": (row(answer_info=INFO | {"ans0": ["man", 1]}), "answer_info.ans0[1]", "must be text"),
    "no unknown answer": (
        row((*ANSWERS[:2], ("Unknown", "Unknown", "other"))),
        "answer_info",
        "0 answers are of the group unknown; one of the three must be",
    ),
    "two unknown answers": (
        row((ANSWERS[0], ("Unclear", "Unclear", "unknown"), ANSWERS[2])),
        "answer_info",
        "2 answers are",
    ),
    "no metadata": (row(additional_metadata={}), "additional_metadata.stereotyped_groups", "is missing"),
    "text as groups": (
        row(additional_metadata={"stereotyped_groups": "F"}),
        "additional_metadata.stereotyped_groups",
        "must be a list",
    ),
    "an answer twice": (
        row((ANSWERS[0], ("The baker ", "woman", "woman"), ANSWERS[2])),
        "ans0, ans1, ans2",
        "the choices are equal",
    ),
}


@pytest.mark.parametrize(("bad", "field", "said"), BAD.values(), ids=BAD.keys())
def test_a_row_that_cannot_be_asked_is_named_by_row_and_field(
    tmp_path: Path, bad: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, row(example_id=1), bad)

    error = caught.value
    assert (error.row, error.field) == (2, field)
    assert said in error.problem
    assert "\n" not in str(error)


def test_an_example_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 2: example_id: '7' is also the id of row 1"):
        load(tmp_path, row(), row())


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("subset.csv", "example_id,question_index\n3,1\n1,1\n"),
        ("subset.tsv", "id\tnote\n3\tx\n1\ty\n"),
        ("subset.txt", "3\n\n1\n"),
    ],
)
def test_a_subset_is_taken_in_the_order_of_the_data_file(tmp_path: Path, named: str, text: str) -> None:
    rows = [row(example_id=number) for number in range(5)]

    items = load(tmp_path, *rows, subset=text, named=named)

    assert [item.source_id for item in items] == ["1", "3"]


@pytest.mark.parametrize(
    ("named", "text", "said"),
    [
        ("subset.csv", "example_id\n7\n8\n", "subset.csv, row 2: example_id: '8' is the id of no item of .*bbq.jsonl"),
        ("subset.txt", "7\n8\n", "subset.txt:2: '8' is the id of no item of"),
        ("subset.txt", "7\n7\n", "subset.txt:2: '7' stands twice; keep one"),
        ("subset.csv", "number\n7\n", "row 1: example_id: is missing"),
        ("subset.txt", "\n", "subset.txt: there is no id in the file; write one a line"),
    ],
)
def test_a_subset_that_the_data_file_cannot_give_is_refused(tmp_path: Path, named: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path, row(), subset=text, named=named)


def test_corrections_are_made_one_after_the_other_in_context_and_question_only(tmp_path: Path) -> None:
    corrections = (Correction(find="keys", replace="kees"), Correction(find="kees", replace="coins"))

    (item,) = load(tmp_path, row((("The keys", "man", "man"), *ANSWERS[1:])), corrections=corrections)

    assert (item.question, item.choices[0]) == ("Who lost the coins?", "The keys")
    assert item.context == "A man baked and a woman milled. The woman lost her coins."


def bbq_study(folder: Path, **dataset: Any) -> Path:  # noqa: ANN401
    """A study of one row of BBQ, with a subset of it."""
    fields = {"name": "bbq", "loader": "bbq", "path": "bbq.jsonl", "prompt": "multiple-choice"}
    formats = [{"format": "closed", "orders": "paper", "sampling": {"seed": 1}}]
    path = write_study(folder, datasets=[fields | dataset], formats=formats)
    (folder / "bbq.jsonl").write_text(json.dumps(row()) + "\n", encoding="utf-8")
    (folder / "subset.txt").write_text("7\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("dataset", "field", "said"),
    [
        ({"corrections": [{"find": "no such", "replace": ""}]}, "corrections[0].find", "no question holds 'no such'"),
        ({"corrections": [{"find": "keys"}]}, "corrections[0].replace", "is missing"),
        ({"corrections": [{"find": "", "replace": "a"}]}, "corrections[0].find", "at least 1 character"),
        ({"corrections": {"keys": "coins"}}, "corrections", "must be a list"),
        ({"subset": "gone.txt"}, "subset", "there is no file"),
        ({"subset": "${NOT_SET_HERE}"}, "subset", "NOT_SET_HERE is not set"),
        ({"country": "France"}, "country", "only loader global_opinion_qa takes this field"),
        ({"human": "human.csv"}, "human", "only loader opinion_qa takes this field"),
        ({"wrong_answers": "wrong.jsonl"}, "wrong_answers", "only loader squad_it takes this field"),
        ({"setting": "low"}, "setting", "no other loader takes one"),
    ],
)
def test_what_the_study_says_of_bbq_amiss_is_refused_with_line_and_field(
    tmp_path: Path, dataset: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_study(bbq_study(tmp_path, **dataset))

    error = caught.value
    assert (error.path, error.field) == (tmp_path / "study.yaml", f"datasets[0].{field}")
    assert said in error.problem
    assert error.line is not None


def test_a_study_may_take_a_subset_and_corrections(tmp_path: Path) -> None:
    corrections = [{"find": "keys", "replace": "coins"}]

    loaded = read_study(bbq_study(tmp_path, subset="subset.txt", corrections=corrections, expect={"items": 1}))

    assert [item.question for item in loaded.items["bbq"]] == ["Who lost the coins?"]
    assert [file.path for file in loaded.files["bbq"].all] == [tmp_path / "bbq.jsonl", tmp_path / "subset.txt"]


def table(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a packed table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.fixture(scope="module")
def real() -> dict[str, Item]:
    """The items of the real file by their ids."""
    items = load_dataset(Dataset(name="bbq", path=str(GENDER), loader="bbq"), GENDER)
    return {item.source_id: item for item in items}


@with_real_data
def test_the_real_file_of_gender_identity_is_read_whole(real: dict[str, Item]) -> None:
    assert len(real) == 5672
    assert Counter(item.traits["subset"] for item in real.values()) == {"labels": 672, "names": 5000}
    assert len({item.cluster for item in real.values()}) == 50
    assert {item.groups.index("UNKNOWN") for item in real.values() if item.groups} == {2}


@with_real_data
def test_the_slots_of_the_published_rules_follow_from_every_real_item(real: dict[str, Item]) -> None:
    with gzip.open(GENDER, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    published = {
        each["example_id"]: each["target_loc"] for each in table(REAL / "bbq" / "gender_identity_metadata.csv.gz")
    }

    derived = {str(each["example_id"]): biased_slot(real[str(each["example_id"])], each) for each in rows}

    assert derived == published
    assert Counter(bool(slot) for slot in derived.values()) == {True: 5656, False: 16}
    assert {real[example].cluster for example, slot in derived.items() if not slot} == {"Gender_identity-13"}


def biased_slot(item: Item, written: dict[str, Any]) -> str:
    """BBQ's target_loc: the slot of the stereotyped group, of the other one where the question is not negative."""
    about = item.traits["stereotyped"]
    if about is None or item.groups is None:
        return ""
    choice = item.groups.index(about)
    if item.traits["polarity"] == "nonneg":
        choice = 1 - choice
    return str([written[f"ans{slot}"] for slot in range(3)].index(item.choices[choice]))


@with_real_data
def test_the_items_of_the_answer_format_paper_are_its_own_rows_but_for_the_corrections(real: dict[str, Item]) -> None:
    dataset = Dataset(name="bbq", path=str(GENDER), loader="bbq", corrections=(MENDED,))
    items = load_dataset(dataset, GENDER, None, SUBSET)
    rows = table(REAL / "answer_format" / "bbq_gender_360.csv.gz", ";")

    assert len(items) == 360
    assert Counter(item.traits["subset"] for item in items) == {"labels": 176, "names": 184}
    assert Counter(item.traits["context_condition"] for item in items) == {"ambig": 180, "disambig": 180}
    assert Counter(item.traits["stereotyped"] for item in items) == {"F": 240, "M": 120}
    assert {item.groups for item in items} == {("M", "F", "UNKNOWN")}
    assert [asked(item) for item in items] == [
        (
            each["example_id"],
            each["context"],
            each["question"],
            right(each),
            {each[f"ans{slot}/0"] for slot in range(3)},
        )
        for each in rows
    ]
    changed = [item for item in items if item.digest != real[item.source_id].digest]
    assert Counter(item.cluster for item in changed) == {"Gender_identity-4": 8, "Gender_identity-29": 8}


def asked(item: Item) -> tuple[str, str | None, str, str, set[str]]:
    """What is asked, with the text of the right choice."""
    return item.source_id, item.context, item.question, item.choices[item.target or 0], set(item.choices)


def right(row: dict[str, str]) -> str:
    """The text of the right answer of one of the paper's rows."""
    return row[f"ans{row['label']}/0"]
