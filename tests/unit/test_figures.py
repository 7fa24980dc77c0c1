"""Figure 2: every label on the canvas, every interval drawn, and nothing drawn that was not measured."""

from dataclasses import replace
from itertools import combinations, product

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from analysis.bars import _STYLES, NO_DATA
from analysis.drawing import KINDS, encoded
from analysis.figures import NOTHING, PHONE, TITLE, figure_csv, figure_two, folded_span, span
from analysis.pairing import RESULT_SCHEMA, View
from analysis.statistics import Interval, Method
from analysis.tables import Estimate, Report, build
from tests.unit.test_tables import jobs, report

LONG_DATASET = "perché-l’università-è-così-{}-una-raccolta-di-domande-con-più-di-ottanta-caratteri-in-tutto"
LONG_MODEL = "organizzazione/modello-con-un-nome-lunghissimo-{}:12b-istruzioni-q4_K_M-versione-più-recente-é"
MEASURED = report(*(jobs("AA" if i < 6 else "NB" if i < 8 else "AB", item=i) for i in range(20)))
UNMEASURED = report(*(jobs("--", item=i) for i in range(3)))


def grid(datasets: int, models: int, dataset: str = "dataset-{}", model: str = "model-{}") -> Report:
    """The same figures for every dataset and model."""
    names = product((dataset.format(at) for at in range(datasets)), (model.format(at) for at in range(models)))
    return Report(rows=tuple(replace(row, dataset=d, model=m) for d, m in names for row in MEASURED.rows))


