"""OpinionQA and GlobalOpinionQA: questions without a right answer, with ordinals and the shares of people."""

import csv
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.items import Item
from contract.study import Dataset
from producer.datasets import load_dataset
from producer.datasets.faults import DatasetFieldError
from producer.study_file import read_study
from tests.builders import write_study

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
with_real_data = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with OpinionQA and others")
REAL = Path(FOLDER or ".")
QUESTIONS = REAL / "opinion_qa" / "opinionqa_questions_494.jsonl.gz"
ORDINALS = REAL / "answer_format" / "opinion_qa_gender_158_ordinal.csv.gz"
HUMAN = REAL / "answer_format" / "opinion_qa_weighted_distributions.csv.gz"
COUNTRIES = REAL / "global_opinion_qa" / "globalopinionqa_sample5752.jsonl.gz"

WORDED_OTHERWISE = ["EQUALBIZF2_W36", "EQUALPOLF2_W36", "MOREWMN2F2_W36", "MOREWMN3F2_W36", "MOREWMN4F2_W36"]
"""The keys with a human answer that is cut short or worded otherwise than the option."""

ASKED = {
    "key": "TEA_W1",
    "original_qbody": "Do you like TEA?",
    "refined_qbody": "Do you like tea?",
    "options": ["Yes", "No", "Both", "Refused"],
    "ordinal": [1, 2, 1.5],
}
SHARES: list[tuple[str, str, object]] = [("TEA_W1", "Yes", 0.5), ("TEA_W1", "No", 0.25), ("TEA_W1", "Both", 0.25)]
OF_FRANCE = {
    "id": 3,
    "question": "Is tea good?",
    "options": ["Yes", "No"],
    "country": "France",
    "distribution": [0.25, 0.75],
}
ON_THE_HUB = {
    "question": "Is tea good?",
    "selections": "defaultdict(<class 'list'>, {'France': [0.25, 0.75], \"Côte d'Ivoire\": [1.0, 0.0]})",
    "options": "['Yes', 'No']",
    "source": "GAS",
}


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def table(path: Path, *rows: dict[str, Any]) -> Path:
    """A CSV file with a column for each field of the first row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def human_table(folder: Path, *rows: tuple[str, str, object]) -> Path:
    """A table of human shares."""
    return table(
        folder / "human.csv", *(dict(zip(("key", "option", "weighted_share"), row, strict=True)) for row in rows)
    )


def opinions(path: Path, human: Path | None = None, subset: Path | None = None, **fields: Any) -> list[Item]:  # noqa: ANN401
    """The items of loader `opinion_qa`."""
    dataset = Dataset(name="d", path=str(path), loader="opinion_qa", **fields)
    return load_dataset(dataset, path, None, subset, human)


def of_country(path: Path, country: str = "France") -> list[Item]:
    """The items of loader `global_opinion_qa`."""
    return load_dataset(Dataset(name="d", path=str(path), loader="global_opinion_qa", country=country), path)


def test_a_question_of_opinion_has_its_options_in_the_order_of_the_list_and_no_target(tmp_path: Path) -> None:
    (item,) = opinions(jsonl(tmp_path / "q.jsonl", ASKED))

    assert item == Item(
        dataset="d",
        source_id="TEA_W1",
        question="Do you like tea?",
        choices=("Yes", "No", "Both", "Refused"),
        target=None,
        cluster="TEA_W1",
        language="en",
        traits={"ordinals": [1.0, 2.0, 1.5, None], "refused": 3},
    )


def test_lists_are_read_from_cells_as_python_and_json_write_them(tmp_path: Path) -> None:
    python = {
        "id": 1,
        "key": "A",
        "question": "Tea?",
        "options": "['Yes', \"Don't\", 'Refused']",
        "option_ordinal": "[1.0, 2]",
    }
    as_json = python | {"id": 2, "key": "B", "options": '["Yes", "Don\'t", "Refused"]', "option_ordinal": "[1, 2.0]"}

    items = opinions(table(tmp_path / "q.csv", python, as_json))

    assert {item.choices for item in items} == {("Yes", "Don't", "Refused")}
    assert [item.traits["ordinals"] for item in items] == [[1.0, 2.0, None]] * 2


def test_the_references_of_info_csv_are_the_options(tmp_path: Path) -> None:
    info = {"key": "A", "question": "Tea?", "references": "['Yes', 'No', 'Refused']", "option_ordinal": "[1.0, 2.0]"}

    (item,) = opinions(table(tmp_path / "info.csv", info))

    assert (item.choices, item.traits["ordinals"]) == (("Yes", "No", "Refused"), [1.0, 2.0, None])


def test_not_sure_before_refused_may_go_without_an_ordinal(tmp_path: Path) -> None:
    options = ["Yes", "No", "Not sure", "Refused"]
    rows = [
        ASKED | {"key": f"K{len(ordinal)}", "options": options, "ordinal": ordinal} for ordinal in ([1, 2], [1, 2, 1.5])
    ]

    assert [item.traits["ordinals"] for item in opinions(jsonl(tmp_path / "q.jsonl", *rows))] == [
        [1.0, 2.0, None, None],
        [1.0, 2.0, 1.5, None],
    ]


def test_without_refused_each_option_has_an_ordinal(tmp_path: Path) -> None:
    (item,) = opinions(jsonl(tmp_path / "q.jsonl", ASKED | {"options": ["Yes", "No"], "ordinal": [1, 2]}))

    assert item.traits == {"ordinals": [1.0, 2.0], "refused": None}


CODE = "__import__('os').listdir('.')"
BAD_QUESTIONS = {
    "no key": ({"key": None}, "key", "is empty"),
    "no question": ({"refined_qbody": " "}, "refined_qbody", "is empty"),
    "text as options": ({"options": "Yes, No"}, "options", "must be a list, like ['Yes', 'No'], not 'Yes, No'"),
    "code as options": ({"options": CODE}, "options", "must be a list, like"),
    "a call within the options": ({"options": f"['Yes', {CODE}]"}, "options", "must be a list, like"),
    "a comprehension as options": ({"options": "[x for x in 'ab']"}, "options", "must be a list, like"),
    "options nested without end": ({"options": "[" * 90_000}, "options", "must be a list, like"),
    "options that go on without end": ({"options": "['" + "x" * 300_000 + "']"}, "options", "must be a list, like"),
    "a mapping as options": ({"options": "{'Yes': 1}"}, "options", "must be a list, not {'Yes': 1}"),
    "a number among the options": ({"options": ["Yes", 2, "Refused"]}, "options[1]", "must be text, not 2"),
    "an option twice": ({"options": ["Yes", "No", "Yes", "Refused"]}, "options", "the choices are equal"),
    "Refused in the middle": ({"options": ["Yes", "Refused", "No"]}, "options[1]", "Refused must be the last option"),
    "Refused twice": ({"options": ["Yes", "Refused", "Refused"]}, "options[1]", "Refused must be the last option"),
    "one option": ({"options": ["Yes"], "ordinal": [1]}, "options", "a question has 2 to 26 choices"),
    "no ordinals": ({"ordinal": None}, "ordinal", "must be a list, not None"),
    "too few ordinals": ({"ordinal": [1, 2]}, "ordinal", "2 ordinals for 3 options before Refused; each has one"),
    "too many ordinals": ({"ordinal": [1, 2, 3, 4]}, "ordinal", "4 ordinals for 3 options"),
    "two wanting before Refused": (
        {"options": ["Yes", "No", "Not sure", "Refused"], "ordinal": [1]},
        "ordinal",
        "1 ordinals for 3 options before Refused; each has one, but Not sure may go without",
    ),
    "an ordinal in words": ({"ordinal": [1, "two", 3]}, "ordinal[1]", "must be a number, not 'two'"),
    "true as an ordinal": ({"ordinal": [1, True, 3]}, "ordinal[1]", "must be a number, not True"),
    "an endless ordinal": ({"ordinal": [1, 10**400, 3]}, "ordinal[1]", "must be a number"),
    "no number as an ordinal": ({"ordinal": "[1, NaN, 3]"}, "ordinal[1]", "must be a number, not nan"),
}


@pytest.mark.parametrize(("changes", "field", "said"), BAD_QUESTIONS.values(), ids=BAD_QUESTIONS.keys())
def test_a_question_that_cannot_be_asked_is_named_by_row_and_field(
    tmp_path: Path, changes: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        opinions(jsonl(tmp_path / "q.jsonl", ASKED | {"key": "OK"}, ASKED | changes))

    error = caught.value
    assert (error.row, error.field) == (2, field)
    assert said in error.problem
    assert len(str(error)) < 500
    assert "\n" not in str(error)


@pytest.mark.parametrize("field", ["options", "ordinal"])
def test_a_field_that_is_missing_is_named(tmp_path: Path, field: str) -> None:
    row = {key: value for key, value in ASKED.items() if key != field}
    named = {"ordinal": "option_ordinal"}.get(field, field)

    with pytest.raises(InputError, match=f"row 1: {named}: is missing; the row has key, original_qbody"):
        opinions(jsonl(tmp_path / "q.jsonl", row))


def test_human_shares_stand_by_option_and_a_whole_leaves_nothing_for_an_option_that_nobody_gave(tmp_path: Path) -> None:
    others = ("COFFEE_W1", "Yes", 1.0)

    (item,) = opinions(jsonl(tmp_path / "q.jsonl", ASKED), human_table(tmp_path, *reversed(SHARES), others))

    assert item.traits["shares"] == [0.5, 0.25, 0.25, 0.0]


def test_a_human_answer_that_is_worded_otherwise_counts_for_the_option_that_the_study_names(tmp_path: Path) -> None:
    human = human_table(tmp_path, *SHARES[:2], ("TEA_W1", "It depe", 0.25))

    (item,) = opinions(jsonl(tmp_path / "q.jsonl", ASKED), human, human_options={"TEA_W1": {"It depe": "Both"}})

    assert item.traits["shares"] == [0.5, 0.25, 0.25, 0.0]


def test_a_human_answer_that_is_said_to_mean_no_option_is_refused(tmp_path: Path) -> None:
    human = human_table(tmp_path, *SHARES[:2], ("TEA_W1", "It depe", 0.25))

    with pytest.raises(InputError, match="row 3: option: human_options says 'Never', and that is no option of TEA_W1"):
        opinions(jsonl(tmp_path / "q.jsonl", ASKED), human, human_options={"TEA_W1": {"It depe": "Never"}})


def test_shares_of_a_key_are_left_out_only_where_the_study_says_so(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "q.jsonl", ASKED, ASKED | {"key": "MILK_W1"})

    items = opinions(path, human_table(tmp_path, *SHARES), without_human=["MILK_W1"])

    assert ["shares" in item.traits for item in items] == [True, False]


def test_questions_outside_the_subset_need_no_shares(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "q.jsonl", ASKED, ASKED | {"key": "MILK_W1"})
    (tmp_path / "keys.txt").write_text("TEA_W1\n", encoding="utf-8")

    (item,) = opinions(path, human_table(tmp_path, *SHARES), tmp_path / "keys.txt")

    assert item.traits["shares"] == [0.5, 0.25, 0.25, 0.0]


BAD_SHARES: dict[str, tuple[list[tuple[str, str, object]], int, str, str]] = {
    "another text": (
        [*SHARES[:2], ("TEA_W1", "Bo", 0.25)],
        3,
        "option",
        "'Bo' is no option of TEA_W1; add human_options: {TEA_W1: {TEXT: OPTION}} to the dataset, or the key to",
    ),
    "an answer twice": ([*SHARES, SHARES[0]], 4, "option", "a second share of 'Yes' in TEA_W1; keep one"),
    "a share in words": ([("TEA_W1", "Yes", "half")], 1, "weighted_share", "must be a number, not 'half'"),
    "no share": ([("TEA_W1", "Yes", "")], 1, "weighted_share", "must be a number, not None"),
    "a share below zero": ([("TEA_W1", "Yes", -0.1)], 1, "weighted_share", "must be a share between 0 and 1, not -0.1"),
    "a percentage": ([("TEA_W1", "Yes", 50)], 1, "weighted_share", "must be a share between 0 and 1, not 50"),
    "no number": ([("TEA_W1", "Yes", "nan")], 1, "weighted_share", "must be a number"),
    "not a whole": (
        SHARES[:2],
        1,
        "weighted_share",
        "the shares of TEA_W1 sum up to 0.750; they must be within 0.02 of",
    ),
    "more than a whole": ([*SHARES, ("TEA_W1", "Refused", 0.1)], 1, "weighted_share", "sum up to 1.100"),
    "no key": ([("", "Yes", 1)], 1, "key", "is empty"),
}


@pytest.mark.parametrize(("rows", "row", "field", "said"), BAD_SHARES.values(), ids=BAD_SHARES.keys())
def test_human_shares_that_do_not_fit_are_named_by_their_row_in_their_file(
    tmp_path: Path, rows: list[tuple[str, str, object]], row: int, field: str, said: str
) -> None:
    human = human_table(tmp_path, *rows)

    with pytest.raises(InputError) as caught:
        opinions(jsonl(tmp_path / "q.jsonl", ASKED), human)

    error = caught.value
    assert (error.path, error.row, error.field) == (human, row, field)
    assert said in error.problem


def test_a_question_without_human_shares_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"q\.jsonl, row 1: key: .*human\.csv has no shares of TEA_W1; add them, or let"
    ):
        opinions(jsonl(tmp_path / "q.jsonl", ASKED), human_table(tmp_path, ("MILK_W1", "Yes", 1)))


def test_the_shares_of_one_country_come_from_rows_by_country(tmp_path: Path) -> None:
    rows = [OF_FRANCE, OF_FRANCE | {"id": 4, "country": "Italy"}, OF_FRANCE | {"id": "x", "question": "Milk?"}]

    items = of_country(jsonl(tmp_path / "g.jsonl", *rows))

    assert [item.source_id for item in items] == ["3", "x"]
    assert items[0].traits == {"country": "France", "shares": [0.25, 0.75]}
    assert (items[0].choices, items[0].target, items[0].language) == (("Yes", "No"), None, "en")


def test_the_shares_of_one_country_come_from_the_selections_of_the_hubs_file(tmp_path: Path) -> None:
    again = ON_THE_HUB | {"source": "WVS"}
    elsewhere = ON_THE_HUB | {"question": "Milk?", "selections": "defaultdict(<class 'list'>, {'Italy': [0.5, 0.5]})"}
    unasked = ON_THE_HUB | {"question": ""}
    path = table(tmp_path / "global_opinions.csv", ON_THE_HUB, unasked, elsewhere, again)

    items = of_country(path)
    (by_rows,) = of_country(jsonl(tmp_path / "g.jsonl", OF_FRANCE))

    assert [item.payload for item in items] == [by_rows.payload] * 2
    assert {item.cluster for item in items} == {by_rows.cluster}
    assert items[1].source_id == f"{items[0].source_id}-2"
    assert [item.traits["shares"] for item in of_country(path, "Côte d'Ivoire")] == [[1.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        (OF_FRANCE | {"country": None}, "country", "is empty"),
        (OF_FRANCE | {"question": ""}, "question", "is empty"),
        (OF_FRANCE | {"options": "yes"}, "options", "must be a list, like"),
        (OF_FRANCE | {"options": ["Yes", "Yes"]}, "options", "the choices are equal"),
        (
            OF_FRANCE | {"distribution": [0.5, 0.4]},
            "distribution",
            "the shares sum up to 0.900; they must be within 0.02",
        ),
        (OF_FRANCE | {"distribution": [1.0]}, "distribution", "1 shares for 2 options; each has one"),
        (OF_FRANCE | {"distribution": [1.5, -0.5]}, "distribution[0]", "must be a share between 0 and 1, not 1.5"),
        (OF_FRANCE | {"distribution": ["all", 0]}, "distribution[0]", "must be a number, not 'all'"),
        (OF_FRANCE | {"distribution": None}, "distribution", "must be a list, not None"),
        (OF_FRANCE | {"id": [3]}, "id", "must be text"),
        (ON_THE_HUB | {"selections": CODE}, "selections", "must be a mapping, like {'France': [0.4, 0.6]}, not"),
        (ON_THE_HUB | {"selections": f"defaultdict(<class 'list'>, {CODE})"}, "selections", "must be a mapping, like"),
        (ON_THE_HUB | {"selections": "[1]"}, "selections", "must be a mapping of texts, not [1]"),
        (ON_THE_HUB | {"selections": "{'France': [0.5, 0.2]}"}, "selections.France", "the shares sum up to 0.700"),
        (ON_THE_HUB | {"selections": "{'France': ['a', 1]}"}, "selections.France[0]", "must be a number, not 'a'"),
    ],
)
def test_a_row_of_shares_that_does_not_fit_is_named_by_row_and_field(
    tmp_path: Path, row: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        of_country(jsonl(tmp_path / "g.jsonl", row))

    assert (caught.value.row, caught.value.field) == (1, field)
    assert said in caught.value.problem


def test_a_country_that_nobody_asked_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "g.jsonl", OF_FRANCE, OF_FRANCE | {"country": "Italy"})

    with pytest.raises(DatasetFieldError, match=r"has no 'france'; did you mean France\?; it has France, Italy"):
        of_country(path, "france")


def opinion_study(folder: Path, **dataset: Any) -> Path:  # noqa: ANN401
    """A study of one question of opinion with its human shares; what is None is left out."""
    fields = {
        "name": "d",
        "loader": "opinion_qa",
        "path": "q.jsonl",
        "prompt": "two-choice-medium",
        "human": "human.csv",
    }
    fields = {key: value for key, value in (fields | dataset).items() if value is not None}
    path = write_study(folder, datasets=[fields])
    jsonl(folder / "q.jsonl", ASKED)
    jsonl(folder / "g.jsonl", OF_FRANCE)
    human_table(folder, *SHARES)
    return path


OF_COUNTRY = {"loader": "global_opinion_qa", "path": "g.jsonl", "human": None}


@pytest.mark.parametrize(
    ("dataset", "field", "said"),
    [
        ({"without_human": ["NO"]}, "without_human[0]", "there is no question 'NO'; take it out"),
        ({"without_human": "TEA_W1"}, "without_human", "must be a list"),
        ({"human_options": {"NO": {"a": "Yes"}}}, "human_options.NO", "no question with this key gets shares"),
        ({"human_options": {"TEA_W1": {"a": "Yes"}}}, "human_options.TEA_W1", "has no answer 'a'; mend it"),
        ({"human_options": {"TEA_W1": {"a": 1}}}, "human_options.TEA_W1.a", "valid string"),
        ({"human_options": {"TEA_W1": "Yes"}}, "human_options.TEA_W1", "valid dictionary"),
        (
            {"human_options": {"TEA_W1": {"Yes": "No"}}, "without_human": ["TEA_W1"]},
            "human_options.TEA_W1",
            "no question with this key gets shares",
        ),
        ({"human": None, "without_human": ["TEA_W1"]}, "without_human", "add human: FILE, or take this field out"),
        ({"human": None, "human_options": {"TEA_W1": {}}}, "human_options", "add human: FILE"),
        ({"human": "gone.csv"}, "human", "there is no file"),
        ({"country": "France"}, "country", "only loader global_opinion_qa takes this field"),
        (OF_COUNTRY, "loader", "loader global_opinion_qa needs a country"),
        (OF_COUNTRY | {"country": "Italy"}, "country", "has no 'Italy'; it has France"),
        (OF_COUNTRY | {"country": "France", "human": "human.csv"}, "human", "only loader opinion_qa takes this field"),
    ],
)
def test_what_the_study_says_of_opinions_amiss_is_refused_with_line_and_field(
    tmp_path: Path, dataset: dict[str, Any], field: str, said: str
) -> None:
    path = opinion_study(tmp_path, **dataset)

    with pytest.raises(InputError) as caught:
        read_study(path)

    error = caught.value
    assert (error.path, error.field) == (path, f"datasets[0].{field}")
    assert said in error.problem
    assert error.line is not None


def real_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a packed table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@with_real_data
def test_the_real_questions_with_their_two_traps_are_read_whole() -> None:
    items = opinions(QUESTIONS)
    ordinals = [item.traits["ordinals"] for item in items]

    assert len(items) == 494
    not_sure = [
        found for item, found in zip(items, ordinals, strict=True) if item.choices[-2:] == ("Not sure", "Refused")
    ]
    assert [found[-2:] for found in not_sure] == [[None, None]] * 12
    assert sum(len({value for value in found if value is not None}) == 1 for found in ordinals) == 8
    assert {item.traits["refused"] - len(item.choices) for item in items} == {-1}


@with_real_data
def test_the_questions_of_the_answer_format_paper_have_the_shares_of_its_table() -> None:
    items = opinions(ORDINALS, HUMAN, without_human=WORDED_OTHERWISE)
    rows = {(row["key"], row["option"]): float(row["weighted_share"]) for row in real_rows(HUMAN)}
    found = {
        (item.source_id, option): share
        for item in items
        if "shares" in item.traits
        for option, share in zip(item.choices, item.traits["shares"], strict=True)
    }

    assert len(rows) == 631
    assert Counter(len(item.choices) for item in items) == {3: 13, 4: 134, 5: 9, 6: 2}
    assert [item.source_id for item in items if "shares" not in item.traits] == [
        item.source_id for item in items if item.source_id in WORDED_OTHERWISE
    ]
    assert {pair: share for pair, share in found.items() if pair in rows} == {
        pair: share for pair, share in rows.items() if pair[0] not in WORDED_OTHERWISE
    }
    assert [(pair, share) for pair, share in found.items() if pair not in rows] == [(("FEM2BF2_W29", "Refused"), 0.0)]


@with_real_data
@pytest.mark.parametrize("key", WORDED_OTHERWISE)
def test_a_human_answer_of_the_real_table_that_is_no_option_is_named(key: str) -> None:
    others = [other for other in WORDED_OTHERWISE if other != key]

    with pytest.raises(InputError, match=f"row [0-9]+: option: .* is no option of {key}; add human_options"):
        opinions(ORDINALS, HUMAN, without_human=others)


@with_real_data
def test_corrections_give_all_real_questions_their_shares() -> None:
    options = {item.source_id: item.choices for item in opinions(ORDINALS)}
    meant: dict[str, dict[str, str]] = {}
    for row in real_rows(HUMAN):
        key, text = row["key"], row["option"]
        if text not in options[key]:
            meant.setdefault(key, {})[text] = max(options[key], key=lambda option: common_words(option, text))

    items = opinions(ORDINALS, HUMAN, human_options=meant)

    assert sorted(meant) == WORDED_OTHERWISE
    assert {round(sum(item.traits["shares"]), 6) for item in items} == {1.0}


def common_words(one: str, other: str) -> int:
    """How many words two texts share."""
    return len(set(one.split()) & set(other.split()))


@with_real_data
def test_the_real_questions_of_the_world_are_read_by_country() -> None:
    with gzip.open(COUNTRIES, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]

    items = of_country(COUNTRIES, "United States")

    assert len({row["question"] for row in rows}) == 1270
    assert len(items) == 181
    assert [item.traits["shares"] for item in items] == [
        row["distribution"] for row in rows if row["country"] == "United States"
    ]
