"""What people and programs read of a report."""

import json

import polars as pl
import pytest

from analysis.pairing import RESULT_SCHEMA
from analysis.render import to_csv_rows, to_json, to_text
from analysis.tables import Report, build
from tests.unit.test_tables import Value, jobs, report

LOW = [jobs("AB", item=i, dataset="Low", cluster=f"c{i // 2}") for i in range(40)]
HIGH = [jobs("AA" if i % 4 else "NB", item=i, dataset="High", target=None, cluster=f"c{i // 2}") for i in range(40)]


def retried() -> Report:
    """A report in which one retry made an invalid answer valid."""
    made = [jobs("NB", item=0), *(jobs("AB", item=i) for i in range(1, 30))]
    made[0][0] |= {"final_outcome": "answered", "final_choice": 0}
    return report(*made)


def test_table_1_has_the_papers_columns() -> None:
    text = to_text(report(*LOW))
    above, below = (line.split() for line in text.splitlines()[1:3])
    assert above == ["Correct-first", "#", "Wrong-first", "#"]
    assert below == ["Dataset", "Model", "accuracy", "invalid", "accuracy", "invalid"]


def test_no_line_is_wider_than_asked_for() -> None:
    made = [
        jobs("AA" if i % 3 else "BN", item=i, model="organisation/a-very-long-model-name:12b-q4_K_M")
        for i in range(1200)
    ]
    for width in (100, 120):
        lines = to_text(report(*made, *HIGH), width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_absence_is_a_dash_and_never_a_zero() -> None:
    made = report(jobs("--", item=1), jobs("--", item=2))
    table_2 = to_text(made).split("Table 2")[1].split("Table 3")[0].splitlines()
    assert table_2[3].split() == ["d", "m", "–", "–", "–", "–"]
    header, line, _ = to_csv_rows(made)
    assert dict(zip(header, line, strict=True))["preference_fairness"] == ""
    assert to_json(made)["rows"][0]["preference_fairness"]["value"] is None


def test_figures_have_three_decimals_an_interval_and_a_sign_where_it_means_something() -> None:
    text = to_text(report(*(jobs("BB" if i < 6 else "AB", item=i) for i in range(40))))
    assert "+0.150 [+.050, +.2" in text
    assert "0.850 [.709, .929]" in text


def test_rows_without_a_right_choice_are_marked_and_explained() -> None:
    text = to_text(report(*LOW, *HIGH))
    assert "High †" in text
    assert "Low †" not in text
    assert "nominal accuracy" in text
    assert "nominal accuracy" not in to_text(report(*LOW))
    cells = {row["dataset"]: row for row in to_json(report(*LOW, *HIGH))["rows"]}
    assert cells["High"]["correct_first"]["means"] == "first-slot share (nominal accuracy)"
    assert cells["High"]["wrong_first"]["means"] == "second-slot share (nominal accuracy)"
    assert cells["Low"]["wrong_first"]["means"] == "accuracy"


def test_equal_views_are_shown_once_and_said_to_be_equal() -> None:
    text = to_text(report(*LOW))
    assert "Answers" not in text
    assert "First and final answers give the same figures throughout" in text


def test_views_that_differ_stand_one_under_the_other() -> None:
    lines = to_text(retried()).splitlines()
    first, last = lines[4:6]
    assert (first.split()[2], last.split()[0]) == ("first", "final")
    assert "0.967" in first
    assert "1.000" in last


def test_names_are_printed_as_they_are() -> None:
    assert "[bold]x[/] m" in to_text(report(jobs("AB", item=1, dataset="[bold]x[/] m"), jobs("AB", item=2)))


def test_a_report_without_rows_says_so() -> None:
    nothing = build(pl.DataFrame(schema=RESULT_SCHEMA))
    assert (to_text(nothing), to_csv_rows(nothing), to_json(nothing)) == (
        "No results.\n",
        [],
        {"rows": [], "moved_by_retries": []},
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_name_that_looks_like_a_formula_is_guarded(start: str) -> None:
    rows = to_csv_rows(report(jobs("BB", item=1, dataset=f"{start}1+1", model="a=b")))
    assert rows[1][:2] == [f"'{start}1+1", "a=b"]


def test_negative_numbers_are_not_guarded_and_keep_full_precision() -> None:
    made = [jobs("AA" if i == 0 else "AB", item=i) for i in range(3)]
    header, line, _ = to_csv_rows(report(*made))
    assert dict(zip(header, line, strict=True))["preference_fairness"] == str(-1 / 3)


def test_csv_has_one_line_a_dataset_model_and_view_under_unique_headings() -> None:
    header, *lines = to_csv_rows(report(*LOW, *HIGH))
    assert len(lines) == 4
    assert len(set(header)) == len(header) == len(lines[0])
    empty: list[dict[str, Value]] = jobs("--", item=1)
    assert to_csv_rows(report(empty))[0] == header


def test_json_is_plain_and_survives_the_round_trip() -> None:
    plain = to_json(retried())
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["rows"][0]["correct_first"]["accuracy"]["interval"]["method"] == "Wilson"