def boxes(figure: Figure) -> dict[Text, Bbox]:
    """Where each text stands, in dots of the picture as PNG."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text() and text.get_visible()]
    return {text: text.get_window_extent() for text in texts}


def words(figure: Figure) -> str:
    """All texts of a picture, one line after the other."""
    return " ".join(text.get_text() for text in figure.texts)


def bars(figure: Figure) -> list[Rectangle]:
    return [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Rectangle)]


def marks(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


SIZES = [
    pytest.param(grid(1, 1), 9.0, id="one"),
    pytest.param(grid(5, 5), 9.0, id="paper"),
    pytest.param(grid(8, 12), 9.0, id="largest"),
    pytest.param(grid(3, 4, LONG_DATASET, LONG_MODEL), 9.0, id="long"),
    pytest.param(grid(8, 12, LONG_DATASET, LONG_MODEL), 9.0, id="largest and long"),
    pytest.param(grid(2, 2, "x" * 80 + "{}", "W" * 80 + "{}"), 9.0, id="without a place to break"),
    pytest.param(grid(8, 12, LONG_DATASET, LONG_MODEL), PHONE, id="phone"),
]


@pytest.mark.parametrize(("made", "widest"), SIZES)
def test_every_label_is_on_the_canvas_and_over_no_other(made: Report, widest: float) -> None:
    figure = figure_two(made, title_note="stand-in distractors " * 8, widest=widest)
    placed = boxes(figure)
    canvas = figure.bbox
    for text, box in placed.items():
        assert canvas.x0 <= box.x0 < box.x1 <= canvas.x1, text
        assert canvas.y0 <= box.y0 < box.y1 <= canvas.y1, text
    labels = [box.padded(-1) for text, box in placed.items() if text in figure.texts]
    assert not [pair for pair in combinations(labels, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize(("made", "widest"), SIZES)
def test_no_label_of_the_page_is_over_the_bars(made: Report, widest: float) -> None:
    figure = figure_two(made, widest=widest)
    placed = boxes(figure)
    swatches = [artist.get_window_extent() for artist in figure.artists if isinstance(artist, Rectangle)]
    assert len(swatches) == len({row.model for row in made.rows})
    plots = [axes.get_window_extent() for axes in figure.axes]
    for box in [*swatches, *(box for text, box in placed.items() if text in figure.texts)]:
        assert not any(box.overlaps(plot) for plot in plots)


def test_long_names_are_drawn_whole() -> None:
    drawn = words(figure_two(grid(3, 4, LONG_DATASET, LONG_MODEL))).replace(" ", "")
    for name in (*map(LONG_DATASET.format, range(3)), *map(LONG_MODEL.format, range(4))):
        assert name.replace(" ", "") in drawn


def test_names_are_not_taken_for_mathematics_and_unknown_letters_are_replaced() -> None:
    drawn = words(figure_two(grid(1, 1, "$\\frac{{a$ _b", "模型-è")))
    assert "$\\frac{a$ _b" in drawn
    assert "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}-è" in drawn


def test_what_was_not_measured_is_a_gap_and_never_a_bar() -> None:
    nothing = [replace(row, model="silent") for row in UNMEASURED.rows]
    figure = figure_two(Report(rows=(*MEASURED.rows, *nothing)))
    assert len(bars(figure)) == 2
    assert marks(figure) == [NO_DATA, NO_DATA]
    assert f"{NO_DATA}: no finished pair" in words(figure)


def test_a_model_that_was_not_asked_everything_leaves_a_gap() -> None:
    alone = [replace(row, model="other", dataset="elsewhere") for row in MEASURED.rows]
    figure = figure_two(Report(rows=(*MEASURED.rows, *alone)))
    assert (len(bars(figure)), marks(figure)) == (4, [NO_DATA] * 4)


def test_a_figure_of_zero_is_marked_as_zero() -> None:
    figure = figure_two(report(*(jobs("AB", item=i) for i in range(10))))
    assert marks(figure) == ["0"]
    assert [bar.get_height() for bar in bars(figure)] == [0, 1]


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.3, 0.1, 0.5, (0.3, 0.1, 0.5)),
        (-0.3, -0.5, -0.1, (0.3, 0.1, 0.5)),
        (-0.1, -0.3, 0.2, (0.1, 0.0, 0.3)),
        (0.1, -0.3, 0.4, (0.1, 0.0, 0.4)),
        (-0.2, -0.4, 0.0, (0.2, 0.0, 0.4)),
        (-0.2, None, None, (0.2, None, None)),
        (None, None, None, (None, None, None)),
    ],
)
def test_a_folded_interval_reaches_zero_where_the_signed_one_holds_it(
    value: float | None, low: float | None, high: float | None, expected: tuple[float | None, ...]
) -> None:
    interval = Interval(low=low, high=high, method=None if low is None else Method.BOOTSTRAP, clusters=9)
    folded = folded_span(Estimate(value=value, n=9, interval=interval))
    assert (folded.value, folded.low, folded.high) == expected


def test_the_bars_and_the_whiskers_have_the_heights_of_the_figures() -> None:
    figure = figure_two(MEASURED)
    bias = MEASURED.rows[1].bias
    spans = [folded_span(bias.fairness), span(bias.consistency)]
    assert [bar.get_height() for bar in bars(figure)] == [drawn.value for drawn in spans]
    whiskers = [[np.asarray(line.get_ydata()).tolist() for line in axes.lines] for axes in figure.axes]
    assert whiskers == [[[drawn.low, drawn.high]] * 2 for drawn in spans]
    assert (spans[0].low, spans[0].high) == (0.1, 0.55)


def test_a_bar_without_an_interval_has_no_whisker_and_the_picture_says_why() -> None:
    figure = figure_two(report(jobs("AA", item=1)))
    assert len(bars(figure)) == 2
    assert not [line for axes in figure.axes for line in axes.lines]
    assert "A bar without whiskers rests on a single cluster" in words(figure)


def test_the_picture_says_how_many_pairs_it_rests_on_and_what_was_invalid_or_left_out() -> None:
    drawn = words(figure_two(report(*(jobs(code, item=i) for i, code in enumerate(["AB", "AA", "NB", "FB", "-B"])))))
    assert "3 pairs, 1 invalid" in drawn
    assert "3 pairs, of which 1 invalid (33.3 %)." in drawn
    assert "1 pairs with a failed side, 1 with a missing one" in drawn


def test_the_picture_says_which_answers_it_shows() -> None:
    made = [jobs("NB", item=0), *(jobs("AB", item=i) for i in range(1, 9))]
    made[0][0] |= {"final_outcome": "answered", "final_choice": 0}
    drawn = {view: words(figure_two(report(*made), view=view)) for view in View}
    assert "9 pairs, 1 invalid" in drawn[View.FIRST]
    assert "First answers" in drawn[View.FIRST]
    assert "9 pairs, 0 invalid" in drawn[View.FINAL]
    assert "Final answers" in drawn[View.FINAL]


def test_twelve_models_can_be_told_apart_without_colour() -> None:
    def lightness(fill: str) -> float:
        red, green, blue = to_rgb(fill)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert len(_STYLES) == 12
    for one, other in combinations(_STYLES, 2):
        assert one.hatch != other.hatch or abs(lightness(one.fill) - lightness(other.fill)) > 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figures_make_the_same_bytes(kind: str) -> None:
    first, second = (encoded(figure_two(grid(2, 5)), kind, TITLE) for _ in range(2))
    assert first == second
    assert not any(word in first.lower() for word in (b"creationdate", b"<dc:date", b"matplotlib v"))


def test_a_figure_can_be_written_in_any_order() -> None:
    one, other = figure_two(MEASURED), figure_two(MEASURED)
    there = {kind: encoded(one, kind, TITLE) for kind in KINDS}
    assert there == {kind: encoded(other, kind, TITLE) for kind in reversed(KINDS)}


def test_settings_of_the_machine_neither_matter_nor_change(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = encoded(figure_two(MEASURED), "svg", TITLE)
    monkeypatch.setitem(mpl.rcParams, "axes.linewidth", 9.0)
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    monkeypatch.setitem(mpl.rcParams, "font.family", ["serif"])
    before = dict(mpl.rcParams)
    assert encoded(figure_two(MEASURED), "svg", TITLE) == plain
    assert dict(mpl.rcParams) == before


def test_without_results_the_picture_says_so() -> None:
    nothing = build(pl.DataFrame(schema=RESULT_SCHEMA))
    assert words(figure_two(nothing, title_note="a trial")) == f"{TITLE} (a trial) {NOTHING}"
    assert figure_csv(nothing) == []


def test_the_csv_has_what_the_bars_show_in_both_views() -> None:
    header, *made = figure_csv(Report(rows=(*MEASURED.rows, *UNMEASURED.rows)))
    lines = [dict(zip(header, line, strict=True)) for line in made]
    assert [line["view"] for line in lines] == ["first", "final"] * 2
    assert (lines[0]["preference_fairness"], lines[0]["preference_fairness_absolute"]) == ("-0.3", "0.3")
    assert (lines[0]["preference_fairness_low"], lines[0]["preference_fairness_absolute_low"]) == ("-0.55", "0.1")
    assert (lines[0]["pairs_n"], lines[0]["pairs_valid"], lines[0]["pairs_invalid"]) == ("20", "18", "2")
    assert lines[2]["preference_fairness_absolute"] == lines[2]["position_consistency_low"] == ""
    assert lines[2]["pairs_missing"] == "3"
