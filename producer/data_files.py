"""The files of a study's datasets: a path, what --data names instead, or an address and its copy in the cache."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from contract.errors import InputError, UsageError
from contract.settings import cache_folder
from contract.study import Dataset
from producer.data_paths import filled, locate, unusable, variables_in
from producer.fetching.addresses import Address, is_address, read_address
from producer.fetching.at_hand import Fetched, at_hand
from producer.fetching.cache import sha256_of
from producer.fetching.errors import FetchError, WrongHashError

Fetch = Callable[[Address, str | None], Fetched | None]
"""Makes a file of an address and the hash that it must have; None where it would have to be fetched, and is not."""

Refuse = Callable[[str, str], InputError]
"""Makes the error that says what is wrong with a field of the dataset."""

_SECRETS = ("BOTHWAYS_", "HF_TOKEN")


def from_cache(address: Address, sha256: str | None) -> Fetched | None:
    """What the cache has: nothing is fetched."""
    return at_hand(cache_folder(), address, sha256)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file. `path` is None where it is not at hand; `lack` is the error that says why, and what to do.

    `address` is where it lives, None for a path; `fetched` what is known of its copy.
    """

    path: Path | None = None
    lack: UsageError | None = None
    address: Address | None = None
    fetched: Fetched | None = None

    def at_hand(self) -> Path:
        """The path; without one, the error is raised."""
        if self.path is None:
            raise self.lack or UsageError("a data file is not at hand")
        return self.path


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """The files of one dataset. `given`: the data file is one that --data names."""

    data: DataFile
    wrong_answers: DataFile | None = None
    subset: DataFile | None = None
    human: DataFile | None = None
    statements: DataFile | None = None
    given: bool = False

    @property
    def all(self) -> tuple[DataFile, ...]:
        """Each file that the dataset needs."""
        beside = (self.wrong_answers, self.subset, self.human, self.statements)
        return (self.data, *(file for file in beside if file is not None))

    @property
    def to_fetch(self) -> list[Address]:
        """The addresses of which there is no copy yet."""
        return [file.address for file in self.all if file.path is None and file.address is not None]

    @property
    def may_lack(self) -> bool:
        """Whether what is not at hand may still come: a path that --data names is there, or it is wrong."""
        return bool(self.to_fetch) or (self.data.path is None and not self.given)

    def paths(self) -> tuple[Path, Path | None, Path | None, Path | None]:
        """Where the data, the wrong answers, the subset and the human shares are; what is not at hand raises its error.

        None stands for a file that the dataset does without.
        """
        wrong, subset, human = (
            None if file is None else file.at_hand() for file in (self.wrong_answers, self.subset, self.human)
        )
        return self.data.at_hand(), wrong, subset, human


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """Finds the files of the study in `study`; `given` names some by dataset, whatever the study says."""

    study: Path
    given: Mapping[str, str | Path]
    fetch: Fetch

    def find(self, dataset: Dataset, refuse: Refuse) -> FoundFiles:
        """The dataset's files; what `refuse` makes is raised for a file that is there and must not be used.

        Its hash is that of the file at `path`; the files beside it have none.
        """
        sha256 = None if dataset.sha256 is None else dataset.sha256.lower()
        given = self.given.get(dataset.name)
        if given is not None:
            data = self._found(str(given), Path(given), sha256, partial(_refuse_given, dataset))
        else:
            data = self._written(
                dataset.path,
                sha256,
                f"give the file with --data {dataset.name}=PATH (of build: --from PATH)",
                "path",
                refuse,
            )
        beside = {name: getattr(dataset, name) for name in ("wrong_answers", "subset", "human", "statements")}
        found = {
            name: self._written(written, None, "write the path here", name, refuse)
            for name, written in beside.items()
            if written is not None
        }
        return FoundFiles(data=data, given=given is not None, **found)

    def _written(self, written: str, sha256: str | None, option: str, name: str, refuse: Refuse) -> DataFile:
        """The file that the field `name` of the study file means."""
        try:
            source = filled(written, os.environ)
            path = locate(written, self.study.parent, os.environ)
        except KeyError as error:
            problem = f"the variable {error.args[0]} is not set; set it to the file's path, or {option}"
            return DataFile(lack=refuse(name, problem))
        except ValueError as error:
            raise refuse(name, str(error)) from None
        if is_address(source) and any(variable.startswith(_SECRETS) for variable in variables_in(written)):
            raise refuse(name, "an address is sent to its server: it must not hold HF_TOKEN or a variable of Bothways")
        return self._found(source, path, sha256, lambda field, problem: refuse(field or name, problem))

    def _found(self, source: str, path: Path, sha256: str | None, refuse: Callable[[str, str], UsageError]) -> DataFile:
        """The file at `source`, which is an address, or else at `path`; `refuse` gets a field that is not its own."""
        try:
            if is_address(source):
                return self._fetched(read_address(source), sha256, refuse)
            problem = unusable(path)
            if problem is None and sha256 is not None:
                _check(path, sha256)
        except WrongHashError as error:
            raise refuse("sha256" if sha256 is not None else "", str(error)) from None
        except FetchError as error:
            raise refuse("", str(error)) from None
        return DataFile(path=path) if problem is None else DataFile(lack=refuse("", problem))

    def _fetched(self, address: Address, sha256: str | None, refuse: Callable[[str, str], UsageError]) -> DataFile:
        fetched = self.fetch(address, sha256)
        if fetched is None:
            problem = f"{address.shown} is not fetched yet; `bothways fetch {self.study}` does that"
            return DataFile(address=address, lack=refuse("", problem))
        return DataFile(path=fetched.path, address=address, fetched=fetched)


def _refuse_given(dataset: Dataset, _: str, problem: str) -> UsageError:
    return UsageError(f"--data {dataset.name}: {problem}")


def _check(path: Path, sha256: str) -> None:
    """Refuse a file with another hash."""
    try:
        found = sha256_of(path)
    except OSError as error:
        raise FetchError(f"{path} cannot be read: {error.strerror}") from None
    if found != sha256:
        raise WrongHashError(
            f"{path} has the sha256 {found}, and the study expects {sha256}: give the file as it is published, or "
            "write the hash of yours"
        )
