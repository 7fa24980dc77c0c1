"""How far a study is, read from row counts and nothing else."""

import json
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine, Row, text

from contract.database import postgres_errors
from contract.errors import UsageError
from contract.study import Study
from contract.tables import FINISHED_STATES
from ops.presence import why_nobody_dispatches
from ops.waiting import Waiting, read_notes, read_waiting
from producer.studies import find_study, names
from producer.window import LOSSES_POISON, WORKER_SEEN_S

_SPEC = text("""
    SELECT spec FROM study_revision JOIN study ON study.id = study_revision.study
    WHERE study.name = :name ORDER BY study_revision.revision DESC LIMIT 1
""")
_FOR_AN_INSTANT = "job.not_before > now() AND isfinite(job.not_before)"
_COUNTS = text(f"""
    SELECT condition.model, condition.dataset, condition.queue, job.state, job.planned, count(*) AS jobs,
           min(job.position) AS place, count(*) FILTER (WHERE {_FOR_AN_INSTANT}) AS later,
           extract(epoch FROM min(job.not_before) FILTER (WHERE {_FOR_AN_INSTANT}) - now())::float AS next_s
    FROM job JOIN condition ON condition.id = job.condition WHERE job.study = :study
    GROUP BY condition.model, condition.dataset, condition.queue, job.state, job.planned ORDER BY place
""")  # noqa: S608 - only a constant
_HELD = text("""
    SELECT extract(epoch FROM min(lease_until) - now())::float AS next_lease_ends_s,
           count(*) FILTER (WHERE calling AND lease_until > now()) AS calls
    FROM job WHERE study = :study AND planned AND state IN ('queued', 'running')
""")
_WORKERS = text("SELECT count(*) FROM worker_heartbeat WHERE seen_at > now() - make_interval(secs => :seen)")
_FAULTS = text("""
    SELECT CASE WHEN job.losses > :poison THEN 'poison'
                WHEN last.error_kind IS NULL AND job.parent IS NOT NULL THEN 'parent'
                ELSE coalesce(last.error_kind, 'poison') END AS kind,
           last.error_message AS message, count(*) AS jobs
    FROM job LEFT JOIN LATERAL (
        SELECT error_kind, error_message FROM attempt WHERE attempt.job = job.id
        ORDER BY claim DESC, started_at DESC LIMIT 1
    ) AS last ON true
    WHERE job.study = :study AND job.planned AND job.state = 'failed'
    GROUP BY kind, message ORDER BY jobs DESC LIMIT 5
""")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The planned jobs of one model on one dataset, by state.

    `later` of the pending ones wait for an instant of their own, the first of them for `next_s` seconds.
    """

    model: str
    dataset: str
    jobs: dict[str, int]
    queue: str = ""
    later: int = 0
    next_s: float | None = None

    @property
    def planned(self) -> int:
        """All jobs of the current plan."""
        return sum(self.jobs.values())

    @property
    def finished(self) -> int:
        """Jobs that have their result."""
        return sum(self.jobs.get(state, 0) for state in FINISHED_STATES)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why jobs failed, the commonest first."""

    kind: str
    message: str | None
    jobs: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A study at one moment. `unplanned` jobs are kept but belong to no figure.

    `next_lease_ends_s`: seconds until a queued or running job goes back, if nothing is heard of it before. `calls` are
    in flight. `dispatch_fault` is why no job is being queued at all, None if jobs are. `notes` are what people should
    know of the hosts that may serve it.
    """

    study: str
    state: str
    revision: int
    cells: tuple[Cell, ...]
    unplanned: int
    waiting: tuple[Waiting, ...]
    workers: int
    next_lease_ends_s: float | None = None
    calls: int = 0
    dispatch_fault: str | None = None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()

    def count(self, *states: str) -> int:
        """Planned jobs in any of `states`."""
        return sum(cell.jobs.get(state, 0) for cell in self.cells for state in states)

    @property
    def planned(self) -> int:
        """All jobs of the current plan."""
        return sum(cell.planned for cell in self.cells)

    @property
    def finished(self) -> int:
        """Jobs that have their result."""
        return sum(cell.finished for cell in self.cells)

    def why_held(self, cell: Cell) -> str | None:
        """Why none of the cell's unfinished jobs can move; None if some can, or if there are none."""
        if cell.finished == cell.planned:
            return None
        if self.state != "active":
            return f"the study is {self.state}"
        return next((waiting.reason for waiting in self.waiting if waiting.queue == cell.queue), None)

    @property
    def done(self) -> bool:
        """Whether every planned job has its result."""
        return self.finished == self.planned


def study_names(engine: Engine) -> list[str]:
    """The studies that the database knows."""
    with postgres_errors(engine), engine.connect() as connection:
        return names(connection)


def read_study_spec(engine: Engine, name: str) -> Study:
    """The study as its newest revision has it; UnknownStudyError if there is none."""
    with postgres_errors(engine), engine.connect() as connection:
        find_study(connection, name)
        return Study.model_validate_json(json.dumps(connection.execute(_SPEC, {"name": name}).scalar_one()))


def read_measuring_spec(engine: Engine, name: str) -> Study:
    """The same of a study that measures; UsageError for a recipe."""
    spec = read_study_spec(engine, name)
    if spec.steps:
        raise UsageError(f"{name} is a recipe: it makes data and measures nothing; bothways build writes its files")
    return spec


def read_progress(engine: Engine, name: str) -> Progress:
    """The progress of the study `name`; UnknownStudyError if there is none."""
    with postgres_errors(engine), engine.connect() as connection:
        study = find_study(connection, name)
        scope = {"study": study.id, "seen": WORKER_SEEN_S, "poison": LOSSES_POISON}
        counts = connection.execute(_COUNTS, scope).all()
        waiting = read_waiting(connection, study)
        notes = read_notes(connection, waiting)
        workers = connection.execute(_WORKERS, scope).scalar_one()
        held = connection.execute(_HELD, scope).one()
        dispatch_fault = why_nobody_dispatches(connection)
        faults = connection.execute(_FAULTS, scope).mappings().all()
    return Progress(
        study=study.name,
        state=study.state,
        revision=study.revision,
        cells=_cells([row for row in counts if row.planned]),
        unplanned=sum(row.jobs for row in counts if not row.planned),
        waiting=waiting,
        workers=workers,
        next_lease_ends_s=held.next_lease_ends_s,
        calls=held.calls,
        dispatch_fault=dispatch_fault,
        faults=tuple(Fault(**row) for row in faults),
        notes=notes,
    )


def _cells(rows: list[Row[Any]]) -> tuple[Cell, ...]:
    cells: dict[tuple[str, str], Cell] = {}
    for row in rows:
        key = row.model, row.dataset
        cell = cells.get(key) or Cell(model=row.model, dataset=row.dataset, queue=row.queue, jobs={})
        pending = row.state == "pending" and row.later
        cells[key] = replace(
            cell,
            jobs=cell.jobs | {row.state: row.jobs},
            later=row.later if pending else cell.later,
            next_s=row.next_s if pending else cell.next_s,
        )
    return tuple(cells.values())
