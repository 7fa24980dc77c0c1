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
from producer.plan import PlannedJob, plan_conditions, plan_jobs
from producer.study_file import LoadedStudy
from producer.window import REOPENED

_STUDY = text("""
    INSERT INTO study (name, state, revision, weight, created_at) VALUES (:name, 'active', 1, :weight, now())
    ON CONFLICT (name) DO UPDATE SET revision = study.revision + 1, weight = excluded.weight
    RETURNING id, state, revision
""")
_REVISION = text("""
    INSERT INTO study_revision (study, revision, spec, created_at)
    VALUES (:study, :revision, CAST(:spec AS jsonb), now())
""")
_CONDITION = text("""
    INSERT INTO condition (study, digest, dataset, provider, model, format, variant, stage, queue, spec, rules, state)
    VALUES (:study, :digest, :dataset, :provider, :model, :format, :variant, :stage, :queue,
            CAST(:spec AS jsonb), CAST(:rules AS jsonb), coalesce((
                SELECT max(state) FROM condition AS held WHERE held.study = :study AND held.model = :model
                HAVING bool_and(held.state <> 'active')), 'active'))
    ON CONFLICT (study, digest) DO UPDATE SET rules = excluded.rules RETURNING id
""")
_STAGE_ITEMS = "CREATE TEMP TABLE staged_item (dataset text, source_id text, digest text, payload jsonb)"
_COPY_ITEMS = "COPY staged_item (dataset, source_id, digest, payload) FROM STDIN"
_INSERT_ITEMS = text("""
    INSERT INTO item (dataset, source_id, digest, payload)
    SELECT dataset, source_id, digest, payload FROM staged_item ORDER BY dataset, source_id, digest
    ON CONFLICT (dataset, source_id, digest) DO NOTHING
""")
_ITEM_IDS = text("""
    SELECT item.dataset, item.source_id, item.id FROM item JOIN staged_item USING (dataset, source_id, digest)
""")
_STAGE_JOBS = """
    CREATE TEMP TABLE staged_job
        (condition bigint, item bigint, part int, repeat int, position bigint, prefix bigint, cluster text)
"""
_COPY_JOBS = "COPY staged_job (condition, item, part, repeat, position, prefix, cluster) FROM STDIN"
_INSERT_NEW_JOBS = """
    INSERT INTO job (condition, item, part, repeat, study, queue, position, prefix, cluster)
    SELECT staged.condition, staged.item, staged.part, staged.repeat, :study, condition.queue, staged.position,
           staged.prefix, staged.cluster
    FROM staged_job AS staged JOIN condition ON condition.id = staged.condition
    ORDER BY staged.position
"""
_INSERT_JOBS = text(f"{_INSERT_NEW_JOBS} ON CONFLICT (condition, item, part, repeat) DO NOTHING")
# Rows are locked in the order of their ids, so that workers are waited for and seldom met head on.
_REVIVE = text("""
    UPDATE job SET planned = true WHERE id IN (
        SELECT job.id FROM job JOIN staged_job AS staged USING (condition, item, part, repeat)
        WHERE job.study = :study AND NOT job.planned ORDER BY job.id FOR NO KEY UPDATE OF job)
""")
_MOVE = text("""
    WITH moved AS MATERIALIZED (
        SELECT job.id, staged.position, staged.prefix, staged.cluster
        FROM job JOIN staged_job AS staged USING (condition, item, part, repeat)
        WHERE job.study = :study AND (job.cluster <> staged.cluster OR (job.state = 'pending' AND
              (job.position, job.prefix) IS DISTINCT FROM (staged.position, staged.prefix)))
        ORDER BY job.id FOR NO KEY UPDATE OF job
    ) UPDATE job SET position = moved.position, prefix = moved.prefix, cluster = moved.cluster
    FROM moved WHERE job.id = moved.id
""")
_UNPLAN = text("""
    UPDATE job SET planned = false WHERE id IN (
        SELECT id FROM job WHERE job.study = :study AND job.planned AND NOT EXISTS (
            SELECT FROM staged_job AS staged WHERE (job.condition, job.item, job.part, job.repeat)
                = (staged.condition, staged.item, staged.part, staged.repeat))
        ORDER BY id FOR NO KEY UPDATE)
""")
_REOPEN = text(f"""
    UPDATE job SET {REOPENED}
    WHERE :invalid > (SELECT (spec -> 'retry' ->> 'invalid')::int FROM study_revision
                      WHERE study = :study AND revision = :revision - 1)
      AND job.study = :study AND job.planned AND job.state = 'invalid' AND (
        SELECT count(*) FROM attempt
        WHERE attempt.job = job.id AND attempt.round = job.round AND attempt.outcome = 'invalid'
    ) BETWEEN 1 AND :invalid
""")  # noqa: S608 - only a constant
_CLEAR_STOPS = text("DELETE FROM stop WHERE study = :study")

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
    repeated = Retrying(retry=retry_if_exception(_is_deadlock), stop=stop_after_attempt(5), reraise=True)
    return repeated(_enqueue, engine, loaded)


