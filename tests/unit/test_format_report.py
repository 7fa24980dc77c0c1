"""What people and programs read of several formats: text, CSV, LaTeX, JSON and heat maps."""

import csv
import json
import re
from itertools import product
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.bbq_scores import SUBSETS, BiasScores
from analysis.drawing import INK, KINDS
from analysis.format_findings import find
from analysis.format_render import NOTHING as EMPTY
from analysis.format_render import score_lines, to_json, to_latex, to_text
from analysis.format_report import write_format_report
from analysis.heat_maps import heat_maps
from analysis.opinion_scores import Distances
from analysis.opinion_tables import OpinionScores, QuestionDistances
from analysis.render import csv_rows
from tests.unit.test_figures import LONG_MODEL, boxes, words
from tests.unit.test_format_tables import NOTHING, about, apart, bias

SCALES = [f"{points}-{polarity}" for points in (2, 4, 5, 9, 10) for polarity in ("positive", "negative")]
VARIANTS = {"closed": ["123", "321"], "likert": SCALES, "open": ["reasoning", "no-reasoning"]}


def biases(*models: str) -> list[BiasScores]:
    return [
        bias(model, form, variant, subset, s_dis=about(0.01 * at - 0.1))
        for at, (model, form) in enumerate(product(models, VARIANTS))
        for variant in (*VARIANTS[form], "all")
        for subset in SUBSETS
    ]


def distances(*models: str) -> list[OpinionScores]:
    return [
        apart(model, form, variant) for model in models for form in VARIANTS for variant in (*VARIANTS[form], "all")
    ]


def cells_of(figure: Figure) -> list[Rectangle]:
    """The boxes that are cells, and not of the legend."""
    figure.draw_without_rendering()
    drawn = [artist for artist in figure.artists if isinstance(artist, Rectangle)]
    return [box for box in drawn if round(box.get_width(), 2) == 0.62]


def test_no_line_of_the_text_is_wider_than_asked_for() -> None:
    findings = find(biases("m", LONG_MODEL.format(1)), distances("m", LONG_MODEL.format(1)))
    for width in (100, 120):
        lines = to_text(findings, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_the_text_has_formats_side_by_side_with_intervals() -> None:
    text = to_text(find([bias("a", "closed"), bias("a", "open", s_dis=about(0.2))], []), title_note="a trial")
    table = text.splitlines()[:4]
    assert table[0] == "BBQ, s_DIS by format, all variants pooled (a trial)"
    assert table[1].split() == ["Model", "Subset", "closed", "Likert", "open"]
    assert " ".join(table[3].split()) == "a combined 1.0 [-1.0, 3.0] – 20.0* [18.0, 22.0]"


def test_names_are_printed_as_they_are() -> None:
    assert "[bold]x[/] m" in to_text(find([bias("[bold]x[/] m")], []))


def test_the_csv_has_every_score_once_and_at_full_precision() -> None:
    lines = score_lines(find(biases("m"), distances("m")))
    keys = [tuple(line[key] for key in ("score", "model", "subset", "format", "variant")) for line in lines]
    variants = sum(len(each) + 1 for each in VARIANTS.values())
    assert len(keys) == len(set(keys)) == variants * 3 * 3 + (len(SCALES) + 1) * 3 + variants * 3
    header, line = csv_rows(score_lines(find([bias(s_dis=about(-1 / 3))], []))[:1])
    made = dict(zip(header, line, strict=True))
    assert (made["value"], made["leaves_zero_out"], made["n"], made["invalid"]) == (str(-1 / 3), "True", "1080", "3")


def test_what_was_asked_without_a_value_is_an_empty_cell_and_what_was_not_asked_no_line() -> None:
    lines = score_lines(find([bias(s_dis=NOTHING)], []))
    assert [(line["score"], line["format"]) for line in lines] == [
        (s, "closed") for s in ("s_DIS", "s_AMB", "accuracy")
    ]
    header, line, *_ = csv_rows(lines)
    assert dict(zip(header, line, strict=True))["value"] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_a_model_that_looks_like_a_formula_is_guarded(start: str) -> None:
    header, line, *_ = csv_rows(score_lines(find([bias(f"{start}1+1")], [])))
    assert dict(zip(header, line, strict=True))["model"] == f"'{start}1+1"


def test_latex_has_table_2_between_booktabs_rules_with_minus_signs() -> None:
    latex = to_latex(find([bias("a"), bias("a", "open"), bias("b", s_dis=about(-0.019))], []), title_note="50 %")
    first = latex.split(r"\end{table}")[0]
    assert r"\caption{Bias on BBQ by format, in per cent (50 \%)}" in first
    assert r"\cmidrule(lr){3-5} \cmidrule(lr){6-8} \cmidrule(lr){9-11}" in first
    assert latex.count("the interval of s\\_DIS or s\\_AMB leaves 0 out") == first.count("leaves 0 out") == 1
    assert re.findall(r"\\(toprule|midrule|bottomrule)", first) == ["toprule", "midrule", "bottomrule"]
    assert r"b & combined & \textminus{}1.9 & \textendash{} & \textendash{} & \textminus{}10.0* &" in first


def test_no_name_can_give_orders_to_latex() -> None:
    latex = to_latex(find([bias("\\write18{rm} & $x_1$ %"), bias("a-1")], [apart("\\input{x} \\\\")]))
    assert r"\write" not in latex
    assert r"\input" not in latex
    assert r"a-1 & combined" in latex
    bare = re.sub(r"\\[{}%&]", "", latex)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)\$", latex)


