"""Enqueue: the plan becomes rows, in one transaction. Running it again adds only what is new and loses nothing.

Rows go by COPY into temporary tables and from there by insert-select, so that the rate does not depend on round trips.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Cursor
from psycopg.errors import DeadlockDetected
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from contract.errors import InputError
from contract.items import Item
from producer import enqueue_statements as statements
from producer.loaded_study import LoadedStudy
from producer.plan import PlannedJob, plan_conditions, plan_jobs, planned_items
from producer.window import settle_children

MANY = 10_000
"""So many new jobs change what Postgres knows of the table; until it looks, it plans every statement wrong."""


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """What one `run` changed, in jobs: `new` rows, `known` ones kept as they are, `revived` ones planned again,
    `unplanned` ones no longer in the study (kept), `reopened` invalid ones that a raised retry count asks again."""

    study: int
    revision: int
    new: int
    known: int
    revived: int
    unplanned: int
    reopened: int


def enqueue(engine: Engine, loaded: LoadedStudy) -> Enqueued:
    """Write the study's plan; all of it or nothing. A cancelled study is refused.

    Where workers and this lock each other out, Postgres breaks it off, and it is done once more.
    """
    return despite_deadlocks()(_enqueue, engine, loaded)


def despite_deadlocks() -> Retrying:
    """Does a whole transaction once more, some times, where Postgres broke it off to free another."""
    return Retrying(retry=retry_if_exception(_is_deadlock), stop=stop_after_attempt(5), reraise=True)


def _is_deadlock(error: BaseException) -> bool:
    return isinstance(error, OperationalError) and isinstance(error.orig, DeadlockDetected)


def _enqueue(engine: Engine, loaded: LoadedStudy) -> Enqueued:
    with engine.begin() as connection:
        return write_plan(connection, loaded)


def write_plan(connection: Connection, loaded: LoadedStudy) -> Enqueued:
    """Write the study's plan in the transaction of `connection`."""
    study, revision = _write_study(connection, loaded)
    conditions, children = _write_conditions(connection, loaded, study)
    items = _write_items(connection, loaded)
    staged = _stage_jobs(connection, plan_jobs(loaded), conditions, items)
    # A study that is new has no jobs to meet and none to fit: it is enqueued faster so.
    insert = text(statements.INSERT_NEW_JOBS) if revision == 1 else statements.INSERT_JOBS
    new = connection.execute(insert, {"study": study}).rowcount
    new += _insert_children(connection, study, children)
    revived, unplanned, reopened = (0, 0, 0) if revision == 1 else _fit_earlier(connection, loaded, study, revision)
    if new > MANY:
        connection.exec_driver_sql("ANALYZE job")
    connection.execute(statements.CLEAR_STOPS, {"study": study})
    _drop_staging(connection)
    return Enqueued(
        study=study,
        revision=revision,
        new=new,
        known=staged - new - revived,
        revived=revived,
        unplanned=unplanned,
        reopened=reopened,
    )


def _fit_earlier(connection: Connection, loaded: LoadedStudy, study: int, revision: int) -> tuple[int, int, int]:
    """Fit the jobs of earlier revisions to this one: how many were revived, are no longer planned, were reopened."""
    revived = connection.execute(statements.REVIVE, {"study": study}).rowcount
    connection.execute(statements.MOVE, {"study": study})
    unplanned = connection.execute(statements.UNPLAN, {"study": study}).rowcount
    raised = {"study": study, "revision": revision, "invalid": loaded.study.retry.invalid}
    reopened = connection.execute(statements.REOPEN, raised).rowcount
    return revived, unplanned, reopened


def _write_study(connection: Connection, loaded: LoadedStudy) -> tuple[int, int]:
    row = connection.execute(statements.STUDY, {"name": loaded.study.study, "weight": loaded.study.weight}).one()
    if row.state == "cancelled":
        name = loaded.study.study
        raise InputError(loaded.path, f"the study {name} was cancelled; `bothways resume {name}` takes it up again")
    spec = loaded.study.model_dump_json()
    connection.execute(statements.REVISION, {"study": row.id, "revision": row.revision, "spec": spec})
    return row.id, row.revision


def _insert_children(connection: Connection, study: int, conditions: list[int]) -> int:
    """Insert the jobs that wait for others, conditions in plan order; returns how many."""
    new = sum(
        connection.execute(statements.INSERT_CHILDREN, {"study": study, "condition": condition}).rowcount
        for condition in conditions
    )
    if new:
        settle_children(connection)
    return new


def _write_conditions(connection: Connection, loaded: LoadedStudy, study: int) -> tuple[dict[str, int], list[int]]:
    """Write the conditions; returns their ids by digest, and those whose jobs wait for others."""
    ids: dict[str, int] = {}
    children = []
    for digest, (condition, rules) in plan_conditions(loaded).items():
        values = {
            "study": study,
            "digest": digest,
            "dataset": condition.dataset,
            "provider": condition.model.provider,
            "model": condition.model.name,
            "format": condition.format.format,
            "variant": condition.variant.label,
            "stage": condition.stage,
            "queue": condition.queue,
            "of_condition": ids[condition.of] if condition.of else None,
            "spec": json.dumps(condition.spec),
            "rules": json.dumps(rules.stored),
        }
        ids[digest] = connection.execute(statements.CONDITION, values).scalar_one()
        if condition.of:
            children.append(ids[digest])
    return ids, children


def _write_items(connection: Connection, loaded: LoadedStudy) -> dict[tuple[str, str, str], int]:
    items = planned_items(loaded)
    connection.exec_driver_sql(statements.STAGE_ITEMS)
    copy_rows(connection, statements.COPY_ITEMS, (_item_row(item) for item in items))
    connection.execute(statements.INSERT_ITEMS)
    return {(row.dataset, row.source_id, row.digest): row.id for row in connection.execute(statements.ITEM_IDS)}


def _item_row(item: Item) -> tuple[str, ...]:
    return item.dataset, item.source_id, item.digest, json.dumps(item.payload, ensure_ascii=False)


def _stage_jobs(
    connection: Connection,
    jobs: Iterator[PlannedJob],
    conditions: dict[str, int],
    items: dict[tuple[str, str, str], int],
) -> int:
    """Copy the planned jobs into the staging table, streaming; returns how many."""
    connection.exec_driver_sql(statements.STAGE_JOBS)
    rows = (
        (
            conditions[job.condition],
            items[job.item.dataset, job.item.source_id, job.item.digest],
            job.part,
            job.repeat,
            position,
            job.prefix,
            job.item.cluster,
        )
        for position, job in enumerate(jobs)
    )
    return copy_rows(connection, statements.COPY_JOBS, rows)


def copy_rows(connection: Connection, statement: str, rows: Iterable[tuple[Any, ...]]) -> int:
    """COPY `rows` through the driver's own connection, in the same transaction; returns how many."""
    cursor: Cursor[Any] = connection.connection.cursor()  # type: ignore[assignment]
    count = 0
    with cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def _drop_staging(connection: Connection) -> None:
    connection.exec_driver_sql("DROP TABLE staged_item, staged_job")