def _is_deadlock(error: BaseException) -> bool:
    return isinstance(error, OperationalError) and isinstance(error.orig, DeadlockDetected)


def _enqueue(engine: Engine, loaded: LoadedStudy) -> Enqueued:
    with engine.begin() as connection:
        study, revision = _write_study(connection, loaded)
        conditions = _write_conditions(connection, loaded, study)
        items = _write_items(connection, loaded)
        staged = _stage_jobs(connection, plan_jobs(loaded), conditions, items)
        # A study that is new has no jobs to meet and none to fit: it is enqueued faster so.
        insert = text(_INSERT_NEW_JOBS) if revision == 1 else _INSERT_JOBS
        new = connection.execute(insert, {"study": study}).rowcount
        revived, unplanned, reopened = (0, 0, 0) if revision == 1 else _fit_earlier(connection, loaded, study, revision)
        if new > MANY:
            connection.exec_driver_sql("ANALYZE job")
        connection.execute(_CLEAR_STOPS, {"study": study})
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
    revived = connection.execute(_REVIVE, {"study": study}).rowcount
    connection.execute(_MOVE, {"study": study})
    unplanned = connection.execute(_UNPLAN, {"study": study}).rowcount
    raised = {"study": study, "revision": revision, "invalid": loaded.study.retry.invalid}
    reopened = connection.execute(_REOPEN, raised).rowcount
    return revived, unplanned, reopened


def _write_study(connection: Connection, loaded: LoadedStudy) -> tuple[int, int]:
    row = connection.execute(_STUDY, {"name": loaded.study.study, "weight": loaded.study.weight}).one()
    if row.state == "cancelled":
        name = loaded.study.study
        raise InputError(loaded.path, f"the study {name} was cancelled; `bothways resume {name}` takes it up again")
    spec = loaded.study.model_dump_json()
    connection.execute(_REVISION, {"study": row.id, "revision": row.revision, "spec": spec})
    return row.id, row.revision


def _write_conditions(connection: Connection, loaded: LoadedStudy, study: int) -> dict[str, int]:
    ids = {}
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
            "spec": json.dumps(condition.spec),
            "rules": json.dumps(rules.stored),
        }
        ids[digest] = connection.execute(_CONDITION, values).scalar_one()
    return ids


def _write_items(connection: Connection, loaded: LoadedStudy) -> dict[tuple[str, str], int]:
    items = [item for group in loaded.items.values() for item in group]
    connection.exec_driver_sql(_STAGE_ITEMS)
    _copy(connection, _COPY_ITEMS, (_item_row(item) for item in items))
    connection.execute(_INSERT_ITEMS)
    return {(dataset, source_id): item_id for dataset, source_id, item_id in connection.execute(_ITEM_IDS)}


def _item_row(item: Item) -> tuple[str, ...]:
    return item.dataset, item.source_id, item.digest, json.dumps(item.payload, ensure_ascii=False)


def _stage_jobs(
    connection: Connection,
    jobs: Iterator[PlannedJob],
    conditions: dict[str, int],
    items: dict[tuple[str, str], int],
) -> int:
    """Copy the planned jobs into the staging table, streaming; returns how many."""
    connection.exec_driver_sql(_STAGE_JOBS)
    rows = (
        (
            conditions[job.condition],
            items[job.item.dataset, job.item.source_id],
            job.part,
            job.repeat,
            position,
            job.prefix,
            job.item.cluster,
        )
        for position, job in enumerate(jobs)
    )
    return _copy(connection, _COPY_JOBS, rows)


def _copy(connection: Connection, statement: str, rows: Iterable[tuple[Any, ...]]) -> int:
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
