"""Table 1 outside the terminal: in the paper's layout, escaped, whole."""

import re
from dataclasses import replace

import polars as pl
import pytest

from analysis.columns import Topic
from analysis.drawing import KINDS, encoded
from analysis.latex import escaped, to_latex
from analysis.pairing import RESULT_SCHEMA
from analysis.table_one import NOTHING, table_one, table_one_csv
from analysis.tables import Report, build
from tests.unit.test_figures import LONG_DATASET, LONG_MODEL, MEASURED, UNMEASURED, boxes, grid, words
from tests.unit.test_tables import jobs, report

NOMINAL = report(*(jobs("AA" if i % 3 else "AB", item=i, dataset="High", target=None) for i in range(9)))
RETRIED = [jobs("NB", item=0), *(jobs("AB", item=i) for i in range(1, 9))]
RETRIED[0][0] |= {"final_outcome": "answered", "final_choice": 0}


def rows(latex: str) -> list[str]:
    """The lines of the body."""
    body = latex.split(r"\midrule")[1].split(r"\bottomrule")[0].splitlines()
    return [line for line in body if line.endswith(r"\\")]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]


def test_latex_has_the_papers_layout_between_booktabs_rules() -> None:
    latex = to_latex(grid(2, 2), n=False, intervals=False)
    assert re.findall(r"\\(toprule|cmidrule\S*|midrule|bottomrule)", latex) == [
        "toprule",
        "cmidrule(lr){3-4}",
        "cmidrule(lr){5-6}",
        "midrule",
        "bottomrule",
    ]
    assert r"\begin{tabular}{llrrrr}" in latex
    assert r"&  & \multicolumn{2}{c}{Correct-first} & \multicolumn{2}{c}{Wrong-first} \\" in latex
    assert r"Dataset & Model & Accuracy & \# Invalid & Accuracy & \# Invalid \\" in latex
    assert [cells(line) for line in rows(latex)] == [
        ["dataset-0", "model-0", "0.900", "2", "0.700", "0"],
        ["", "model-1", "0.900", "2", "0.700", "0"],
        ["dataset-1", "model-0", "0.900", "2", "0.700", "0"],
        ["", "model-1", "0.900", "2", "0.700", "0"],
    ]
    assert latex.count(r"\addlinespace") == 1


def test_latex_gives_n_and_intervals_unless_told_otherwise() -> None:
    (line,) = rows(to_latex(MEASURED))
    assert cells(line) == ["d", "m", "0.900 [.699, .972]", "20", "2", "0.700 [.481, .855]", "20", "0"]
    (line,) = rows(to_latex(MEASURED, intervals=False))
    assert cells(line) == ["d", "m", "0.900", "20", "2", "0.700", "20", "0"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 50 % #1 $x$", r"a\_b \& 50 \% \#1 \$x\$"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ('~^|<>"`', r"\textasciitilde{}\textasciicircum{}\textbar{}\textless{}\textgreater{}\char34{}\char96{}"),
        ("a--b ''c,,", r"a-{}-b '{}'c,{},"),
        ("[2mm]", "{}[2mm]"),
        ("*", "{}*"),
        ("two\nlines\x00", "two lines "),
        ("perche\u0301", "perché"),
        ("† –", r"\textdagger{} \textendash{}"),
    ],
)
def test_texts_are_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_no_name_can_give_orders_to_latex() -> None:
    latex = to_latex(grid(1, 1, "\\write18{{rm}} % {{", "a & b \\\\"), title_note="} \\end{table} %")
    assert [len(cells(line)) for line in rows(latex)] == [8]
    assert r"\write" not in latex
    assert latex.count(r"\end{table}") == 1
    bare = re.sub(r"\\[{}%]", "", latex)
    assert bare.count("{") == bare.count("}")


def test_long_names_get_a_column_that_breaks_them() -> None:
    latex = to_latex(grid(2, 2, LONG_DATASET, LONG_MODEL))
    assert r"\begin{tabular}{p{2.9cm}p{2.9cm}rrrrrr}" in latex
    dataset, model = (cell.replace(r"\allowbreak{}", "").replace(r"\_", "_") for cell in cells(rows(latex)[0])[:2])
    assert (dataset, model) == (LONG_DATASET.format(0), LONG_MODEL.format(0))
    for name in cells(rows(latex)[0])[:2]:
        assert max(map(len, re.split(r"\\allowbreak\{\}| ", name))) <= 14


def test_a_long_table_goes_over_pages_with_its_head_on_each() -> None:
    latex = to_latex(grid(4, 12), title_note="a trial")
    assert latex.startswith(r"% needs \usepackage{booktabs,longtable}")
    assert latex.index(r"\caption") < latex.index(r"\toprule") < latex.index(r"\endhead") < latex.index(r"\endfoot")
    assert latex.index(r"\end{longtable}") < latex.index(r"\begin{minipage}")
    assert latex.count(" \\\\\n") == 3 + 4 * 12


