"""Bad study and data files, as a table: each is refused with file, row or line, field and what would be right.

More of them stand in test_study_file.py (study files) and test_datasets.py (JSON Lines).
"""

import gzip
import io
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from contract.errors import InputError, UsageError
from contract.items import Item
from producer.study_file import read_study
from tests.builders import item_rows, squad_document, write_study

GOOD, SECOND = item_rows(2)
HEADER = "id,question,first,second,target\n"
ROW = "q1,Who?,Ada,Bruno,0\n"
TWO_COLUMNS = {"choices": ["first", "second"]}
MILLION = "x" * 1_000_001
ITEMS = {"name": "mine", "loader": "items", "prompt": "two-choice-medium", "language": "en"}
SQUAD = {"name": "mine", "loader": "squad_it", "prompt": "two-choice-low", "stand_ins": {"seed": 1}}
COMPANION = SQUAD | {"stand_ins": None, "wrong_answers": "wrong.jsonl", "path": "mill.json"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A bad data file, how the study file describes it, where the error must point and what it must say."""

    file: str
    content: bytes
    right: str
    row: int | None = None
    line: int | None = None
    field: str | None = None
    dataset: dict[str, Any]


def jsonl(*rows: dict[str, Any] | str, file: str = "mine.jsonl", **expected: Any) -> Case:  # noqa: ANN401
    """A bad JSON Lines file."""
    text = "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)
    return Case(file=file, content=text.encode(), **({"dataset": ITEMS} | expected))


def table(text: str | bytes, *, file: str = "mine.csv", columns: Any = TWO_COLUMNS, **expected: Any) -> Case:  # noqa: ANN401
    """A bad CSV or TSV file."""
    content = text.encode() if isinstance(text, str) else text
    return Case(file=file, content=content, dataset=ITEMS | {"columns": columns}, **expected)


def parquet(changes: dict[str, list[Any]] | bytes, **expected: Any) -> Case:  # noqa: ANN401
    """A bad Parquet file: a good row with columns replaced; a column without a value is left out."""
    if isinstance(changes, bytes):
        return Case(file="mine.parquet", content=changes, dataset=ITEMS, **expected)
    values = {key: [value] for key, value in GOOD.items()} | changes
    return Case(file="mine.parquet", content=as_parquet(values), dataset=ITEMS, **expected)


def as_parquet(values: dict[str, list[Any]]) -> bytes:
    """The bytes of a Parquet file with these columns."""
    buffer = io.BytesIO()
    pl.DataFrame({name: column for name, column in values.items() if column}).write_parquet(buffer)
    return buffer.getvalue()


def squad(at: str, value: object, **expected: Any) -> Case:  # noqa: ANN401
    """A bad SQuAD file: a good one with the value at a place replaced, or taken out where it is ... itself."""
    document = squad_document()
    inside: Any = document
    *way, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", at)]
    for part in way:
        inside = inside[part]
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    return squad_text(json.dumps(document), **expected)


def squad_text(text: str | bytes, *, file: str = "mine.json", **expected: Any) -> Case:  # noqa: ANN401
    """A SQuAD file that is none."""
    content = text.encode() if isinstance(text, str) else text
    return Case(file=file, content=content, dataset=SQUAD, **expected)


def companion(*rows: dict[str, Any], **expected: Any) -> Case:  # noqa: ANN401
    """A bad companion file beside a good SQuAD file."""
    return jsonl(*rows, file="wrong.jsonl", dataset=COMPANION, **expected)


def wrong(source_id: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row of a companion file."""
    return {"id": source_id, "wrong_answer": f"not that of {source_id}"} | changes


def packed(content: str, *, cut: int = 0) -> bytes:
    """Gzip, whole or cut short."""
    whole = gzip.compress(content.encode())
    return whole[: len(whole) - cut]


LINE = json.dumps(GOOD) + "\n"
MAPPED = ITEMS | {"columns": {"question": "prompt", "context": "passage"}}
PASSAGE = {"id": "a", "prompt": "Who?", "passage": None, "choices": ["a", "b"], "target": 0}
FLIPPED = packed(LINE)[:-6] + b"\0\0" + packed(LINE)[-4:]
QA = "data[0].paragraphs[0].qas[1]"

JSON_LINES = {
    "a million characters": jsonl(
        GOOD, SECOND | {"question": MILLION}, row=2, field="question", right="1,000,001 char.*at most 1,000,000"
    ),
    "a million characters in a choice": jsonl(
        GOOD | {"choices": ["a", MILLION]}, row=1, field="choices[1]", right="at most 1,000,000 are read"
    ),
    "an endless id": jsonl(GOOD | {"id": "q" * 501}, row=1, field="id", right="501 characters; an id has at most 500"),
    "null as an id": jsonl(GOOD | {"id": None}, row=1, field="id", right="is empty"),
    "a field twice": jsonl('{"id": "a", "id": "b"}', row=1, right="id stands twice; keep one"),
    "another case": jsonl(
        {("ID" if key == "id" else key): value for key, value in GOOD.items()},
        row=1,
        field="id",
        right=r"did you mean ID\?; the row has ID, .*columns: {id: NAME}",
    ),
    "a column that the study names": jsonl(
        PASSAGE,
        {("passages" if key == "passage" else key): value for key, value in PASSAGE.items()},
        dataset=MAPPED,
        row=2,
        field="passage",
        right=r"did you mean passages\?; columns.context of the study file names it",
    ),
    "a bad value in such a column": jsonl(PASSAGE | {"prompt": 5}, dataset=MAPPED, row=1, field="prompt", right="text"),
    "equal choices in a column of lists": jsonl(
        GOOD | {"pair": ["a", "a "]},
        dataset=ITEMS | {"columns": {"choices": "pair"}},
        row=1,
        field="pair",
        right="the choices are equal",
    ),
    "Latin-1 in one line": Case(
        file="mine.jsonl", content=LINE.encode() + b'{"id": "\xe0"}\n', dataset=ITEMS, line=2, right=r"UTF-8 \(byte 9"
    ),
    "UTF-16": Case(
        file="mine.jsonl", content=LINE.encode("utf-16"), dataset=ITEMS, line=1, right="UTF-16; save it as UTF-8"
    ),
    "packed under another name": Case(
        file="mine.jsonl", content=packed(LINE), dataset=ITEMS, line=1, right="packed with gzip; let its name end in"
    ),
    "not packed under that name": jsonl(LINE, file="mine.jsonl.gz", right="not a whole gzip file.* ends in .gz"),
    "gzip cut short": Case(
        file="mine.jsonl.gz", content=packed(LINE, cut=12), dataset=ITEMS, right="not a whole gzip file.* again"
    ),
    "gzip with a wrong sum": Case(file="mine.jsonl.gz", content=FLIPPED, dataset=ITEMS, right="not a whole gzip file"),
    "gzip of nothing": Case(file="mine.jsonl.gz", content=packed(""), dataset=ITEMS, right="no item in the file"),
    "an ending of no layout": jsonl(GOOD, file="mine.txt", right="ending '.txt' says no layout; known: .jsonl, .ndj"),
    "no ending": jsonl(GOOD, file="mine", right="ending '' says no layout"),
    "a packed Parquet file": jsonl(GOOD, file="mine.parquet.gz", right="'.parquet.gz' says no layout"),
}
TABLES = {
    "empty": table("", line=1, right="the first line is empty; it names the columns"),
    "blank first line": table("\n" + HEADER + ROW, line=1, right="the first line is empty"),
    "only a header": table(HEADER, right="there is no item in the file"),
    "a short row": table(HEADER + ROW + "q2,Who?,Ada,Bruno\n", row=2, right="4 cells under 5 columns"),
    "a comma outside of quotes": table(
        HEADER + ROW + "q2,Who, then?,Ada,Bruno,0\n", row=2, right="6 cells under 5 columns; .* stands in quotes"
    ),
    "ragged after an empty line": table(HEADER + ROW + "\nq2,\n", row=3, right="2 cells under 5 columns"),
    "a column twice": table("id,question,id\n", line=1, field="id", right="two columns have this name; keep or rename"),
    "semicolons": table(
        (HEADER + ROW).replace(",", ";"), line=1, right="one column, id;.*commas separate, not semicolons"
    ),
    "tabs in a .csv": table((HEADER + ROW).replace(",", "\t"), line=1, right="not tabs; name a file with tabs .tsv"),
    "commas in a .tsv": table(HEADER + ROW, file="mine.tsv", line=1, right="here tabs separate, not commas"),
    "no id": table(
        "question,first,second,target\nWho?,a,b,0\n",
        row=1,
        field="id",
        right="is missing; the row has question, first, second, target; if it has another name: columns: {id: NAME}",
    ),
    "a column misspelt": table(
        HEADER.replace("question", "qestion") + ROW, row=1, field="question", right=r"is missing; did you mean qestion"
    ),
    "a space in the header": table(
        HEADER.replace("question", " question") + ROW, row=1, field="question", right="did you mean ' question'"
    ),
    "a column of the study misspelt": table(
        HEADER + ROW,
        columns={"choices": ["first", "secnd"]},
        row=1,
        field="secnd",
        right=r"did you mean second\?; columns.choices of the study file names it; the row has id, question, first",
    ),
    "no choices": table(
        HEADER + ROW, columns=None, row=1, field="choices", right=r"columns: {choices: \[NAME, NAME\]}"
    ),
    "both choices in one cell": table(
        HEADER + ROW, columns={"choices": "first"}, row=1, field="first", right="holds one text; name two columns"
    ),
    "no target": table(
        "id,question,first,second\nq1,Who?,a,b\n", row=1, field="target", right="write empty cells where no choice is"
    ),
    "a letter as target": table(
        HEADER + "q1,Who?,a,b,A\n", row=1, field="target", right="whole number or empty, not 'A'; .* counted from 0"
    ),
    "a fraction as target": table(HEADER + "q1,Who?,a,b,0.0\n", row=1, field="target", right="not '0.0'"),
    "the word null as target": table(
        HEADER + "q1,Who?,a,b,null\n", row=1, field="target", right="or empty, not 'null'"
    ),
    "a target too high": table(HEADER + "q1,Who?,a,b,2\n", row=1, field="target", right="2 is out of range; .* 0 to 1"),
    "a negative target": table(HEADER + "q1,Who?,a,b,-1\n", row=1, field="target", right="-1 is out of range"),
    "an empty id": table(HEADER + ROW + ",Who?,a,b,0\n", row=2, field="id", right="is empty"),
    "a blank question": table(HEADER + "q1, ,a,b,0\n", row=1, field="question", right="is empty"),
    "an empty choice": table(HEADER + "q1,Who?,a,,0\n", row=1, field="second", right="is empty"),
    "equal choices": table(
        HEADER + "q1,Who?,a,a,0\n", row=1, field="first and second", right="equal; a swap would change nothing"
    ),
    "an id twice": table(HEADER + ROW + ROW, row=2, field="id", right="'q1' is also the id of row 1; ids must differ"),
    "a NUL": table(HEADER + "q1,Who\0?,a,b,0\n", row=1, field="question", right="NUL"),
    "a quote left open": table(HEADER + 'q1,"Who?,a,b,0\n' + ROW, row=1, right="a quote is opened and never closed"),
    "a stray quote": table(HEADER + 'q1,"Who" is?,a,b,0\n', row=1, right="not valid CSV: .*is written twice"),
    "lone carriage returns": table((HEADER + ROW).replace("\n", "\r"), line=1, right="save it with LF or CRLF"),
    "Latin-1": table(
        (HEADER + ROW).encode() + b"q2,Chi \xe8?,a,b,0\n", line=3, right=r"not UTF-8 \(byte 8 of the line\)"
    ),
    "UTF-16": table((HEADER + ROW).encode("utf-16"), line=1, right="not UTF-8 but UTF-16"),
    "a million characters": table(HEADER + f"q1,{MILLION},a,b,0\n", row=1, field="question", right="at most 1,000,000"),
    "ten million characters": table(HEADER + f"q1,{MILLION * 10},a,b,0\n", row=1, right="is a quote opened and never"),
    "gzip cut short": table(packed(HEADER + ROW, cut=9), file="mine.csv.gz", right="not a whole gzip file"),
    "gzip cut short, tabs": table(
        packed((HEADER + ROW).replace(",", "\t"), cut=9), file="mine.tsv.gz", right="not a whole gzip file"
    ),
}
PARQUET = {
    "not Parquet": parquet(LINE.encode(), right="not a Parquet file that can be read: .*; write it again"),
    "empty": parquet(b"", right="not a Parquet file that can be read"),
    "cut short": parquet(as_parquet({"id": ["a"]})[:-9], right="not a Parquet file that can be read"),
    "no rows": parquet(as_parquet({"id": ["a"]}), row=1, field="question", right="is missing; the row has id"),
    "no id": parquet({"id": []}, row=1, field="id", right=r"the row has language, .*columns: {id: NAME}"),
    "a number as id": parquet({"id": [7]}, row=1, field="id", right="must be text, not 7"),
    "null as question": parquet({"question": [None]}, row=1, field="question", right="is empty"),
    "bytes as question": parquet({"question": [b"Who?"]}, row=1, field="question", right="must be text, not b'Who"),
    "text as choices": parquet({"choices": ["a|b"]}, row=1, field="choices", right="must be a list of texts"),
    "one choice": parquet({"choices": [["a"]]}, row=1, field="choices", right="has 2 to 26 choices, not 1"),
    "a fraction as target": parquet({"target": [0.0]}, row=1, field="target", right="whole number or null, not 0.0"),
}
SQUADS = {
    "empty": squad_text("", right="the file is empty"),
    "JSON Lines": squad_text(LINE + LINE, right=r"not one JSON document: Extra data \(line 2"),
    "half a document": squad_text('{"data": [', right="not one JSON document"),
    "Latin-1": squad_text(b'{"data":\n ["\xe0"]}', line=2, right=r"not UTF-8 \(byte 4 of the line\)"),
    "gzip cut short": squad_text(packed(json.dumps(squad_document()), cut=8), file="mine.json.gz", right="whole gzip"),
    "a list": squad_text("[]", right=r"must be a JSON object with data, not \[\]"),
    "no data": squad("data", ..., field="data", right="is missing; there is version"),
    "no question at all": squad("data", [], right="there is no item in the file"),
    "an object as data": squad("data", {"a": 1}, field="data", right="must be a list, not {'a': 1}"),
    "text as an entry": squad("data[0]", "mill", field="data[0]", right="must be a JSON object with title, not 'mill'"),
    "no title": squad("data[0].title", ..., field="data[0].title", right="is missing; there is paragraphs"),
    "paragraphs misspelt": squad(
        "data[0]", {"title": "t", "paragraph": []}, field="data[0].paragraphs", right=r"did you mean paragraph\?"
    ),
    "no context": squad(
        "data[0].paragraphs[1].context", ..., field="data[0].paragraphs[1].context", right="is missing; there is qas"
    ),
    "a blank context": squad(
        "data[0].paragraphs[1].context", " ", field="data[0].paragraphs[1].context", right="is empty"
    ),
    "an endless context": squad(
        "data[0].paragraphs[0].context", MILLION, field="data[0].paragraphs[0].context", right="at most 1,000,000"
    ),
    "null as qas": squad(
        "data[0].paragraphs[0].qas", None, field="data[0].paragraphs[0].qas", right="must be a list, not None"
    ),
    "a number as id": squad(f"{QA}.id", 7, field=f"{QA}.id", right="must be text, not 7"),
    "an id twice": squad(
        f"{QA}.id",
        "m1",
        field=f"{QA}.id",
        right=r"question m1: 'm1' is also the id of data\[0\].paragraphs\[0\].qas\[0\]; ids must differ",
    ),
    "no answers": squad(f"{QA}.answers", ..., field=f"{QA}.answers", right="question m2: is missing; there is id"),
    "not one answer": squad(
        f"{QA}.answers", [], field=f"{QA}.answers", right="question m2: has no answer; take the question out"
    ),
    "a number as answer": squad(
        f"{QA}.answers[0].text", 7, field=f"{QA}.answers[0].text", right="question m2: must be text, not 7"
    ),
    "a bare answer": squad(f"{QA}.answers[0]", "barley", field=f"{QA}.answers[0]", right="a JSON object with text"),
    "no question text": squad(f"{QA}.question", "", field=f"{QA}.question", right="question m2: is empty"),
    "nothing wrong to choose": squad(
        "data[0].paragraphs[0].qas",
        [],
        field="data[0].paragraphs[1].qas[0]",
        right="question m3: no stand-in: .*take the question out, or give wrong_answers",
    ),
}
COMPANIONS = {
    "one question without": Case(
        file="mill.json",
        content=json.dumps(squad_document()).encode(),
        dataset=COMPANION,
        field="data[0].paragraphs[0].qas[0]",
        right="question m1: .*wrong.jsonl has no row with this id; add one with id and wrong_answer",
    ),
    "a field misspelt": companion(
        {"id": "m1", "wrong_answr": "x"}, row=1, field="wrong_answer", right=r"did you mean wrong_answr\?"
    ),
    "no id": companion({"wrong_answer": "x"}, row=1, field="id", right="is missing; the row has wrong_answer"),
    "an id twice": companion(
        wrong("m1"), wrong("m1"), row=2, field="id", right="also the id of row 1; ids must differ"
    ),
    "a blank answer": companion(wrong("m1", wrong_answer=" "), row=1, field="wrong_answer", right="is empty"),
    "the right answer": companion(
        wrong("m1"),
        wrong("m2", wrong_answer="Barley "),
        row=2,
        field="wrong_answer",
        right="is the right answer to question m2; write a wrong one",
    ),
}
CASES = {
    f"{kind}: {name}": case
    for kind, cases in (
        ("JSON Lines", JSON_LINES),
        ("table", TABLES),
        ("Parquet", PARQUET),
        ("SQuAD", SQUADS),
        ("wrong answers", COMPANIONS),
    )
    for name, case in cases.items()
}


def write_case(folder: Path, case: Case) -> Path:
    """The study file of a case, with its data file and what else it needs."""
    (folder / "mill.json").write_text(json.dumps(squad_document()), encoding="utf-8")
    (folder / "wrong.jsonl").write_text(json.dumps(wrong("m2")) + "\n", encoding="utf-8")
    study = write_study(folder, datasets=[{"path": case.file} | case.dataset])
    (folder / case.file).write_bytes(case.content)
    return study


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_bad_data_file_is_refused_with_its_place_field_and_what_would_be_right(tmp_path: Path, case: Case) -> None:
    study = write_case(tmp_path, case)
    before = contents(tmp_path)

    with pytest.raises(InputError) as caught:
        read_study(study)

    error = caught.value
    assert re.search(case.right, error.problem), error.problem
    assert (error.path, error.row, error.line, error.field) == (tmp_path / case.file, case.row, case.line, case.field)
    assert str(error).startswith(str(error.path))
    assert "\n" not in str(error)
    assert len(error.problem) < 400 + len(str(tmp_path))
    assert contents(tmp_path) == before


STUDIES = {
    "an unknown column of ours": (
        ITEMS | {"columns": {"questoin": "prompt"}},
        "columns.questoin",
        r"unknown field; did you mean question\?",
    ),
    "text as columns": (ITEMS | {"columns": "id"}, "columns", "must be a mapping of fields, not 'id'"),
    "a number as a column": (ITEMS | {"columns": {"id": 1}}, "columns.id", "found '1'; put it in quotes"),
    "no name of a column": (ITEMS | {"columns": {"id": ""}}, "columns.id", "at least 1 character"),
    "a number as choices": (ITEMS | {"columns": {"choices": 2}}, "columns.choices", r"or two columns: \[NAME, NAME\]"),
    "three columns of choices": (
        ITEMS | {"columns": {"choices": ["a", "b", "c"]}},
        "columns.choices",
        "^must be the column that holds the list of choices, or two",
    ),
    "one column for both choices": (ITEMS | {"columns": {"choices": ["a", "a"]}}, "columns.choices", "or two columns"),
    "columns for another loader": (
        SQUAD | {"path": "mill.json", "columns": {"id": "key"}},
        "columns",
        "only loader items takes columns; take this field out",
    ),
    "stand-ins for another loader": (
        ITEMS | {"stand_ins": {"seed": 1}},
        "stand_ins",
        "only loader squad_it takes this field; take it out",
    ),
    "wrong answers for another loader": (
        ITEMS | {"wrong_answers": "wrong.jsonl"},
        "wrong_answers",
        "only loader squad_it takes this field",
    ),
    "a setting for another loader": (SQUAD | {"setting": "low"}, "setting", "no other loader takes one"),
    "neither wrong answers nor stand-ins": (
        SQUAD | {"stand_ins": None},
        "loader",
        "needs one of the two: wrong_answers: FILE, or stand_ins: {seed: 1}",
    ),
    "wrong answers and stand-ins": (SQUAD | {"wrong_answers": "wrong.jsonl"}, "stand_ins", "needs one of the two"),
    "a number as stand-ins": (SQUAD | {"stand_ins": 1}, "stand_ins", "must be a mapping of fields, not 1"),
    "stand-ins without a seed": (SQUAD | {"stand_ins": {}}, "stand_ins.seed", "is missing"),
    "stand-ins with a word as seed": (SQUAD | {"stand_ins": {"seed": "one"}}, "stand_ins.seed", "integer; found 'one'"),
    "a language in words": (ITEMS | {"language": "in English"}, "language", "found 'in English'"),
    "a language that YAML takes for false": (
        ITEMS | {"language": False},
        "language",
        "found 'False'; put it in quotes",
    ),
    "a variable that is not set": (
        ITEMS | {"path": "${NOT_SET_HERE}/items.jsonl"},
        "path",
        "NOT_SET_HERE is not set; set it to the file's path, or give the file with --data mine=PATH",
    ),
    "a variable that is empty": (ITEMS | {"path": "${EMPTY}"}, "path", "the variable EMPTY is not set"),
    "a variable with a hyphen": (
        ITEMS | {"path": "${SQUAD-IT}"},
        "path",
        r"'\${SQUAD-IT}' is no variable; write \${NAME}",
    ),
    "a variable without its end": (ITEMS | {"path": "${SQUAD_IT"}, "path", "is no variable; write"),
    "an unset variable for the wrong answers": (
        COMPANION | {"wrong_answers": "${NOT_SET_HERE}"},
        "wrong_answers",
        "the variable NOT_SET_HERE is not set; set it to the file's path, or write the path here",
    ),
    "a folder": (ITEMS | {"path": "folder"}, "path", "folder is a folder, not a file"),
    "no such wrong answers": (COMPANION | {"wrong_answers": "gone.jsonl"}, "wrong_answers", "no file .*gone.jsonl"),
    "a name that no file can have": (ITEMS | {"path": "x" * 300}, "path", "x cannot be read: File name too long"),
    "a path through a file": (ITEMS | {"path": "items.jsonl/x"}, "path", "there is no file"),
    "a prompt that no file can have": (ITEMS | {"prompt": "x" * 300 + ".txt"}, "prompt", "File name too long"),
    "a number as a path": (ITEMS | {"path": 7}, "path", "valid string; found '7'; put it in quotes"),
    "an expectation of the whole file": (
        SQUAD | {"path": "mill.json", "expect": {"items": 4}},
        "expect.items",
        "the file holds 3 items, the study expects 4",
    ),
}


@pytest.mark.parametrize(("dataset", "field", "right"), STUDIES.values(), ids=STUDIES.keys())
def test_a_bad_dataset_is_refused_with_its_line_field_and_what_would_be_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: dict[str, Any], field: str, right: str
) -> None:
    monkeypatch.setenv("EMPTY", "")
    path = write_study(tmp_path, datasets=[{"path": "items.jsonl"} | dataset])
    (tmp_path / "mill.json").write_text(json.dumps(squad_document()), encoding="utf-8")
    (tmp_path / "folder").mkdir()
    before = contents(tmp_path)

    with pytest.raises(InputError) as caught:
        read_study(path)

    error = caught.value
    assert re.search(right, error.problem), error.problem
    assert (error.path, error.field) == (path, f"datasets[0].{field}")
    assert error.line == line_of(path, field)
    assert str(error) == f"{path}:{error.line}: datasets[0].{field}: {error.problem}"
    assert contents(tmp_path) == before


