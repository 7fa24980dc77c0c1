"""Have the data files of a study before it is run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from contract.errors import UsageError
from contract.study import Dataset
from ops.cli.fetching import Fetching
from ops.cli.names import DataPaths, Json, StudyFile, data_paths
from ops.cli.terminal import Exit, err, out, print_json, visible
from producer.data_files import DataFile, FoundFiles
from producer.fetching.cache import sha256_of
from producer.study_file import find_data


@dataclass(frozen=True, kw_only=True)
class Told:
    """A data file as it is told. `bytes` and `sha256` are those of the file as it was fetched; `path` is what is read.

    `address`: where it lives, None for a path. `problem`: why there is no file.
    """

    dataset: str
    address: str | None = None
    path: Path | None = None
    bytes: int | None = None
    sha256: str | None = None
    problem: str | None = None


def fetch(study: StudyFile, data: DataPaths = None, as_json: Json = False) -> None:
    """Fetch the data files of a study that live at an address, and say where all its files are and what their hash is.

    `bothways run` does so by itself: this is for a machine that has a network, before those that have none. Files are
    kept in the folder that BOTHWAYS_CACHE names (~/.cache/bothways if left out) and fetched once; what broke off goes
    on from where it was. Files of the Hugging Face hub that need a token: HF_TOKEN. Ends with 2 if a file is missing.

    \b
    bothways fetch studies/squad_it_low.yaml
    bothways fetch study.yaml --data webgpt=hf://datasets/OWNER/NAME/comparisons.jsonl --json
    """
    told: list[Told] = []
    for dataset, found in find_data(study, data_paths(data), Fetching()):
        for each in _told(dataset, found):
            told.append(each)
            if not as_json:
                _print(each)
    if as_json:
        print_json([asdict(each) for each in told])
    raise typer.Exit(Exit.USAGE if any(each.problem for each in told) else Exit.DONE)


def _told(dataset: Dataset, found: FoundFiles | UsageError) -> Iterator[Told]:
    if isinstance(found, UsageError):
        yield Told(dataset=dataset.name, problem=str(found))
        return
    for file in found.all:
        if file.path is None:
            yield Told(dataset=dataset.name, problem=str(file.lack))
        else:
            yield _of_file(dataset.name, file, file.path)


def _of_file(dataset: str, file: DataFile, path: Path) -> Told:
    if file.fetched is not None:
        fetched = file.fetched
        return Told(dataset=dataset, address=fetched.address, path=path, bytes=fetched.bytes, sha256=fetched.sha256)
    try:
        return Told(dataset=dataset, path=path, bytes=path.stat().st_size, sha256=sha256_of(path))
    except OSError as error:
        return Told(dataset=dataset, problem=f"{path} cannot be read: {error.strerror}")


def _print(told: Told) -> None:
    if told.problem is not None:
        err.print(visible(f"bothways: {told.problem}"))
        return
    out.print(visible(f"{told.dataset}: {told.path}"))
    out.print(f"  {told.bytes:,} bytes, sha256 {told.sha256}")