def test_rows_without_a_right_choice_are_marked_and_explained_in_every_form() -> None:
    latex = to_latex(NOMINAL)
    assert cells(rows(latex)[0])[0] == r"High \textdagger{}"
    assert r"\textdagger{} No choice is right" in latex
    drawn = words(table_one(NOMINAL))
    assert "High †" in drawn
    assert "† No choice is right" in drawn
    header, line, _ = table_one_csv(NOMINAL)
    assert dict(zip(header, line, strict=True))["means"] == "nominal accuracy"
    assert "No choice is right" not in to_latex(MEASURED) + words(table_one(MEASURED))


def test_absence_is_a_dash_and_an_empty_cell_and_never_a_zero() -> None:
    assert cells(rows(to_latex(UNMEASURED))[0])[2:] == [r"\textendash{}", "0", "0"] * 2
    assert words(table_one(UNMEASURED)).count(" – 0 0") == 2
    header, line, _ = table_one_csv(UNMEASURED)
    made = dict(zip(header, line, strict=True))
    assert made["correct_first_accuracy"] == made["wrong_first_accuracy_low"] == ""
    assert (made["correct_first_accuracy_n"], made["correct_first_missing"]) == ("0", "3")


def test_views_that_differ_stand_side_by_side() -> None:
    first, last = (cells(line) for line in rows(to_latex(report(*RETRIED), n=False, intervals=False)))
    assert first == ["d", "m", "first", "0.889", "1", "1.000", "0"]
    assert last == ["", "", "final", "1.000", "0", "1.000", "0"]
    assert "first final" in words(table_one(report(*RETRIED)))


def test_the_csv_counts_invalid_and_refused_as_the_paper_does() -> None:
    header, line, _ = table_one_csv(report(*(jobs(code, item=i) for i, code in enumerate(["AB", "NB", "RB", "FB"]))))
    made = dict(zip(header, line, strict=True))
    assert made["correct_first_accuracy"] == str(1 / 3)
    assert (made["correct_first_invalid_or_refused"], made["correct_first_failed"]) == ("2", "1")


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(grid(1, 1), id="one"),
        pytest.param(grid(8, 12), id="largest"),
        pytest.param(grid(2, 2, LONG_DATASET, LONG_MODEL), id="long"),
        pytest.param(grid(2, 2, "x" * 80 + "{}", "W" * 80 + "{}"), id="without a place to break"),
        pytest.param(Report(rows=(*report(*RETRIED).rows, *NOMINAL.rows)), id="two views"),
    ],
)
def test_every_text_is_on_the_canvas_and_over_no_other(made: Report) -> None:
    figure = table_one(made, title_note="stand-in distractors " * 8)
    placed = sorted(boxes(figure).values(), key=lambda box: -box.y1)
    for at, box in enumerate(placed):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
        below = (other for other in placed[at + 1 : at + 20])
        assert not any(box.padded(-1.5).overlaps(other.padded(-1.5)) for other in below)


def test_long_names_are_drawn_whole() -> None:
    drawn = {text.get_text() for text in table_one(grid(1, 2, LONG_DATASET, LONG_MODEL)).texts}
    for name in (LONG_DATASET.format(0), LONG_MODEL.format(0), LONG_MODEL.format(1)):
        parts = [text for text in drawn if text in name]
        assert set(name) == set("".join(parts))
        assert sum(map(len, parts)) >= len(name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_table_makes_the_same_bytes(kind: str) -> None:
    first, second = (encoded(table_one(grid(2, 2)), kind, Topic.ACCURACY) for _ in range(2))
    assert first == second


def test_without_results_every_form_says_so() -> None:
    nothing = build(pl.DataFrame(schema=RESULT_SCHEMA))
    assert NOTHING in to_latex(nothing)
    assert NOTHING in words(table_one(nothing))
    assert table_one_csv(nothing) == []


def test_the_note_is_in_the_title_of_every_form() -> None:
    assert r"\caption{Accuracy by where the right choice stood (50 \% stand-in)}" in to_latex(
        MEASURED, title_note="50 % stand-in"
    )
    assert words(table_one(MEASURED, title_note="a trial")).startswith(f"{Topic.ACCURACY} (a trial)")
    header, *made = table_one_csv(MEASURED, title_note="a trial")
    assert header[0] == "title_note"
    assert [line[0] for line in made] == ["a trial"] * 2


def test_first_and_final_are_in_the_csv_even_where_they_agree() -> None:
    assert [line[2] for line in table_one_csv(Report(rows=tuple(replace(r) for r in MEASURED.rows)))] == [
        "view",
        "first",
        "final",
    ]
