"""The files that a recipe writes: whole or not at all, and never over what a person has changed."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contract.errors import UsageError

ORIGIN = "origin.json"
"""Which study, model and prompts made the files beside it, and the hash that each of them had."""
LEFT_OUT = "left_out.jsonl"
"""Every item that is missing from some file, and why."""


def refuse_changed(folder: Path, names: Sequence[str]) -> None:
    """UsageError if one of the files is there and is not as an earlier build left it."""
    known = _hashes(folder)
    for name in names:
        path = folder / name
        if path.exists() and known.get(name) != _digest(path):
            problem = "was changed since it was made" if name in known else "is there already and is none of ours"
            raise UsageError(f"{path} {problem}; move it away, or name another folder with --out")


def write_made(folder: Path, files: dict[str, list[dict[str, Any]]], origin: dict[str, Any]) -> None:
    """Write the files (rows by name) and their origin; UsageError where the folder cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = {}
        for name, rows in files.items():
            _replace(folder / name, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
            written[name] = {"rows": len(rows), "sha256": _digest(folder / name)}
        _replace(folder / ORIGIN, [json.dumps(origin | {"files": written}, ensure_ascii=False, indent=2), "\n"])
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}; name another folder with --out") from None


def _hashes(folder: Path) -> dict[str, str]:
    try:
        origin = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        return {name: told["sha256"] for name, told in origin["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write beside and put in place, so that nobody ever reads half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Half a surrogate pair cannot come out of the database, so every text can be written.
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