def line_of(study: Path, field: str) -> int:
    """The line of the study file that a field of its only dataset stands in, or the one around it."""
    lines = study.read_text("utf-8").splitlines()
    end = lines.index("models:")
    numbers = [
        number
        for depth, part in enumerate(field.split("."), start=1)
        for number, text in enumerate(lines[:end], start=1)
        if text.replace("- ", "  ").startswith(f"{'  ' * depth}{part}:")
    ]
    return numbers[-1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    (tmp_path / "items.jsonl").chmod(0)

    with pytest.raises(InputError, match=r"items.jsonl: cannot be read: Permission denied"):
        read_study(path)


def test_a_file_is_given_only_to_a_dataset_that_there_is(tmp_path: Path) -> None:
    path = write_study(tmp_path)

    with pytest.raises(UsageError, match=r"--data capitols: study trial has no such dataset; it has capitals"):
        read_study(path, data={"capitols": tmp_path / "items.jsonl"})
    with pytest.raises(UsageError, match=r"--data capitals: there is no file .*gone.jsonl"):
        read_study(path, data={"capitals": tmp_path / "gone.jsonl"})


def test_parquet_without_polars_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = PARQUET["a number as id"]
    study = write_case(tmp_path, case)
    monkeypatch.setitem(sys.modules, "polars", None)

    with pytest.raises(InputError, match=re.escape("pip install bothways[report]")):
        read_study(study)


PLAIN: list[dict[str, Any]] = [
    {"id": "a", "question": "Who, then?", "choices": ['Ada "A."', "Bruno"], "target": 0, "context": "One\ntwo."},
    {"id": "b", "question": "Perché?", "choices": ["x", "y"], "target": None, "context": None},
]
AS_TABLE = (
    "id,question,first,second,target,context\n"
    'a,"Who, then?","Ada ""A.""",Bruno,0,"One\ntwo."\n'
    "b,Perché?,x,y,,\n"
)  # fmt: skip
AS_JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in PLAIN)
LAYOUTS = {
    "JSON Lines": ("good.jsonl", AS_JSONL.encode(), None),
    "byte order mark, JSON Lines": ("good.ndjson", AS_JSONL.encode("utf-8-sig"), None),
    "CRLF, JSON Lines": ("good.jsonl", AS_JSONL.replace("\n", "\r\n").encode(), None),
    "packed JSON Lines": ("good.jsonl.gz", packed(AS_JSONL), None),
    "CSV": ("good.csv", AS_TABLE.encode(), TWO_COLUMNS),
    "byte order mark, CSV": ("good.csv", AS_TABLE.encode("utf-8-sig"), TWO_COLUMNS),
    "CRLF, CSV": (
        "good.CSV",
        AS_TABLE.replace("\n", "\r\n").replace("One\r\n", "One\n").encode("utf-8-sig"),
        TWO_COLUMNS,
    ),
    "CSV with an empty line": ("good.csv", (AS_TABLE + "\n").encode(), TWO_COLUMNS),
    "packed CSV": ("good.csv.gz", packed(AS_TABLE), TWO_COLUMNS),
    "tabs": ("good.tsv", AS_TABLE.replace("Who,", "Who%").replace(",", "\t").replace("%", ",").encode(), TWO_COLUMNS),
    "Parquet": ("good.parquet", as_parquet({key: [row[key] for row in PLAIN] for key in PLAIN[0]}), None),
}


