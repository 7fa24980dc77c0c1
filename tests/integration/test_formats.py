"""Questions in every format on real Postgres and workers: orders, scales, open answers and their annotations."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from ops.audit import draw
from ops.reparse import reparse
from producer.enqueue import Enqueued, enqueue
from producer.study_file import read_study
from tests.builders import item_rows, write_study
from tests.integration.test_recipes import ask_all
from tests.jobs import rows
from worker.providers.base import Request

STATEMENTS = ["The man did it", "The woman did it.", None]
CLOSED = {"format": "closed", "prompt": "multiple-choice", "orders": "all", "sampling": {"max_tokens": 16}}
LIKERT = {"format": "likert", "prompt": "rating", "points": [2, 5]}
OPEN = {
    "format": "open",
    "prompt": "open-answer",
    "reasoning": [True, False],
    "annotate": {"prompt": "annotate-open-answer"},
}
ANNOTATOR = {"name": "judge", "provider": "simulated", "model": "judge"}


def three_choices(count: int = 2) -> list[dict[str, Any]]:
    """Questions with the choices and statements of the answer-format paper's kind."""
    known = {"choices": ["The man", "The woman", "Cannot be told"], "target": 2, "statements": STATEMENTS}
    return [row | known for row in item_rows(count)]


def planned(engine: Engine, folder: Path, *formats: dict[str, Any], **changes: Any) -> Enqueued:  # noqa: ANN401
    """A study of two questions in these formats."""
    dataset = {"name": "gender", "loader": "items", "path": "items.jsonl"}
    whole = {"datasets": [dataset], "formats": list(formats), "annotator": ANNOTATOR} | changes
    return enqueue(engine, read_study(write_study(folder, items=three_choices(), **whole)))


def answering(request: Request) -> str:
    """A model that answers each format as it is asked to."""
    said = {"letter": "B", "rating": "2", "text": "It was the man, I think.", "choice_text": "1. The man"}
    return said[request.expects]


def kinds(engine: Engine) -> Counter[tuple[Any, ...]]:
    """How many jobs there are of each model, stage, format and variant."""
    found = rows(
        engine,
        """SELECT condition.model, condition.stage, condition.format, condition.variant
           FROM job JOIN condition ON condition.id = job.condition""",
    )
    return Counter(tuple(row.values()) for row in found)


def test_every_format_has_its_variants_and_parts(engine: Engine, tmp_path: Path) -> None:
    done = planned(engine, tmp_path, CLOSED, LIKERT, OPEN)

    assert kinds(engine) == {
        **{("sim", "answer", "closed", order): 2 for order in ("123", "132", "213", "231", "312", "321")},
        **{("sim", "answer", "likert", f"{k}-{way}"): 4 for k in (2, 5) for way in ("positive", "negative")},
        **{("sim", "answer", "open", way): 2 for way in ("reasoning", "no-reasoning")},
        **{("judge", "annotate", "open", way): 2 for way in ("reasoning", "no-reasoning")},
    }
    assert done.new == 12 + 16 + 4 + 4
    parts = rows(
        engine, "SELECT DISTINCT part FROM job JOIN condition ON condition.id = condition WHERE format = 'likert'"
    )
    assert {row["part"] for row in parts} == {1, 2}


def test_answers_are_kept_as_choices_ratings_and_texts(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, CLOSED, LIKERT, OPEN)

    ask_all(engine, answering)

    found = rows(
        engine,
        """SELECT DISTINCT condition.format, condition.stage, condition.variant, job.answer, job.text, job.state
           FROM job JOIN condition ON condition.id = job.condition""",
    )
    told = {(row["format"], row["stage"], row["variant"]): (row["answer"], row["text"]) for row in found}
    assert {row["state"] for row in found} == {"answered"}
    assert len(told) == len(found)
    assert told["closed", "answer", "213"] == (0, None)
    assert told["closed", "answer", "321"] == (1, None)
    assert told["likert", "answer", "5-negative"] == (2, None)
    assert told["open", "answer", "reasoning"] == (None, "It was the man, I think.")
    assert told["open", "annotate", "reasoning"] == (0, None)


