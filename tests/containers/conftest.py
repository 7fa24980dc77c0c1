"""A whole system in containers, built and started once for all tests of this folder."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import TAG, Project, build_images, free_port, taken_down

# A hostile one: every part of an address, a quotation mark, a backslash, a blank and what looks like an escape.
PASSWORD = 'p@ss/w:or"d\\ %41'  # noqa: S105
FLOWER_PASSWORD = "only-to-look"  # noqa: S105

ITEMS = 150

_STUDY = """\
study: {name}
datasets:
  - {{name: boxes, loader: items, path: items.jsonl, prompt: two-choice-low, language: en}}
models:
  - {model}
formats:
  - {{format: closed, sampling: {{temperature: 0.7, max_tokens: 8, seed: 1}}}}
retry: {{invalid: 1, strategy: resample}}
"""
_SIMULATED = """name: sim
    provider: simulated
    timeout_s: 5
    options: {knows: 0.5, prefers_first: 0.8, invalid_rate: 0.05, latency_s: 1.0, seed: 1}"""
_SMALL = """name: small
    provider: openai
    model: smollm2-135m-instruct
    base_url: http://llm:8080/v1
    timeout_s: 60"""
_SLOW = _SIMULATED.replace("latency_s: 1.0", "latency_s: 4.0")
_OLLAMA = """name: llama
    provider: ollama
    model: llama3.1:8b"""

_MODELS = {"simulated": _SIMULATED, "slow": _SLOW, "small": _SMALL, "on-ollama": _OLLAMA}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that people work in: studies and their data. Whoever a container runs as may write there."""
    folder = tmp_path_factory.mktemp("work")
    with (folder / "items.jsonl").open("w", encoding="utf-8") as file:
        for number in range(ITEMS):
            box = {"context": f"Box {number} is red.", "question": f"What colour is box {number}?"}
            file.write(json.dumps({"id": f"q{number}", **box, "choices": ["red", "blue"], "target": 0}) + "\n")
    for name, model in _MODELS.items():
        (folder / f"{name}.yaml").write_text(_STUDY.format(name=name, model=model), encoding="utf-8")
    (folder / "ledger").mkdir()
    for each in (folder, folder / "ledger"):
        each.chmod(0o777)
    return folder


@pytest.fixture(scope="session")
def system(folder: Path) -> Iterator[Project]:
    """The project, its images built; nothing of it runs yet."""
    variables = {
        "BOTHWAYS_TAG": TAG,
        "BOTHWAYS_PASSWORD": PASSWORD,
        "BOTHWAYS_FLOWER_PASSWORD": FLOWER_PASSWORD,
        "BOTHWAYS_FOLDER": str(folder),
        "BOTHWAYS_API_WORKERS": "2",
        "BOTHWAYS_API_SLOTS": "4",
        "BOTHWAYS_POSTGRES_PORT": str(free_port()),
        "BOTHWAYS_VALKEY_PORT": str(free_port()),
        "BOTHWAYS_FLOWER_PORT": str(free_port()),
    }
    with taken_down(Project(name=f"bothways-test-{secrets.token_hex(4)}", variables=variables)) as project:
        build_images(project)
        yield project