@pytest.mark.parametrize(("name", "content", "columns"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_same_items(tmp_path: Path, name: str, content: bytes, columns: Any) -> None:  # noqa: ANN401
    path = write_study(tmp_path, datasets=[ITEMS | {"path": name, "columns": columns}])
    (tmp_path / name).write_bytes(content)

    items = read_study(path).items["mine"]

    assert [(item.source_id, item.question, item.choices, item.target, item.context) for item in items] == [
        (row["id"], row["question"], tuple(row["choices"]), row["target"], row["context"]) for row in PLAIN
    ]
    assert {item.language for item in items} == {"en"}


def test_columns_rename_every_field_and_an_unnamed_column_is_passed_over(tmp_path: Path) -> None:
    columns = {
        "id": "key",
        "question": "prompt",
        "choices": ["left", "right"],
        "target": "best",
        "context": "question",
        "cluster": "thread",
        "language": "tongue",
    }
    path = write_study(tmp_path, datasets=[ITEMS | {"path": "mine.csv", "columns": columns}])
    text = ",key,prompt,left,right,best,question,thread,tongue,\n0,k,Who?,a,b,1,Some text.,t7,it,\n"
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")

    (item,) = read_study(path).items["mine"]

    assert item == Item(
        dataset="mine",
        source_id="k",
        question="Who?",
        choices=("a", "b"),
        target=1,
        context="Some text.",
        cluster="t7",
        language="it",
    )


def test_a_path_is_filled_from_the_environment_and_a_given_file_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    for name, row in (("one", GOOD), ("two", SECOND)):
        (tmp_path / "data" / f"{name}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    path = write_study(tmp_path / "studies", datasets=[ITEMS | {"path": "../data/${WHICH}.jsonl"}])
    whole = write_study(tmp_path / "others", datasets=[ITEMS | {"path": "${DATA}/one.jsonl"}])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHICH", "one")
    monkeypatch.setenv("DATA", "data")

    beside, from_here = read_study(path), read_study(whole)
    monkeypatch.delenv("WHICH")
    given = read_study(path, data={"mine": Path("data/two.jsonl")})

    assert [loaded.items["mine"][0].source_id for loaded in (beside, from_here, given)] == ["q0", "q0", "q1"]
    assert given.study.datasets[0].path == yaml.safe_load(path.read_text("utf-8"))["datasets"][0]["path"]


def test_there_are_well_over_sixty_bad_files() -> None:
    assert len(CASES) + len(STUDIES) >= 60
