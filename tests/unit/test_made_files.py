"""The files of a recipe: written whole, and never over what is not theirs."""

import json
from pathlib import Path

import pytest

from contract.errors import UsageError
from ops import made_files
from ops.made_files import ORIGIN, prepare_folder, write_made

ROWS = [{"id": "a", "text": "è\u2028\x00"}, {"id": "b", "text": "=1"}]


def write(folder: Path, study: str = "one", text: str = "x") -> None:
    """Two files of a study."""
    write_made(folder, study, {"a.jsonl": ROWS, "b.jsonl": [{"id": "c", "text": text}]}, {"made_at": "now"})


def test_every_row_is_a_line_and_the_origin_knows_each_file(tmp_path: Path) -> None:
    write(tmp_path / "made")

    lines = (tmp_path / "made" / "a.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == ROWS
    origin = json.loads((tmp_path / "made" / ORIGIN).read_text(encoding="utf-8"))
    assert (origin["study"], origin["made_at"]) == ("one", "now")
    assert {name: told["rows"] for name, told in origin["files"].items()} == {"a.jsonl": 2, "b.jsonl": 1}


def test_a_build_writes_over_its_own_files(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, text="y")

    assert json.loads((tmp_path / "b.jsonl").read_text(encoding="utf-8"))["text"] == "y"


@pytest.mark.parametrize("broken_after", [1, 2, 3])
def test_a_build_that_is_killed_between_two_files_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_after: int
) -> None:
    write(tmp_path)
    put, left = made_files._put, [broken_after]  # noqa: SLF001

    def put_or_die(path: Path, content: bytes) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        put(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(made_files, "_put", put_or_die)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, text="y")

    write(tmp_path, text="z")
    assert json.loads((tmp_path / "b.jsonl").read_text(encoding="utf-8"))["text"] == "z"


def test_a_changed_file_is_left_alone_and_so_are_the_others(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "b.jsonl").write_text("mine", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(UsageError, match=r"b\.jsonl was changed since it was made"):
        prepare_folder(tmp_path, "one", ["b.jsonl"])
    with pytest.raises(UsageError, match=r"b\.jsonl was changed since it was made"):
        write(tmp_path, text="y")

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_files_of_another_study_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path)

    with pytest.raises(UsageError, match="were made by one; name another folder with --out"):
        write(tmp_path, study="other")


@pytest.mark.parametrize("origin", ['{"mine": true}', "[]", "no JSON"])
def test_an_origin_that_is_none_of_ours_keeps_us_out(tmp_path: Path, origin: str) -> None:
    (tmp_path / ORIGIN).write_text(origin, encoding="utf-8")

    with pytest.raises(UsageError, match="were made by somebody else"):
        prepare_folder(tmp_path, "one", ["a.jsonl"])


def test_a_file_or_a_folder_that_nobody_made_keeps_us_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()

    with pytest.raises(UsageError, match=r"a\.jsonl is there already and is none of ours"):
        prepare_folder(tmp_path, "one", ["a.jsonl"])


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match=r"file cannot be written to: .*; name another folder with --out"):
        prepare_folder(tmp_path / "file", "one", ["a.jsonl"])
