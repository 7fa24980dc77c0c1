"""Import of recorded answers: the rows of a file finish the jobs of a model that nobody asks.

All of it is one transaction, plan included, and a bad row leaves nothing behind. An attempt's id follows from its job
and its row, so that importing a file twice changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine

from contract.answers import Answer
from contract.errors import InputError
from contract.formats import asking
from contract.forms import OpenFormat
from contract.items import canonical_digest
from contract.recorded import RECORDED, RECORDED_VERSION, RecordedModel
from contract.storable import StorableText, storable
from producer import recorded_statements as statements
from producer.datasets.layouts import read_table
from producer.enqueue import copy_rows, despite_deadlocks, write_plan
from producer.fetching.cache import sha256_of
from producer.loaded_study import LoadedStudy
from producer.recorded_answers import given_answer, read_completion
from producer.recorded_places import Asking, Place, Places, read_places
from producer.recorded_rows import RecordedRow, recorded_row


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A row whose answer is not what was read in its completion: choices by their numbers from 1, or ratings; None
    where there is none."""

    row: int
    item: str
    given: int | None
    read: int | None


@dataclass(kw_only=True)
class Imported:
    """What an import brought: rows of the model and of others, answers and invalid ones, jobs finished by it.

    `waiting` jobs of the model are still without a result. `for_annotator`: answers of open rows that another model is
    to give anew, and so were left out.
    """

    study: str
    model: str
    rows: int = 0
    of_others: int = 0
    answered: int = 0
    invalid: int = 0
    finished: int = 0
    waiting: int = 0
    for_annotator: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)


