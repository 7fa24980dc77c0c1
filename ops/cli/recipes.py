"""The recipe behind what a person typed: its file, its dataset, and the model that is to make its texts."""

import hashlib
import re
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from contract.errors import InputError, UsageError
from contract.yaml_lines import YamlDocument, read_text
from producer.data_paths import unusable
from producer.fetching.addresses import is_address

_ENDING = ".yaml"
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._:-]+")
_LONGEST_NAME = 80


def find_recipe(recipe: str) -> Path:
    """The file of a recipe that comes along, by its name, or the file that is named; UsageError if there is none."""
    if recipe.endswith((_ENDING, ".yml")):
        return Path(recipe)
    folder = files("producer") / "recipes"
    known = sorted(entry.name.removesuffix(_ENDING) for entry in folder.iterdir() if entry.name.endswith(_ENDING))
    if recipe not in known:
        raise UsageError(f"no recipe {recipe!r}; there is {', '.join(known)}, or name a recipe file (.yaml)")
    with as_file(folder / f"{recipe}{_ENDING}") as path:
        return path


def questions_from(path: Path, source: str | None) -> dict[str, str]:
    """The file or address of the recipe's questions, by their dataset; empty where the recipe's own are meant.

    `source` may also be the dataset's name: then they come from where the recipe says that it lives.
    """
    name = _dataset(path).get("name")
    if not isinstance(name, str):
        raise InputError(path, "is missing", line=1, field="datasets[0].name")
    if source is None or source.casefold() == name.casefold():
        return {}
    if not is_address(source) and (problem := unusable(Path(source))):
        raise UsageError(f"--from {source}: {problem}; name a file, an address, or {name}")
    return {name: source}


def recipe_changes(
    path: Path, name: str | None, model: str | None, pools: list[str] | None, *, other_questions: bool = False
) -> dict[str, Any]:
    """What stands in the place of the recipe's own fields: its model, and its name, so that two models are two studies.

    `other_questions`: what the recipe says of the hash and the number of its own does not hold.
    UsageError where no model is named anywhere, or not its provider, or where there are pools and no model.
    """
    changes: dict[str, Any] = {}
    if other_questions:
        changes["datasets"] = [{k: v for k, v in _dataset(path).items() if k not in ("sha256", "expect")}]
    if name is not None:
        changes["study"] = name
    if model is None:
        if "models" not in _values(path):
            raise UsageError("say who makes the texts: --model PROVIDER:MODEL, as ollama:gemma3:12b")
        if pools:
            raise UsageError("--pool is for the model that --model names; a recipe's own model names its pools itself")
        return changes
    return {"study": _nameable(f"{_values(path).get('study')}-", model), "models": [_entry(model, pools)]} | changes


def _entry(model: str, pools: list[str] | None) -> dict[str, Any]:
    provider, separator, tag = model.partition(":")
    if not (provider and separator and tag):
        raise UsageError(f"--model takes PROVIDER:MODEL, as ollama:gemma3:12b or gemini:gemini-3-flash; not {model!r}")
    entry: dict[str, Any] = {"provider": provider, "name": _nameable("", tag), "model": tag}
    return entry | ({"pools": pools} if pools else {})


def _dataset(path: Path) -> dict[str, Any]:
    """The dataset that the recipe takes its questions from, as its file says it; empty where there is none."""
    datasets = _values(path).get("datasets")
    first = datasets[0] if isinstance(datasets, list) and datasets else None
    return first if isinstance(first, dict) else {}


def _values(path: Path) -> dict[str, Any]:
    values = YamlDocument(path, read_text(path)).values
    return values if isinstance(values, dict) else {}


def _nameable(begin: str, model: str) -> str:
    """A name for a model, after `begin`; where it cannot be the model's own, a digest tells it from others."""
    name = f"{begin}{_UNNAMEABLE.sub('-', model)}"
    if name == f"{begin}{model}" and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9].strip('-._:')}-{digest}".lstrip("-")
