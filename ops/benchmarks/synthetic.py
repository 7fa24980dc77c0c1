"""Made-up studies of any size on simulated models: a study file with its data file beside it."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ORDERS = 2
QUESTIONS_A_PARAGRAPH = 4
WORDS_A_PARAGRAPH = 100

_SYLLABLES = ("ba", "co", "di", "fu", "ga", "le", "mi", "no", "pe", "ri", "so", "ta", "ve", "zu")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many items, models and repeats a study has, how many jobs travel together at most, and a call's seconds."""

    items: int
    models: int = 1
    repeats: int = 1
    bundle: int = 16
    latency_s: float = 0.0

    @property
    def jobs(self) -> int:
        """How many jobs the study plans."""
        return self.items * ORDERS * self.models * self.repeats


def write_study(folder: Path, shape: Shape) -> Path:
    """The study file; a folder has one study, named like the folder."""
    folder.mkdir(parents=True)
    with (folder / "items.jsonl").open("w", encoding="utf-8") as file:
        for row in _rows(shape.items):
            file.write(json.dumps(row) + "\n")
    options = {"knows": 0.6, "prefers_first": 0.7, "latency_s": shape.latency_s}
    study: dict[str, Any] = {
        "study": folder.name,
        "datasets": [{"name": "made-up", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}],
        "models": [
            {"name": f"sim-{number}", "provider": "simulated", "options": options} for number in range(shape.models)
        ],
        "formats": [{"format": "closed", "sampling": {"temperature": 0.7, "seed": 1}}],
        "repeats": shape.repeats,
        "bundles": {"size": shape.bundle},
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return path


def _rows(count: int) -> Iterator[dict[str, Any]]:
    """Items of a reading test: some questions about each paragraph, of about the length that SQuAD has."""
    draw = random.Random(1)
    paragraph = ""
    for number in range(count):
        if number % QUESTIONS_A_PARAGRAPH == 0:
            paragraph = " ".join(_word(draw) for _ in range(WORDS_A_PARAGRAPH))
        yield {
            "id": f"q{number}",
            "language": "en",
            "question": f"What does number {number} say about {_word(draw)} and {_word(draw)}?",
            "choices": [f"{_word(draw)} {number}", f"{_word(draw)} {_word(draw)}"],
            "target": 0,
            "context": paragraph,
        }


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=3))