def import_answers(
    engine: Engine,
    loaded: LoadedStudy,
    model: RecordedModel,
    path: Path,
    *,
    as_given: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Enqueue the study's plan and finish the jobs of `model` with the rows of `path`; all of it or nothing.

    `as_given`: where a row has a completion and an answer that is not read in it, the answer counts.
    """
    return despite_deadlocks()(_import, engine, _Import(loaded, model, path, as_given=as_given), dry_run=dry_run)


def _import(engine: Engine, one: "_Import", *, dry_run: bool) -> Imported:
    with engine.connect() as connection, connection.begin() as transaction:
        done = one.write(connection)
        if dry_run:
            transaction.rollback()
        return done


class _Import:
    """One file on its way into the database."""

    def __init__(self, loaded: LoadedStudy, model: RecordedModel, path: Path, *, as_given: bool) -> None:
        self._loaded = loaded
        self._model = model
        self._path = path
        self._as_given = as_given
        self._done = Imported(study=loaded.study.study, model=model.name)
        self._models: set[str] = set()

    def write(self, connection: Connection) -> Imported:
        """All that the file brings, in the transaction of `connection`."""
        self._done = Imported(study=self._loaded.study.study, model=self._model.name)
        study = write_plan(connection, self._loaded).study
        places = read_places(connection, study, self._model, self._loaded.study.repeats)
        connection.exec_driver_sql(statements.STAGE)
        copy_rows(connection, statements.COPY, self._staged(places))
        if not self._done.rows:
            others = f"no row is of the model {self._model.model!r}; {self._done.of_others:,} are of other models"
            raise InputError(self._path, others if self._done.of_others else "there is no row in the file")
        connection.exec_driver_sql(statements.ANALYZE_STAGED)
        deployments = self._deployments(connection)
        for annotation in (False, True):
            self._done.finished += self._finish(connection, deployments, annotation=annotation)
        scope = {"study": study, "model": self._model.name}
        self._done.waiting = connection.execute(statements.WAITING, scope).scalar_one()
        connection.exec_driver_sql(statements.DROP)
        return self._done

    def _finish(self, connection: Connection, deployments: dict[str, int], *, annotation: bool) -> int:
        """Finish the jobs of answers, or of their annotations once those are due; returns how many."""
        connection.execute(statements.MATCH, {"annotation": annotation})
        connection.exec_driver_sql(statements.ANALYZE_MATCHED)
        row = connection.execute(statements.ANSWERED_OTHERWISE).scalar_one()
        if row is not None:
            problem = "the job has another answer from an earlier import; give the study another name for these"
            raise InputError(self._path, problem, row=row, field=self._model.columns.item or "item")
        values = {"models": list(deployments), "deployments": list(deployments.values())}
        connection.execute(statements.INSERT_ATTEMPTS, values)
        finished: int = connection.execute(statements.FINISH).scalar_one()
        connection.exec_driver_sql(statements.DROP_MATCHED)
        return finished

    def _deployments(self, connection: Connection) -> dict[str, int]:
        """Where the answers come from, by model: the file by its name and content."""
        origin = {"provider": RECORDED, "endpoint": self._path.name, "digest": sha256_of(self._path)}
        return {
            model: connection.execute(
                statements.DEPLOYMENT, values | {"identity": canonical_digest(values)}
            ).scalar_one()
            for model in sorted(self._models)
            for values in [origin | {"model": model}]
        }

    def _staged(self, places: Places) -> Iterator[tuple[Any, ...]]:
        """The rows as the staging table takes them, an annotation in a row of its own."""
        for row in read_table(self._path):
            entry = recorded_row(row, self._model)
            if entry is None:
                self._done.of_others += 1
                continue
            self._done.rows += 1
            place, part, repeat = places.find(entry)
            told = self._open(entry, place) if isinstance(place.asking.form, OpenFormat) else self._one(entry, place)
            for way, said, answer, given in told:
                self._count(answer)
                self._models.add(way.model)
                job = (way.id, place.item_id, part, repeat)
                annotation = way is not place.asking
                yield (entry.row.number, annotation, *job, way.model, *_values(way, said, answer, given=given))

    def _one(self, entry: RecordedRow, place: Place) -> Iterator["_Told"]:
        """The answer of a row in a format where it needs no annotation: read, or as it is given."""
        said = _said(entry)
        given = self._given(entry, place, place.asking) if entry.says_answer or said is None else None
        if said is None:
            assert given is not None  # noqa: S101 - one of them is there
            yield place.asking, None, given, True
            return
        read = read_completion(said, place.asking.form, place.item, place.asking.variant)
        as_given = False
        if given is not None and given.number != read.number:
            self._disagree(entry, given, read)
            as_given = self._as_given
        yield place.asking, said, given if as_given and given else read, as_given

    def _open(self, entry: RecordedRow, place: Place) -> Iterator["_Told"]:
        """The text of an open answer and, where the file says which choice it gives, its annotation."""
        said = _said(entry)
        if said is None:
            lack = "is empty" if entry.says_completion else "is missing"
            raise entry.refuse("completion", f"{lack}; an open answer is its text")
        way = place.asking
        read = read_completion(said, way.form, place.item, way.variant)
        yield way, said, read, False
        if not entry.says_answer or not way.annotated:
            return
        if way.annotation is None:
            self._done.for_annotator += 1
            return
        given = self._given(entry, place, way.annotation)
        if read.valid:
            yield way.annotation, None, given, True
        elif given.valid:
            self._disagree(entry, given, read)

    def _given(self, entry: RecordedRow, place: Place, way: Asking) -> Answer:
        if not entry.says_answer:
            raise entry.refuse("answer", f"is missing, and so is the completion; {entry.row.has}")
        try:
            return given_answer(entry.answer, way.form, place.item, way.variant)
        except ValueError as error:
            raise entry.refuse("answer", str(error)) from None

    def _disagree(self, entry: RecordedRow, given: Answer, read: Answer) -> None:
        told = Disagreement(row=entry.row.number, item=entry.source_id, given=_printed(given), read=_printed(read))
        self._done.disagreements.append(told)

    def _count(self, answer: Answer) -> None:
        if answer.valid:
            self._done.answered += 1
        else:
            self._done.invalid += 1


_Told = tuple[Asking, StorableText | None, Answer, bool]
"""A condition, what was said, the answer, and whether it counts as it is given."""


def _said(entry: RecordedRow) -> StorableText | None:
    """What the model said; an empty field is an empty completion where no answer speaks for it."""
    if not entry.completion and (entry.answer is not None or not entry.says_completion):
        return None
    return storable(entry.completion or "")


def _values(way: Asking, said: StorableText | None, answer: Answer, *, given: bool) -> tuple[Any, ...]:
    reading, version = (RECORDED, RECORDED_VERSION) if given else asking.reading_of(way.form)
    completion, length = (None, None) if said is None else (said.text, said.cut_from or len(said.text))
    outcome = "answered" if answer.valid else "invalid"
    content = canonical_digest([completion, [answer.number, answer.reason] if given else None])
    told = (outcome, answer.number, answer.text, answer.tier, answer.reason, reading, version)
    return content, completion, length, *told


def _printed(answer: Answer) -> int | None:
    return answer.rating if answer.choice is None else answer.choice + 1
