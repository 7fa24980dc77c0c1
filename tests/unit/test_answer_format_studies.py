"""The study files of the answer-format paper on its real data: volumes, orders and texts."""

import csv
import gzip
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.formats import Variant, closed, likert
from contract.forms import ClosedFormat
from contract.items import UNKNOWN
from producer.forecast import volumes
from producer.loaded_study import LoadedStudy
from producer.study_file import read_study

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("BOTHWAYS_SHARED_DATA", ""))
PAPER = SHARED / "answer_format"
pytestmark = pytest.mark.skipif(
    not (os.environ.get("BOTHWAYS_SHARED_DATA") and PAPER.is_dir()),
    reason="BOTHWAYS_SHARED_DATA names no folder with the answer-format paper's questions",
)
NEGATIVE = Variant(points=4, polarity="negative")


def table(name: str) -> Iterator[dict[str, str]]:
    """The rows of one of the paper's tables."""
    with gzip.open(PAPER / name, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=";")


@pytest.fixture
def bbq(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoadedStudy:
    """The BBQ study with its data."""
    monkeypatch.setenv("BBQ_STATEMENTS", str(PAPER / "bbq_gender_likert_4_neg.csv.gz"))
    data = tmp_path / "Gender_identity.jsonl"
    data.write_bytes(gzip.decompress((SHARED / "bbq" / "Gender_identity.jsonl.gz").read_bytes()))
    return read_study(ROOT / "studies/answer_format_bbq.yaml", data={"bbq-gender": data})


@pytest.fixture
def opinion_qa(monkeypatch: pytest.MonkeyPatch) -> LoadedStudy:
    """The OpinionQA study with its data."""
    monkeypatch.setenv("OPINION_QA", str(PAPER / "opinion_qa_gender_158_ordinal.csv.gz"))
    monkeypatch.setenv("OPINION_QA_HUMAN", str(PAPER / "opinion_qa_weighted_distributions.csv.gz"))
    monkeypatch.setenv("OPINION_QA_STATEMENTS", str(PAPER / "opinion_qa_gender_likert_4_neg.csv.gz"))
    return read_study(ROOT / "studies/answer_format_opinion_qa.yaml")


def counted(loaded: LoadedStudy) -> Counter[tuple[str, str, str]]:
    """The jobs by model, format and stage."""
    found: Counter[tuple[str, str, str]] = Counter()
    for volume in volumes(loaded):
        condition = volume.condition
        found[condition.model.name, condition.format.format, condition.stage] += volume.jobs
    return found


def test_bbq_has_the_paper_s_volumes(bbq: LoadedStudy) -> None:
    found = counted(bbq)

    for model in ("Mistral-7B", "Llama-3.1-8B", "Gemma-3-12B"):
        asked = [found[model, form, "answer"] for form in ("closed", "likert", "open")]
        assert asked == [21_600, 72_000, 7_200]
    assert found["Qwen2.5-32B", "open", "annotate"] == 3 * 7_200


def test_opinion_qa_has_the_paper_s_volumes(opinion_qa: LoadedStudy) -> None:
    found = counted(opinion_qa)

    for model in ("Mistral-7B", "Llama-3.1-8B", "Gemma-3-12B"):
        asked = [found[model, form, "answer"] for form in ("closed", "likert", "open")]
        assert asked == [9_480, 47_400, 3_160]
    assert found["Qwen2.5-32B", "open", "annotate"] == 3 * 3_160


def test_every_rating_question_of_bbq_is_the_paper_s_to_the_letter(bbq: LoadedStudy) -> None:
    items = {item.source_id: item for item in bbq.items["bbq-gender"]}
    rows = list(table("bbq_gender_likert_4_neg.csv.gz"))

    for row in rows:
        item = items[row["example_id"]]
        part = item.choices.index(row["entity"]) + 1
        assert likert.rating_question(item, NEGATIVE, part) == row["likert_scale_question"]
        assert likert.scale(NEGATIVE) == row["scale"]
        assert (item.groups or ())[part - 1] == row["entity_info"]
    assert len(rows) == 720


def test_every_rating_question_of_opinion_qa_is_the_paper_s_to_the_letter(opinion_qa: LoadedStudy) -> None:
    items = {item.source_id: item for item in opinion_qa.items["opinion-qa-gender"]}
    rows = list(table("opinion_qa_gender_likert_4_neg.csv.gz"))

    for row in rows:
        item = items[row["key"]]
        part = item.choices.index(row["option"]) + 1
        assert likert.rating_question(item, NEGATIVE, part) == row["likert_question"]
    assert len(rows) == 474


def test_every_order_of_bbq_is_the_paper_s(bbq: LoadedStudy) -> None:
    items = {item.source_id: item for item in bbq.items["bbq-gender"]}
    (form,) = (form for form in bbq.study.formats if isinstance(form, ClosedFormat))
    initials = {"M": "M", "F": "F", UNKNOWN: "U"}

    for row in table("bbq_gender_closed_ended_orders.csv.gz"):
        item = items[row["example_id"]]
        variants = closed.variants(item, form)
        shown = {
            "".join(initials[(item.groups or ())[choice]] for choice in variant.order): [
                item.choices[choice] for choice in variant.order
            ]
            for variant in variants
        }
        assert list(shown) == ["MFU", "FMU", "MUF", "FUM", "UMF", "UFM"]
        for name, choices in shown.items():
            assert row[f"answers_{name}"] in (str(choices), repr(choices))
        assert row["full_question"] == closed.question_places(item)["full_question"]