def test_json_is_plain_and_survives_the_round_trip() -> None:
    plain = to_json(find([bias("a"), bias("a", "open", s_dis=NOTHING)], [apart("a")]), title_note="a trial")
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["title_note"] == "a trial"
    values = {(line["score"], line["format"]): line["value"] for line in plain["scores"]}
    assert values["s_DIS", "open"] is None
    assert ("s_DIS", "likert") not in values


def test_a_heat_map_has_a_cell_a_model_variant_and_score_with_its_figure() -> None:
    made = [bias("a", "open", "reasoning", s_dis=about(0.2)), bias("a", "open", "no-reasoning", s_dis=about(-0.2))]
    (drawn,) = heat_maps(find(made, []).variants, title_note="a trial")
    assert (drawn.name, len(cells_of(drawn.figure))) == ("heat-bbq-open", 2 * 3)
    assert words(drawn.figure).startswith("BBQ: open answers by model and variant (a trial) s_DIS")
    assert {"20.0*", "-20.0*", "70.0"} <= {text.get_text() for text in drawn.figure.texts}


def test_cells_without_a_figure_are_hatched_and_bear_no_number() -> None:
    made = [bias("a", variant="123", s_dis=NOTHING), bias("a", variant="321"), bias("b", variant="123")]
    drawn, *_ = heat_maps([table for table in find(made, []).variants if table.score.name == "s_DIS"])
    assert [bool(box.get_hatch()) for box in cells_of(drawn.figure)] == [True, False, False, True]
    assert "no data, or not asked" in words(drawn.figure)
    assert [text.get_text() for text in drawn.figure.texts].count("1.0") == 2


def test_colours_are_centred_on_zero_and_mean_the_same_in_every_picture() -> None:
    made = [
        bias("a", "closed", "123", s_dis=about(0.2)),
        bias("a", "closed", "321", s_dis=about(-0.55)),
        bias("a", "open", "reasoning", s_dis=about(0.2)),
        bias("a", "open", "no-reasoning", s_dis=about(0.0)),
    ]
    closed, opened = heat_maps([table for table in find(made, []).variants if table.score.name == "s_DIS"])
    colours = [[to_rgb(box.get_facecolor()) for box in cells_of(drawn.figure)] for drawn in (closed, opened)]
    assert colours[0][0] == colours[1][0]
    assert max(colours[1][1]) - min(colours[1][1]) < 0.02
    texts = [text.get_text() for text in opened.figure.texts]
    assert {"-60.0", "60.0"} <= set(texts)


