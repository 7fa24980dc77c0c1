"""How far a study is, read from row counts and nothing else."""

from dataclasses import dataclass

from sqlalchemy import Engine, text

from contract.database import postgres_errors
from contract.errors import UnknownStudyError
from contract.tables import FINISHED_STATES

WORKER_SEEN_S = 30

_STUDY = text("SELECT id, name, state, revision FROM study WHERE name = :name")
_NAMES = text("SELECT name FROM study ORDER BY name")
_COUNTS = text("""
    SELECT condition.model, condition.dataset, job.state, job.planned, count(*) AS jobs, min(job.position) AS place
    FROM job JOIN condition ON condition.id = job.condition WHERE job.study = :study
    GROUP BY condition.model, condition.dataset, job.state, job.planned ORDER BY place
""")
_WAITING = text("""
    SELECT unfinished.queue, stop.reason, EXISTS (
        SELECT FROM worker_heartbeat
        WHERE queues ? unfinished.queue AND seen_at > now() - make_interval(secs => :seen)) AS served
    FROM (SELECT DISTINCT queue FROM job WHERE study = :study AND planned
          AND state IN ('pending', 'queued', 'running')) AS unfinished
    LEFT JOIN stop ON stop.study = :study AND stop.queue = unfinished.queue ORDER BY unfinished.queue
""")
_HELD = text("""
    SELECT extract(epoch FROM min(lease_until) - now())::float FROM job
    WHERE study = :study AND planned AND state = 'running'
""")
_WORKERS = text("SELECT count(*) FROM worker_heartbeat WHERE seen_at > now() - make_interval(secs => :seen)")
_FAULTS = text("""
    SELECT coalesce(last.error_kind, 'poison') AS kind, last.error_message AS message, count(*) AS jobs
    FROM job LEFT JOIN LATERAL (
        SELECT error_kind, error_message FROM attempt WHERE attempt.job = job.id ORDER BY started_at DESC LIMIT 1
    ) AS last ON true
    WHERE job.study = :study AND job.planned AND job.state = 'failed'
    GROUP BY kind, message ORDER BY jobs DESC LIMIT 5
""")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The planned jobs of one model on one dataset, by state."""

    model: str
    dataset: str
    jobs: dict[str, int]

    @property
    def planned(self) -> int:
        """All jobs of the current plan."""
        return sum(self.jobs.values())

    @property
    def finished(self) -> int:
        """Jobs that have their result."""
        return sum(self.jobs.get(state, 0) for state in FINISHED_STATES)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A queue with unfinished jobs: why it was stopped, if it was, and whether a living worker serves it."""

    queue: str
    stopped: str | None
    served: bool

    @property
    def reason(self) -> str | None:
        """Why nothing moves here; None if something can."""
        if self.stopped:
            return f"{self.queue} was stopped: {self.stopped}"
        return None if self.served else f"no worker serves {self.queue}"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why jobs failed, the commonest first."""

    kind: str
    message: str | None
    jobs: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A study at one moment. `unplanned` jobs are kept but belong to no figure.

    `next_lease_ends_s`: seconds until a running job would be taken from a worker that is not heard of any more.
    """

    study: str
    state: str
    revision: int
    cells: tuple[Cell, ...]
    unplanned: int
    waiting: tuple[Waiting, ...]
    workers: int
    next_lease_ends_s: float | None = None
    faults: tuple[Fault, ...]

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

    @property
    def done(self) -> bool:
        """Whether every planned job has its result."""
        return self.finished == self.planned


def study_names(engine: Engine) -> list[str]:
    """The studies that the database knows."""
    with postgres_errors(engine), engine.connect() as connection:
        return list(connection.execute(_NAMES).scalars())


def read_progress(engine: Engine, name: str) -> Progress:
    """The progress of the study `name`; UnknownStudyError if there is none."""
    with postgres_errors(engine), engine.connect() as connection:
        study = connection.execute(_STUDY, {"name": name}).one_or_none()
        if study is None:
            known = ", ".join(connection.execute(_NAMES).scalars()) or "none yet"
            raise UnknownStudyError(f"no study {name!r} in the database; known: {known}")
        scope = {"study": study.id, "seen": WORKER_SEEN_S}
        counts = connection.execute(_COUNTS, scope).all()
        waiting = connection.execute(_WAITING, scope).all()
        workers = connection.execute(_WORKERS, scope).scalar_one()
        next_lease_ends_s = connection.execute(_HELD, scope).scalar_one()
        faults = connection.execute(_FAULTS, scope).mappings().all()
    cells: dict[tuple[str, str], dict[str, int]] = {}
    for row in counts:
        if row.planned:
            cells.setdefault((row.model, row.dataset), {})[row.state] = row.jobs
    return Progress(
        study=study.name,
        state=study.state,
        revision=study.revision,
        cells=tuple(Cell(model=model, dataset=dataset, jobs=jobs) for (model, dataset), jobs in cells.items()),
        unplanned=sum(row.jobs for row in counts if not row.planned),
        waiting=tuple(Waiting(queue=row.queue, stopped=row.reason, served=row.served) for row in waiting),
        workers=workers,
        next_lease_ends_s=next_lease_ends_s,
        faults=tuple(Fault(**row) for row in faults),
    )
