"""The report folder: which files there are, that they repeat, and that each says what it must."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from analysis.pairing import RESULT_SCHEMA
from analysis.render import to_csv_rows, to_json, to_text
from analysis.report import FILE_WIDTH, write_report
from analysis.tables import build
from tests.unit.test_tables import jobs

NAMES = {
    *("report.txt", "report.csv", "report.json", "index.html"),
    *("table1.csv", "table1.tex", "table1.png", "table1.svg", "table1.pdf"),
    *("figure2.csv", "figure2.png", "figure2.svg", "figure2.pdf"),
}
STUDY = {"name": "trial", "revision": 1, "planned": 80, "finished": 80, "made_at": "2026-01-02T03:04:05+00:00"}


def results(dataset: str = "d", model: str = "m") -> pl.DataFrame:
    made = [jobs("AA" if i % 3 else "NB", item=i, dataset=dataset, model=model) for i in range(40)]
    return pl.DataFrame([job for pair in made for job in pair], schema=RESULT_SCHEMA)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lines(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8"))))


def test_every_file_is_written_and_named(tmp_path: Path) -> None:
    files = write_report(results(), tmp_path / "new" / "report", study=STUDY)
    assert {path.name for path in files.paths} == NAMES
    made = written(tmp_path / "new" / "report")
    assert set(made) == NAMES
    assert made["figure2.png"].startswith(b"\x89PNG")
    assert made["figure2.pdf"].startswith(b"%PDF")
    assert b"<svg" in made["table1.svg"]


def test_the_same_results_make_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_report(results(), tmp_path / name, study=STUDY, title_note="a trial")
    assert written(tmp_path / "one") == written(tmp_path / "other")


def test_without_a_note_text_csv_and_json_have_no_trace_of_one(tmp_path: Path) -> None:
    write_report(results(), tmp_path, study=STUDY)
    report, made = build(results()), written(tmp_path)
    assert made["report.txt"].decode() == to_text(report, FILE_WIDTH) + "\n"
    assert lines(made["report.csv"]) == to_csv_rows(report)
    assert json.loads(made["report.json"]) == {"study": STUDY, **to_json(report)}
    assert not [name for name, content in made.items() if b"title_note" in content]


def test_the_note_is_in_the_title_of_every_table_and_figure_in_every_form(tmp_path: Path) -> None:
    files = write_report(results(), tmp_path, study=STUDY, title_note="a trial")
    made = written(tmp_path)
    for text in (files.text, made["report.txt"].decode()):
        titles = [line for line in text.splitlines() if line.startswith("Table ")]
        assert len(titles) == 4
        assert all(title.endswith(" (a trial)") for title in titles)
    for name in ("report.csv", "table1.csv", "figure2.csv"):
        header, *rest = lines(made[name])
        assert header[0] == "title_note"
        assert [line[0] for line in rest] == ["a trial", "a trial"]
    assert json.loads(made["report.json"])["title_note"] == "a trial"
    assert b" (a trial)}" in made["table1.tex"]
    for name in ("table1", "figure2"):
        assert all(b"a trial" in made[f"{name}.{kind}"] for kind in ("png", "svg", "pdf"))
    assert made["index.html"].decode().count(" (a trial)</h2>") == 5


@pytest.mark.parametrize("evil", ["=cmd()", "+1", "@SUM(A1)", "-2+3"])
def test_a_formula_is_text_in_every_csv_file(evil: str, tmp_path: Path) -> None:
    write_report(results(dataset=evil, model=evil), tmp_path, study=STUDY, title_note=evil)
    for name in ("report.csv", "table1.csv", "figure2.csv"):
        for line in lines((tmp_path / name).read_bytes())[1:]:
            assert line[:3] == [f"'{evil}"] * 3


def test_a_script_in_a_name_is_text_in_the_page(tmp_path: Path) -> None:
    write_report(results(dataset="<script>alert(1)</script>"), tmp_path, study=STUDY)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_answers_that_a_retry_changed_are_shown_in_both_views(tmp_path: Path) -> None:
    changed = (
        results()
        .with_row_index()
        .with_columns(
            pl.when(pl.col("index") == 0).then(pl.lit("answered")).otherwise("final_outcome").alias("final_outcome"),
            pl.when(pl.col("index") == 0).then(0).otherwise("final_choice").cast(pl.Int32).alias("final_choice"),
        )
    )
    write_report(changed.drop("index"), tmp_path, study=STUDY)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "by dataset and model, final answers</h2>" in page
    assert "by dataset and model, first answers</h2>" in page


def test_a_study_without_results_has_a_report_that_says_so(tmp_path: Path) -> None:
    files = write_report(pl.DataFrame(schema=RESULT_SCHEMA), tmp_path, study=STUDY, title_note="a trial")
    assert files.text == "No results.\n"
    made = written(tmp_path)
    assert set(made) == NAMES
    assert all(made[name] == b"" for name in ("report.csv", "table1.csv", "figure2.csv"))
    assert b"No results." in made["index.html"]