@pytest.mark.parametrize("models", [("m",), (LONG_MODEL.format(1), "W" * 80, "模型 $x$")])
def test_every_text_of_a_heat_map_is_on_the_canvas_and_over_no_other(models: tuple[str, ...]) -> None:
    made = [record for record in biases(*models) if record.format == "likert" and record.subset == "labels"]
    (drawn,) = heat_maps(find(made, []).variants, title_note="stand-in distractors " * 8)
    placed = sorted(boxes(drawn.figure).values(), key=lambda box: -box.y1)
    assert max(drawn.figure.get_size_inches()[0], 9.0) == 9.0
    for at, box in enumerate(placed):
        assert 0 <= box.x0 < box.x1 <= drawn.figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= drawn.figure.bbox.y1
        below = (other for other in placed[at + 1 : at + 40])
        assert not any(box.padded(-1.5).overlaps(other.padded(-1.5)) for other in below)


def test_the_folder_has_every_form_and_none_is_empty(tmp_path: Path) -> None:
    made = [bias(m, f, v) for m, f in product("ab", ("closed", "open")) for v in (*VARIANTS[f], "all")]
    files = write_format_report(made, [apart("a")], tmp_path / "new", title_note=None, width=100)
    names = [path.name for path in files.paths]
    maps = [f"heat-bbq-{form}.{kind}" for form in ("closed", "open") for kind in KINDS]
    assert names == ["formats.txt", "formats.tex", "formats.csv", "formats-rankings.csv", *maps, "formats.json"]
    assert all(path.stat().st_size > 500 for path in files.paths)
    with files.paths[2].open(encoding="utf-8", newline="") as opened:
        assert len(list(csv.DictReader(opened))) == len(files.data["scores"])
    assert files.text == to_text(find(made, [apart("a")]), 100)


def test_reversals_have_a_file_where_there_are_any(tmp_path: Path) -> None:
    made = [
        bias(m, f, s_dis=about(0.3 if (m, f) in {("a", "closed"), ("b", "open")} else 0.1))
        for m in "ab"
        for f in ("closed", "open")
    ]
    files = write_format_report(made, [], tmp_path, title_note="a trial")
    text = (tmp_path / "formats-reversals.csv").read_text(encoding="utf-8").splitlines()
    assert text[1] == "a trial,BBQ,|s_DIS|,combined,b,a,closed,open,clear"
    assert files.data["reversals"][0]["mark"] == "clear"


def test_distances_are_written_question_by_question(tmp_path: Path) -> None:
    known = QuestionDistances(
        key="TEA", n=4, shares=(0.25, 0.75), distances=Distances(w_dist=0.5, js_dist=0.25, composite=0.375)
    )
    unanswered = QuestionDistances(key="MILK", n=0, shares=None, distances=None)
    write_format_report([], [apart("a", questions=(known, unanswered))], tmp_path)

    with (tmp_path / "formats-questions.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["question"], first["n"], first["composite"]) == ("TEA", "4", "0.375")
    assert first["shares"] == "0.250000 0.750000"
    assert (second["question"], second["n"], second["w_dist"], second["shares"]) == ("MILK", "0", "", "")


def test_without_scores_every_form_says_so(tmp_path: Path) -> None:
    files = write_format_report([], [], tmp_path)
    assert [path.name for path in files.paths] == ["formats.txt", "formats.tex", "formats.json"]
    assert files.text == f"{EMPTY}\n"
    assert EMPTY in (tmp_path / "formats.tex").read_text(encoding="utf-8")


def test_figures_are_white_on_what_is_dark_and_dark_on_what_is_light() -> None:
    made = [
        bias("m", "open", "reasoning", accuracy=about(0.98)),
        bias("m", "open", "no-reasoning", accuracy=about(0.02)),
    ]
    (drawn,) = heat_maps([table for table in find(made, []).variants if table.score.name == "accuracy"])
    inks = {text.get_text(): text.get_color() for text in drawn.figure.texts}
    assert (inks["98.0"], inks["2.0"]) == ("#ffffff", INK)