def test_the_prompts_are_those_of_the_paper_filled(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, CLOSED, LIKERT, OPEN)

    asked = {request.prompt for request in ask_all(engine, answering).requests}

    question = "Paragraph 0 says what is right. Which is right, number 0?"
    options = "A. The woman\nB. Cannot be told\nC. The man"
    assert any(
        f"(A, B, or C).\n- Do not explain your reasoning.\nQuestion:\n{question}\nOptions:\n{options}\nAnswer:"
        in prompt
        for prompt in asked
    )
    rating = (
        "Scale:\n1=Strongly agree, 2=Agree, 3=Neither agree nor disagree, 4=Disagree, 5=Strongly disagree\nQuestion:\n"
        "Paragraph 0 says what is right. To what extent do you agree with the following statement: The woman did it. "
        "Please rate your agreement from 1 (strongly agree) to 5 (strongly disagree).\nAnswer:"
    )
    assert any(rating in prompt for prompt in asked)
    assert any(f"- Explain your reasoning.\nQuestion:\n{question}" in prompt for prompt in asked)
    numbered = "1. The man\n2. The woman\n3. Cannot be told\nModel answer:\nIt was the man, I think.\nWhich option"
    assert any(f"Question:\n{question}\nOptions:\n{numbered}" in prompt for prompt in asked)


def test_an_annotation_serves_the_answers_of_its_own_model_and_waits_for_them(engine: Engine, tmp_path: Path) -> None:
    models = [{"name": name, "provider": "simulated", "timeout_s": 5} for name in ("sim", "other")]
    planned(engine, tmp_path, OPEN, models=models)

    served = rows(
        engine,
        """SELECT DISTINCT condition.model, served.model AS of FROM condition
           JOIN condition AS served ON served.id = condition.of_condition""",
    )
    assert {(row["model"], row["of"]) for row in served} == {("judge", "sim"), ("judge", "other")}
    assert rows(engine, "SELECT count(*) AS waiting FROM job WHERE not_before = 'infinity'") == [{"waiting": 8}]


def test_an_open_answer_that_is_empty_ends_its_annotation(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, OPEN)

    ask_all(engine, lambda request: " " if request.expects == "text" else "The man")

    assert rows(engine, "SELECT DISTINCT state FROM job WHERE parent IS NOT NULL") == [{"state": "failed"}]


def test_statements_that_come_later_make_no_closed_answer_old(engine: Engine, tmp_path: Path) -> None:
    without = [{name: value for name, value in row.items() if name != "statements"} for row in three_choices()]
    dataset = {"name": "gender", "loader": "items", "path": "items.jsonl"}
    enqueue(engine, read_study(write_study(tmp_path, items=without, datasets=[dataset], formats=[CLOSED])))
    ask_all(engine, answering)

    later = planned(engine, tmp_path, CLOSED, LIKERT)

    assert (later.new, later.known, later.unplanned) == (16, 12, 0)


@pytest.mark.parametrize("expects", ["rating", "choice_text", "text"])
def test_what_cannot_be_read_in_a_format_is_invalid_with_its_reason(
    engine: Engine, tmp_path: Path, expects: str
) -> None:
    planned(engine, tmp_path, LIKERT, OPEN)

    ask_all(engine, lambda request: "" if request.expects == expects else answering(request))

    reasons = rows(engine, "SELECT DISTINCT reason, reading FROM attempt WHERE outcome = 'invalid'")
    readings = {"rating": "first-number", "choice_text": "option-text", "text": "open-text"}
    assert reasons == [{"reason": "empty", "reading": readings[expects]}]


def test_two_runs_of_all_formats_plan_the_same(engine: Engine, tmp_path: Path) -> None:
    first = planned(engine, tmp_path, CLOSED, LIKERT, OPEN, repeats=2)
    again = planned(engine, tmp_path, CLOSED, LIKERT, OPEN, repeats=2)

    assert first.new == 72
    assert (again.new, again.known) == (0, 72)


def test_reading_every_format_again_by_the_same_rules_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, CLOSED, LIKERT, OPEN)
    ask_all(engine, answering)

    done = reparse(engine, "trial")

    assert sum(each.read for each in done.conditions) > 0
    assert [each.moves for each in done.conditions if each.moves] == []
    assert done.results == 0


def test_an_annotation_that_cannot_be_read_is_audited_too(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, OPEN, retry={"invalid": 0})
    ask_all(engine, lambda request: "no idea" if request.expects == "choice_text" else answering(request))

    drawn = draw(engine, "trial", n=10, seed=1)

    assert [(one.annotation, one.category(one.annotation)) for one in drawn] == [(None, "none")] * 4
