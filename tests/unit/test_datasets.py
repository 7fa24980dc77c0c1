"""Data files: every row is checked, and what is wrong is refused with file, row and field."""

import json
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.study import Dataset
from producer.datasets import load_dataset
from tests.builders import item_rows

GOOD, SECOND = item_rows(2)
TRIPLE = {
    "id": "t1",
    "language": "it",
    "paragraph": "p1",
    "context": "La balena canta.",
    "question": "Chi canta?",
    "right": "la balena",
    "plausible": "il delfino",
    "out_of_context_1": "un treno",
    "out_of_context_2": "una lampada",
}
ITEMS = Dataset(name="capitals", loader="items", path="items.jsonl", prompt="two-choice-low")


def setting(name: Any) -> Dataset:  # noqa: ANN401
    """A dataset of loader `uncertainty`."""
    return Dataset(name="whales", loader="uncertainty", path="items.jsonl", prompt="two-choice-low", setting=name)


def write(folder: Path, *rows: dict[str, Any] | str) -> Path:
    """A data file; a text stands as it is on its line."""
    path = folder / "items.jsonl"
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def without(row: dict[str, Any], field: str) -> dict[str, Any]:
    """The row less one field."""
    return {key: value for key, value in row.items() if key != field}


@pytest.mark.parametrize(
    ("row", "field", "problem"),
    [
        pytest.param(SECOND | {"id": "q0"}, "id", "'q0' is also the id of row 1; ids must differ", id="duplicate id"),
        pytest.param(without(SECOND, "id"), "id", "is missing; the row has language, question", id="no id"),
        pytest.param(SECOND | {"id": 5}, "id", "must be text, not 5", id="number as id"),
        pytest.param(SECOND | {"id": "q\0"}, "id", "NUL", id="NUL in the id"),
        pytest.param(without(SECOND, "question"), "question", "is missing", id="no question"),
        pytest.param(SECOND | {"question": " \n"}, "question", "is empty", id="blank question"),
        pytest.param(SECOND | {"question": "a\0b"}, "question", "NUL", id="NUL in the question"),
        pytest.param(SECOND | {"question": "a\ud800b"}, "question", "half a surrogate pair", id="half a surrogate"),
        pytest.param(SECOND | {"context": ["a"]}, "context", "must be text, not", id="list as context"),
        pytest.param(
            SECOND | {"context": "\udc00"}, "context", "half a surrogate pair", id="half a surrogate, context"
        ),
        pytest.param(SECOND | {"language": 1}, "language", "must be text", id="number as language"),
        pytest.param(without(SECOND, "choices"), "choices", "is missing; the row has", id="no choices"),
        pytest.param(SECOND | {"choices": None}, "choices", "must be a list of texts, not None", id="null as choices"),
        pytest.param(SECOND | {"choices": "ab"}, "choices", "must be a list of texts, not 'ab'", id="text as choices"),
        pytest.param(SECOND | {"choices": ["a", 1]}, "choices[1]", "must be text, not 1", id="number as choice"),
        pytest.param(SECOND | {"choices": ["a", " "]}, "choices[1]", "is empty", id="blank choice"),
        pytest.param(SECOND | {"choices": ["a\0", "b"]}, "choices[0]", "NUL", id="NUL in a choice"),
        pytest.param(SECOND | {"choices": ["a"]}, "choices", "a question has 2 to 26 choices, not 1", id="one choice"),
        pytest.param(
            SECOND | {"choices": [f"answer {number}" for number in range(27)]},
            "choices",
            "a question has 2 to 26 choices, not 27",
            id="more choices than letters",
        ),
        pytest.param(SECOND | {"choices": ["a", "a"]}, "choices", "the choices are equal", id="equal choices"),
        pytest.param(
            SECOND | {"choices": ["a", " a\n"]}, "choices", "the choices are equal", id="equal but for spaces"
        ),
        pytest.param(without(SECOND, "target"), "target", "is missing; write null", id="no target"),
        pytest.param(
            without(SECOND, "target") | {"targt": 0}, "target", "is missing; write null", id="target misspelt"
        ),
        pytest.param(SECOND | {"target": 2}, "target", "2 is out of range", id="target too high"),
        pytest.param(SECOND | {"target": -1}, "target", "-1 is out of range", id="target negative"),
        pytest.param(SECOND | {"target": "0"}, "target", "must be a whole number or null", id="text as target"),
        pytest.param(SECOND | {"target": True}, "target", "must be a whole number or null", id="truth as target"),
        pytest.param(SECOND | {"target": 0.0}, "target", "must be a whole number or null", id="fraction as target"),
        pytest.param("right or wrong", None, "not a JSON object on one line", id="not JSON"),
        pytest.param('{"id": "q1",', None, "not a JSON object on one line", id="half a JSON object"),
        pytest.param('["q1"]', None, "must be a JSON object, not list", id="list instead of object"),
        pytest.param('"q1"', None, "must be a JSON object, not str", id="text instead of object"),
        pytest.param("[" * 100_000, None, "nested too deeply", id="nested beyond reason"),
        pytest.param('{"target": ' + "9" * 5000 + "}", None, "", id="number of 5000 digits"),
    ],
)
def test_a_bad_row_is_refused_with_its_file_row_and_field(
    tmp_path: Path, row: dict[str, Any] | str, field: str | None, problem: str
) -> None:
    path = write(tmp_path, GOOD, row)

    with pytest.raises(InputError) as caught:
        load_dataset(ITEMS, path)

    assert problem in caught.value.problem
    assert (caught.value.path, caught.value.row, caught.value.field) == (path, 2, field)
    assert str(caught.value).startswith(f"{path}, row 2: {f'{field}: ' if field else ''}")


