"""Data of a study that live at an address: fetched by a run, by `fetch`, and by nothing else."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from contract.errors import InputError, UsageError
from contract.settings import cache_folder
from ops.check import State, check_data
from ops.cli.main import app
from producer.fetching.addresses import read_address
from producer.fetching.cache import entry_of
from producer.fetching.fetcher import Fetcher
from producer.fetching.hub import Hub
from producer.forecast import volumes
from producer.loaded_study import LoadedStudy
from producer.study_file import find_data, read_study
from tests.builders import item_rows, squad_document, write_study
from tests.file_server import NETWORK, Fault, FileServer, Watching, file_server, sha256

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
REAL = Path(FOLDER or ".") / "squad_it" / "SQuAD_it-test.json.gz"
ROWS = "".join(json.dumps(row) + "\n" for row in item_rows(4)).encode()
ITEMS = {"name": "capitals", "loader": "items", "prompt": "two-choice-low"}


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server of four rows."""
    with file_server() as running:
        running.content = ROWS
        yield running


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache."""
    monkeypatch.setenv("BOTHWAYS_CACHE", str(tmp_path / "cache"))
    for name in ("HF_ENDPOINT", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def fetcher(cache: Path) -> Fetcher:
    """What a run fetches with."""
    return Fetcher(cache=cache, hub=Hub(), watch=Watching(), transport=NETWORK)


def study_at(folder: Path, server: FileServer, **changes: Any) -> Path:  # noqa: ANN401
    """A study whose data live at the server."""
    dataset = ITEMS | {"path": f"{server.base_url}/rows.jsonl"} | changes
    return write_study(folder, datasets=[dataset])


def plan(study: Path, **data: str) -> LoadedStudy:
    """The study as `plan` and `check` read it."""
    return read_study(study, data=data, may_lack_data=True)


def fetch_command(*arguments: object) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(app, ["fetch", *map(str, arguments)])


def test_a_run_fetches_and_the_next_one_asks_nobody(tmp_path: Path, server: FileServer, fetcher: Fetcher) -> None:
    study = study_at(tmp_path, server)

    first, second = read_study(study, fetch=fetcher), read_study(study, fetch=fetcher)

    assert len(server.received) == 1
    assert first.items == second.items
    assert len(first.items["capitals"]) == 4
    assert first.study.datasets[0].path == f"{server.base_url}/rows.jsonl"


def test_a_plan_fetches_nothing_and_counts_what_is_expected_until_the_file_is_there(
    tmp_path: Path, server: FileServer, fetcher: Fetcher, cache: Path
) -> None:
    study = study_at(tmp_path, server, expect={"items": 4})

    before = plan(study)
    assert (server.received, cache.exists()) == ([], False)
    read_study(study, fetch=fetcher)
    after = plan(study)

    assert (before.expected, before.items["capitals"]) == ({"capitals": 4}, [])
    assert (after.expected, len(after.items["capitals"])) == ({}, 4)
    assert [volume.expected for volume in volumes(after)] == [False, False]


def test_without_an_expectation_a_plan_says_which_command_fetches(tmp_path: Path, server: FileServer) -> None:
    study = study_at(tmp_path, server)

    with pytest.raises(InputError) as raised:
        plan(study)

    line = study.read_text("utf-8").splitlines().index(f"  path: {server.base_url}/rows.jsonl") + 1
    assert str(raised.value) == (
        f"{study}:{line}: datasets[0].path: {server.base_url}/rows.jsonl is not fetched yet; "
        f"`bothways fetch {study}` does that"
    )
    assert server.received == []


def test_a_check_says_what_must_be_fetched_and_what_is_there(
    tmp_path: Path, server: FileServer, fetcher: Fetcher
) -> None:
    study = study_at(tmp_path, server, expect={"items": 4})

    (before,) = check_data(plan(study))
    read_study(study, fetch=fetcher)
    (after,) = check_data(plan(study))

    assert (before.state, after.state) == (State.WARN, State.OK)
    assert before.said == f"must be fetched from {server.base_url}/rows.jsonl; 4 items are expected"
    assert after.said == "4 items, as expected, fetched already"


def test_wrong_answers_may_live_at_an_address_too(tmp_path: Path, server: FileServer, fetcher: Fetcher) -> None:
    (tmp_path / "mill.json").write_text(json.dumps(squad_document()), encoding="utf-8")
    rows = [{"id": f"m{number}", "wrong_answer": f"nobody {number}"} for number in (1, 2, 3)]
    server.content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    dataset = {
        **ITEMS,
        "loader": "squad_it",
        "path": "mill.json",
        "wrong_answers": f"{server.base_url}/wrong.jsonl",
        "expect": {"items": 3},
    }
    study = write_study(tmp_path, datasets=[dataset])

    assert plan(study).expected == {"capitals": 3}
    assert len(read_study(study, fetch=fetcher).items["capitals"]) == 3
    assert plan(study).expected == {}


def test_an_address_may_be_given_for_a_dataset_or_stand_in_a_variable(
    tmp_path: Path, server: FileServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = write_study(tmp_path / "given", datasets=[ITEMS | {"path": "gone.jsonl", "expect": {"items": 4}}])
    named = write_study(tmp_path / "named", datasets=[ITEMS | {"path": "${ROWS}"}])
    address = f"{server.base_url}/rows.jsonl"
    monkeypatch.setenv("ROWS", address)

    assert plan(given, capitals=address).expected == {"capitals": 4}
    assert len(read_study(given, data={"capitals": address}, fetch=fetcher).items["capitals"]) == 4
    assert len(read_study(named, fetch=fetcher).items["capitals"]) == 4
    with pytest.raises(UsageError, match=r"--data capitals: s3:// is not known"):
        read_study(given, data={"capitals": "s3://bucket/rows.jsonl"}, fetch=fetcher)


@pytest.mark.parametrize("name", ["HF_TOKEN", "BOTHWAYS_PASSWORD"])
def test_a_secret_of_ours_is_sent_to_no_address(
    tmp_path: Path, server: FileServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "secret")
    study = study_at(tmp_path, server, path=f"{server.base_url}/rows.jsonl?key=${{{name}}}")

    with pytest.raises(InputError, match="it must not hold HF_TOKEN or a variable of Bothways") as raised:
        read_study(study, fetch=fetcher)

    assert server.received == []
    assert "=secret" not in str(raised.value)


def test_a_wrong_hash_is_told_with_the_line_of_the_right_one(
    tmp_path: Path, server: FileServer, fetcher: Fetcher
) -> None:
    study = study_at(tmp_path, server, sha256=sha256(b"another").upper())

    with pytest.raises(InputError, match=f"has the sha256 {sha256(ROWS)}, and the study expects {sha256(b'another')}"):
        read_study(study, fetch=fetcher)
    with pytest.raises(InputError) as raised:
        read_study(study, fetch=fetcher)

    assert (raised.value.field, len(server.received)) == ("datasets[0].sha256", 2)
    assert study.read_text("utf-8").splitlines()[(raised.value.line or 0) - 1].startswith("  sha256: ")
    assert not list((tmp_path / "cache").rglob("rows.jsonl"))


def test_a_file_at_hand_must_have_the_hash_too(tmp_path: Path) -> None:
    study = write_study(tmp_path, datasets=[ITEMS | {"path": "items.jsonl", "sha256": sha256(ROWS)}])
    (tmp_path / "mine.jsonl").write_bytes(b"other rows")

    assert len(read_study(study).items["capitals"]) == 4
    with pytest.raises(UsageError, match=r"--data capitals: .*mine.jsonl has the sha256 .*: give the file as it is"):
        plan(study, capitals=str(tmp_path / "mine.jsonl"))
    (tmp_path / "items.jsonl").write_bytes(b"other rows")
    with pytest.raises(InputError, match=r"datasets\[0\]\.sha256: .*items.jsonl has the sha256"):
        plan(study)


@pytest.mark.parametrize("written", ["abc", "g" * 64, "a" * 65, 7])
def test_what_is_no_sha256_is_refused(tmp_path: Path, written: object) -> None:
    with pytest.raises(InputError, match=r"datasets\[0\]\.sha256: "):
        read_study(write_study(tmp_path, datasets=[ITEMS | {"path": "items.jsonl", "sha256": written}]))


def test_a_changed_copy_is_refused_also_by_a_plan(tmp_path: Path, server: FileServer, fetcher: Fetcher) -> None:
    study = study_at(tmp_path, server, expect={"items": 4})
    read_study(study, fetch=fetcher)
    entry_of(cache_folder(), read_address(f"{server.base_url}/rows.jsonl")).file.write_bytes(b"tampered with")

    with pytest.raises(InputError, match="delete it, and it is fetched anew"):
        plan(study)


def test_the_files_of_a_study_are_found_without_its_models_names(tmp_path: Path, fetcher: Fetcher) -> None:
    model = {"name": "tag", "provider": "ollama", "model": "${NOT_SET_HERE}"}
    datasets = [ITEMS | {"path": "${NOT_SET_HERE}"}, ITEMS | {"name": "other", "path": "items.jsonl"}]
    study = write_study(tmp_path, models=[model], datasets=datasets)

    found = dict(find_data(study, {}, fetcher))

    assert [dataset.name for dataset in found] == ["capitals", "other"]


def test_fetch_tells_every_file_with_its_hash_and_how_to_pin_it(tmp_path: Path, server: FileServer) -> None:
    server.faults = [Fault(cut=100)]
    study = study_at(tmp_path, server)

    done, again = fetch_command(study), fetch_command(study, "--json")

    assert (done.exit_code, again.exit_code) == (0, 0)
    assert done.stderr.splitlines()[0] == f"fetching {server.base_url}/rows.jsonl"
    assert "the connection failed (peer closed connection" in done.stderr
    assert f"write beside its path: sha256: {sha256(ROWS)}" in done.stderr
    assert re.search(r"fetched rows.jsonl: [0-9,]+ bytes in \d+\.\d s", done.stderr)
    (told,) = json.loads(again.stdout)
    assert (told["dataset"], told["bytes"], told["sha256"]) == ("capitals", len(ROWS), sha256(ROWS))
    assert f"capitals: {told['path']}\n  {len(ROWS):,} bytes, sha256 {sha256(ROWS)}\n" == done.stdout
    assert Path(told["path"]).read_bytes() == ROWS
    assert again.stderr == ""
    assert server.ranges == [None, "bytes=100-"]


def test_fetch_goes_on_with_the_other_files_when_one_is_missing(tmp_path: Path, server: FileServer) -> None:
    server.faults = [Fault(status=404)]
    address = f"{server.base_url}/rows.jsonl"
    paths = {"a": address, "b": "${NOT_SET_HERE}", "c": "gone.jsonl", "d": address, "e": "items.jsonl"}
    study = write_study(tmp_path, datasets=[ITEMS | {"name": name, "path": path} for name, path in paths.items()])

    done = fetch_command(study, "--json")

    told = {each["dataset"]: each for each in json.loads(done.stdout)}
    assert done.exit_code == 2
    assert [name for name, each in told.items() if each["problem"]] == ["a", "b", "c"]
    assert "status 404" in told["a"]["problem"]
    assert told["d"]["sha256"] == sha256(ROWS)
    assert (told["e"]["path"], told["e"]["address"]) == (str(tmp_path / "items.jsonl"), None)


def test_where_files_are_kept_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = cache_folder()
    monkeypatch.setenv("BOTHWAYS_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    usual = cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert (named, usual) == (tmp_path / "cache", tmp_path / "xdg/bothways")
    assert cache_folder() == tmp_path / "home/.cache/bothways"


@pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with SQuAD-it")
def test_the_real_file_is_fetched_by_the_hash_that_the_study_pins(
    tmp_path: Path, server: FileServer, fetcher: Fetcher
) -> None:
    shipped = yaml.safe_load((ROOT / "studies/squad_it_low.yaml").read_text("utf-8"))
    (dataset,) = shipped["datasets"]
    dataset["path"] = f"{server.base_url}/{read_address(dataset['path']).name}"
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(shipped), encoding="utf-8")
    server.content = REAL.read_bytes()
    server.faults = [Fault(cut=400_000)]

    loaded = read_study(tmp_path / "study.yaml", fetch=fetcher)

    assert len(loaded.items["squad-it-low"]) == 7609
    assert server.ranges == [None, "bytes=400000-"]
