"""YAML with its lines: plain values, and where each field was written."""

from pathlib import Path

import pytest

from contract.errors import InputError
from contract.yaml_lines import FieldPath, YamlDocument, print_path

PATH = Path("study.yaml")
TEXT = """\
# a comment
study: trial
models:
  - name: one
    options:
      seed: 3
  - {name: two,
     latency: 0.5}
note: |
  several
  lines
on_time: yes
nothing:
"""


def read(text: str) -> YamlDocument:
    """The document of `text`."""
    return YamlDocument(PATH, text)


def test_values_are_those_of_yaml() -> None:
    assert read(TEXT).values == {
        "study": "trial",
        "models": [{"name": "one", "options": {"seed": 3}}, {"name": "two", "latency": 0.5}],
        "note": "several\nlines\n",
        "on_time": True,
        "nothing": None,
    }


@pytest.mark.parametrize(
    ("field", "line"),
    [
        pytest.param(("study",), 2, id="top-level field"),
        pytest.param(("models",), 3, id="list"),
        pytest.param(("models", 0), 4, id="entry of a list"),
        pytest.param(("models", 0, "options", "seed"), 6, id="nested field"),
        pytest.param(("models", 1, "name"), 7, id="field in braces"),
        pytest.param(("models", 1, "latency"), 8, id="field in braces, next line"),
        pytest.param(("note",), 9, id="block text"),
        pytest.param(("nothing",), 13, id="field without a value"),
        pytest.param(("models", 1, "timeout_s"), 7, id="missing field: the entry that lacks it"),
        pytest.param(("models", 5), 3, id="missing entry: the list"),
        pytest.param(("studdy",), 2, id="missing top-level field: where the document begins"),
    ],
)
def test_a_field_is_on_the_line_it_was_written_on(field: FieldPath, line: int) -> None:
    assert read(TEXT).line_of(field) == line


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param("a: 1\nb:\n\t- c\n", 3, r"not valid YAML: .*'\\t'", id="tab"),
        pytest.param("a: 1\nb: {c: 2\n", 3, "not valid YAML: expected ',' or '}'", id="brace left open"),
        pytest.param("a: 1\na: 2\n", 2, "a: stands twice; keep one", id="field twice"),
        pytest.param("a:\n - b: 1\n   c: 2\n   b: 3\n", 4, r"a\[0\]\.b: stands twice", id="nested field twice"),
        pytest.param("a: 1\n2: b\n", 2, "a name before a colon must be text; quote it", id="number as a name"),
        pytest.param("a: 1\nno: b\n", 2, "a name before a colon must be text; quote it", id="no as a name"),
        pytest.param("a: 1\n? [b]\n: c\n", 2, "a name before a colon must be text; quote it", id="list as a name"),
        pytest.param("a: 1\nb: *other\n", 2, "undefined alias 'other'", id="alias without anchor"),
        pytest.param("a: !!python/name:os.system\n", 1, "could not determine a constructor", id="Python tag"),
        pytest.param("a: 1\n---\nb: 2\n", 2, "another document", id="two documents"),
        pytest.param("a: 1\nb: &b [*b]\n", 2, "recursive|holds itself", id="alias that holds itself"),
        pytest.param("a: 1\nb: 2024-13-45\n", 2, "looks like a value and is none", id="date that no calendar has"),
        pytest.param("a: 1\nb: 0x_\n", 2, "looks like a value and is none", id="number without digits"),
        pytest.param("a: 1\nb: " + "9" * 5000 + "\n", 2, "looks like a value and is none", id="number of 5000 digits"),
        pytest.param("a: " + "[" * 5000 + "]" * 5000, None, "nested too deeply", id="nested beyond reason"),
        pytest.param("a: 1\nb: \x07\n", None, "not valid YAML: .*#x0007", id="control character"),
    ],
)
def test_what_yaml_cannot_read_is_refused_with_its_line(text: str, line: int | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        read(text)

    assert caught.value.path == PATH
    assert line in (None, caught.value.line)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"], ids=["empty", "blank lines", "comment"])
def test_a_file_with_nothing_in_it_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="the file is empty; a study file begins with `study: NAME`"):
        read(text)


def test_an_anchor_and_its_alias_give_the_value_twice() -> None:
    assert read("a: &x {b: 1}\nc: *x\n").values == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("field", "printed"),
    [
        ((), ""),
        (("study",), "study"),
        (("models", 0), "models[0]"),
        (("models", 0, "options", "seed"), "models[0].options.seed"),
    ],
    ids=["nothing", "field", "entry", "nested"],
)
def test_a_path_is_printed_as_people_write_it(field: FieldPath, printed: str) -> None:
    assert print_path(field) == printed