def test_empty_lines_are_passed_over_but_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "", GOOD, "  ", GOOD | {"id": "q1", "target": 7})

    with pytest.raises(InputError, match="row 4: target"):
        load_dataset(ITEMS, path)


@pytest.mark.parametrize("content", [b"", b"\n \n"], ids=["empty", "blank"])
def test_a_file_without_an_item_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)

    with pytest.raises(InputError, match="there is no item in the file"):
        load_dataset(ITEMS, path)


@pytest.mark.parametrize("content", [b'{"id": "citt\xe0"}', '{"id": "q"}'.encode("utf-16")], ids=["Latin-1", "UTF-16"])
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)

    with pytest.raises(InputError, match="not UTF-8") as caught:
        load_dataset(ITEMS, path)

    assert caught.value.path == path


def test_a_folder_is_no_data_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_dataset(ITEMS, tmp_path)


@pytest.mark.parametrize(
    ("before", "end"),
    [(b"", b"\n"), (b"\xef\xbb\xbf", b"\n"), (b"", b"\r\n"), (b"\xef\xbb\xbf", b"\r\n")],
    ids=["plain", "byte order mark", "CRLF", "both"],
)
def test_a_file_from_any_editor_gives_the_same_items(tmp_path: Path, before: bytes, end: bytes) -> None:
    rows = item_rows(3)
    path = tmp_path / "items.jsonl"
    path.write_bytes(before + b"".join(json.dumps(row).encode() + end for row in rows))

    items = load_dataset(ITEMS, path)

    assert [item.source_id for item in items] == ["q0", "q1", "q2"]
    assert [item.question for item in items] == [row["question"] for row in rows]
    assert [item.context for item in items] == [row["context"] for row in rows]


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(GOOD), encoding="utf-8")

    assert len(load_dataset(ITEMS, path)) == 1


def test_line_separators_inside_a_text_end_no_row(tmp_path: Path) -> None:
    question = "one\u2028two\x85three\x0cfour"
    path = write(tmp_path, json.dumps(GOOD | {"question": question}, ensure_ascii=False))

    assert [item.question for item in load_dataset(ITEMS, path)] == [question]


def test_items_that_share_a_context_share_a_cluster_and_others_stand_alone(tmp_path: Path) -> None:
    rows = [
        GOOD | {"id": "a", "context": "one"},
        GOOD | {"id": "b", "context": "one"},
        GOOD | {"id": "c", "context": "two"},
        GOOD | {"id": "d", "context": None},
        GOOD | {"id": "e", "context": "one", "cluster": "thread 7"},
    ]

    a, b, c, d, e = load_dataset(ITEMS, write(tmp_path, *rows))

    assert a.cluster == b.cluster
    assert len({a.cluster, c.cluster, d.cluster, e.cluster}) == 4
    assert (d.cluster, e.cluster) == ("d", "thread 7")


def test_null_says_that_no_choice_is_right(tmp_path: Path) -> None:
    (item,) = load_dataset(ITEMS, write(tmp_path, GOOD | {"target": None}))

    assert item.target is None


@pytest.mark.parametrize(
    ("name", "choices", "target", "context"),
    [
        ("low", ("la balena", "il delfino"), 0, "La balena canta."),
        ("medium", ("la balena", "il delfino"), 0, None),
        ("high", ("un treno", "una lampada"), None, None),
    ],
    ids=["low", "medium", "high"],
)
def test_one_file_serves_three_levels_of_uncertainty(
    tmp_path: Path, name: str, choices: tuple[str, str], target: int | None, context: str | None
) -> None:
    (item,) = load_dataset(setting(name), write(tmp_path, TRIPLE))

    assert (item.choices, item.target, item.context) == (choices, target, context)
    assert (item.dataset, item.source_id, item.cluster, item.language) == ("whales", "t1", "p1", "it")


@pytest.mark.parametrize("field", [field for field in TRIPLE if field != "language"])
def test_every_level_needs_the_whole_row(tmp_path: Path, field: str) -> None:
    path = write(tmp_path, without(TRIPLE, field))

    for name in ("low", "medium", "high"):
        with pytest.raises(InputError, match=f"row 1: {field}: is missing"):
            load_dataset(setting(name), path)
