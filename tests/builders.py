"""Small makers of domain values for tests: what a test does not name has a plain default."""

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from contract.items import Item
from worker.records import Attempt

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def make_item(source_id: str = "q1", **changes: Any) -> Item:  # noqa: ANN401
    """A two-choice item."""
    values: dict[str, Any] = {
        "dataset": "capitals",
        "source_id": source_id,
        "question": f"Which is right ({source_id})?",
        "choices": ("the right one", "the wrong one"),
        "target": 0,
        "cluster": source_id,
    }
    return Item(**(values | changes))


def make_attempt(number: int = 0, **changes: Any) -> Attempt:  # noqa: ANN401
    """An answered attempt, the `number`-th minute after the beginning."""
    values: dict[str, Any] = {
        "id": uuid.uuid4(),
        "started_at": BEGINNING + timedelta(minutes=number),
        "latency_ms": 5,
        "prompt": "Which is right?",
        "seed": 1,
        "outcome": "answered",
        "completion": "A",
        "answer": 0,
    }
    return Attempt(**(values | changes))


def item_rows(count: int) -> list[dict[str, Any]]:
    """Rows of a data file for loader `items`; two rows share a context."""
    return [
        {
            "id": f"q{number}",
            "language": "en",
            "question": f"Which is right, number {number}?",
            "choices": [f"right {number}", f"wrong {number}"],
            "target": 0,
            "context": f"Paragraph {number // 2} says what is right.",
        }
        for number in range(count)
    ]


def write_study(folder: Path, *, items: int | Sequence[dict[str, Any]] = 4, **changes: Any) -> Path:  # noqa: ANN401
    """A study file on a simulated model, with its data file beside it; `changes` replace top-level fields."""
    rows = item_rows(items) if isinstance(items, int) else items
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    study: dict[str, Any] = {
        "study": "trial",
        "datasets": [{"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}],
        "models": [{"name": "sim", "provider": "simulated", "timeout_s": 5}],
        "formats": [{"format": "closed", "sampling": {"temperature": 0.7, "seed": 1}}],
        "bundles": {"size": 4, "budget_s": 5},
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study | changes, sort_keys=False), encoding="utf-8")
    return path


def squad_document() -> dict[str, Any]:
    """A SQuAD 1.1 document: one title with two paragraphs of two and one questions."""
    return {
        "version": "1.1",
        "data": [
            {
                "title": "The mill",
                "paragraphs": [
                    {
                        "context": "Ada built the mill in May. It ground barley.",
                        "qas": [
                            _squad_question("m1", "Who built the mill?", "Ada", "ada built it"),
                            _squad_question("m2", "What did it grind?", "barley"),
                        ],
                    },
                    {
                        "context": "The mill burnt down in a dry summer.",
                        "qas": [_squad_question("m3", "When did the mill burn down?", "in a dry summer", "summer")],
                    },
                ],
            }
        ],
    }


def _squad_question(source_id: str, question: str, *answers: str) -> dict[str, Any]:
    texts = [{"text": answer, "answer_start": 0} for answer in answers]
    return {"id": source_id, "question": question, "answers": texts}


def write_recipe(
    folder: Path,
    *,
    document: dict[str, Any] | None = None,
    keep_prompts: bool = False,
    **changes: Any,  # noqa: ANN401
) -> Path:
    """A recipe of two steps on a simulated model, with its data file and prompts beside it; `changes` as above."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "squad.json").write_text(json.dumps(document or squad_document()), encoding="utf-8")
    if not keep_prompts:
        shown = "{context}\nQuestion: {question}\nRight: {right_answer}\n"
        (folder / "first.txt").write_text(f"{shown}A wrong one?", encoding="utf-8")
        (folder / "second.txt").write_text(f"{shown}Wrong: {{earlier}}\nAnother?", encoding="utf-8")
    recipe: dict[str, Any] = {
        "study": "recipe",
        "datasets": [{"name": "mill", "loader": "squad_it", "path": "squad.json", "language": "en"}],
        "models": [{"name": "sim", "provider": "simulated", "timeout_s": 5}],
        "steps": [
            {"step": "first", "prompt": "first.txt", "checks": ["not_right"]},
            {"step": "second", "prompt": "second.txt", "after": "first", "checks": ["not_right", "not_earlier"]},
        ],
        "writes": [
            {"file": "one.jsonl", "wrong_answer": "first"},
            {"file": "two.jsonl", "wrong_answer": "first", "second_wrong_answer": "second"},
        ],
        "retry": {"invalid": 1},
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe | changes, sort_keys=False), encoding="utf-8")
    return path
