"""The files that a recipe writes: whole or not at all, never over what a person has changed or another study made."""

import csv
import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from contract.errors import UsageError

ORIGIN = "origin.json"
"""Which study, model and prompts made the files beside it, and the hash of each."""
LEFT_OUT = "left_out.jsonl"
"""Every item that is missing from some file, and why."""
_LOCK = ".lock"
_BESIDE = ".new"

Rows = Sequence[Mapping[str, Any]]


def prepare_folder(folder: Path, study: str, names: Sequence[str]) -> None:
    """Make the folder and see that the files may be written; UsageError that says why not.

    They may not where one is there that a person has changed, or that another study or nobody known has made.
    """
    with _locked(folder):
        _refuse_others(folder, study, names)


def write_made(folder: Path, study: str, files: Mapping[str, Rows], origin: Mapping[str, Any]) -> None:
    """Write the files (rows by name) of `study` and their origin; UsageError as for `prepare_folder`."""
    content = {name: (_table if name.endswith(".csv") else _lines)(rows) for name, rows in files.items()}
    told = {
        name: {"rows": len(rows), "sha256": hashlib.sha256(content[name]).hexdigest()} for name, rows in files.items()
    }
    with _locked(folder):
        before = _refuse_others(folder, study, list(files))
        # What was there is known until all is in its place: whoever is killed between two files can begin again.
        _put(folder / ORIGIN, _json({"study": study, **origin, "files": told, "before": before}))
        for name, written in content.items():
            _put(folder / name, written)
        _put(folder / ORIGIN, _json({"study": study, **origin, "files": told}))


def _refuse_others(folder: Path, study: str, names: Sequence[str]) -> dict[str, str]:
    """The hashes of the files that are there; UsageError for one that must not be written over."""
    origin = _origin(folder)
    if origin is not None and origin.get("study") != study:
        made_by = origin.get("study") or "somebody else"
        raise UsageError(f"the files in {folder} were made by {made_by}; name another folder with --out")
    there = {}
    for name in [name for name in names if (folder / name).exists()]:
        digest = _digest(folder / name)
        if digest is None or digest not in _known(origin, name):
            problem = "is there already and is none of ours" if origin is None else "was changed since it was made"
            raise UsageError(f"{folder / name} {problem}; move it away, or name another folder with --out")
        there[name] = digest
    return there


def _origin(folder: Path) -> dict[str, Any] | None:
    """What made the files that are there; None where nothing says so, empty where it is none of ours."""
    try:
        origin = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _known(origin: dict[str, Any] | None, name: str) -> set[str]:
    """The hashes that a file of ours may have."""
    if origin is None:
        return set()
    told = origin.get("files", {}).get(name, {})
    return {told.get("sha256"), origin.get("before", {}).get(name)} - {None}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other builds out of the folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}; name another folder with --out") from None


def _put(path: Path, content: bytes) -> None:
    """Write beside and put in place, so that nobody ever reads half a file."""
    beside = path.with_name(f".{path.name}{_BESIDE}")
    beside.write_bytes(content)
    beside.replace(path)


def _lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _table(rows: Rows) -> bytes:
    content = StringIO(newline="")
    writer = csv.DictWriter(content, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return content.getvalue().encode()


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
