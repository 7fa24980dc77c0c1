"""What the unfinished jobs of a study wait for, queue by queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from contract.database import postgres_errors
from contract.models import whole_tag
from contract.recorded import RECORDED
from producer.window import WORKER_SEEN_S

_UNFINISHED = text("""
    SELECT condition.queue, min(condition.rules -> 'model' ->> 'model') AS model, min(condition.provider) AS provider,
           CASE WHEN bool_or(condition.state = 'active') THEN 'active' ELSE max(condition.state) END AS activity,
           bool_and((job.state = 'pending' AND job.not_before = 'infinity') IS TRUE) AS for_parents
    FROM job JOIN condition ON condition.id = job.condition
    WHERE job.study = :study AND job.planned AND job.state IN ('pending', 'queued', 'running')
    GROUP BY condition.queue ORDER BY condition.queue
""")
_STOPS = text("SELECT queue, endpoint, reason, digest FROM stop WHERE study = :study ORDER BY queue, endpoint")
_WORKERS = text("""
    SELECT queues, endpoint, models, resting, notes FROM worker_heartbeat
    WHERE seen_at > now() - make_interval(secs => :seen) ORDER BY worker
""")
_CLOCK = text("SELECT now()")

SHOWN = 6
"""So many hosts and models are named in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A queue with unfinished jobs: why it was stopped, if it was, whether it is paused, and whether it is served.

    `for_parents`: all that is left in it needs answers that other jobs have not given yet. `rests`: until when and why
    workers that could serve it leave it alone, `rests_s` for how many seconds at least, `quota` whether only a quota is
    used up. `unserved`: why no worker serves it, where more is known than that. `on_hosts`: whether GPU hosts
    serve it. `for_import`: no worker ever does, its answers are imported.
    """

    queue: str
    stopped: str | None
    served: bool
    activity: str = "active"
    for_parents: bool = False
    rests: str | None = None
    rests_s: float | None = None
    quota: bool = False
    unserved: str | None = None
    on_hosts: bool = False
    for_import: bool = False

    @property
    def reason(self) -> str | None:
        """Why nothing moves here; None if something can."""
        if self.activity != "active":
            return f"{self.queue} is {self.activity}"
        if self.stopped:
            return f"{self.queue} was stopped: {self.stopped}"
        if self.for_import:
            return f"{self.queue} waits for bothways import"
        if self.for_parents:
            return f"{self.queue} waits for answers that other jobs must give first"
        if self.served:
            return None
        if self.rests:
            return f"{self.queue} rests {self.rests}"
        return f"no worker serves {self.queue}{f': {self.unserved}' if self.unserved else ''}"

    @property
    def by_hand(self) -> bool:
        """Whether it will stand still until somebody does something, so that waiting for a worker is in vain."""
        return self.activity != "active" or self.stopped is not None or self.for_parents or self.for_import

    @property
    def until_s(self) -> float | None:
        """In how many seconds it may go on by itself; None if nothing is known of that."""
        return None if self.by_hand or self.served else self.rests_s


def read_waiting(connection: Connection, study: Row[Any]) -> tuple[Waiting, ...]:
    """The queues of `study` (id and name) that have unfinished jobs."""
    scope = {"study": study.id, "seen": WORKER_SEEN_S}
    unfinished = connection.execute(_UNFINISHED, scope).all()
    stops = connection.execute(_STOPS, scope).all()
    workers = connection.execute(_WORKERS, scope).all()
    now = connection.execute(_CLOCK).scalar_one()
    return tuple(_waiting(study.name, row, stops, workers, now) for row in unfinished)


def read_notes(connection: Connection, waiting: Sequence[Waiting]) -> tuple[str, ...]:
    """What people should know of the GPU hosts at work, if anything waits for such hosts."""
    if not any(each.on_hosts for each in waiting):
        return ()
    workers = connection.execute(_WORKERS, {"seen": WORKER_SEEN_S}).all()
    return tuple(dict.fromkeys(note for worker in workers for note in worker.notes))


def _waiting(
    study: str, row: Row[Any], stops: Sequence[Row[Any]], workers: Sequence[Row[Any]], now: datetime
) -> Waiting:
    queue = row.queue
    ours = [stop for stop in stops if stop.queue == queue]
    stopped = next((_told(study, stop) for stop in ours if not stop.endpoint), None)
    served = any(queue in worker.queues for worker in workers)
    if not served and ours and stopped is None and _only_stopped(queue, ours, workers):
        stopped = "; ".join(f"on {stop.endpoint}: {_told(study, stop)}" for stop in ours)
    rest = _first_rest(queue, workers)
    until = None if rest is None else datetime.fromisoformat(rest["until"])
    return Waiting(
        queue=queue,
        stopped=stopped,
        served=served,
        activity=row.activity,
        for_parents=row.for_parents,
        rests=None if until is None or rest is None else f"{_instant(until, now)}: {rest['reason']}",
        rests_s=None if until is None else max(0.0, (until - now).total_seconds()),
        quota=rest is not None and rest["quota"],
        unserved=_unserved(row, workers),
        on_hosts=row.provider == "ollama",
        for_import=row.provider == RECORDED,
    )


def _told(study: str, stop: Row[Any]) -> str:
    if stop.digest is None:
        return str(stop.reason)
    return f"{stop.reason}; `bothways resume {study} --accept-digest` lets it answer too"


def _only_stopped(queue: str, stops: Sequence[Row[Any]], workers: Sequence[Row[Any]]) -> bool:
    """Whether no host is at work that could serve the queue and was not stopped for it."""
    stopped = {stop.endpoint for stop in stops}
    return not any(queue in worker.resting and worker.endpoint not in stopped for worker in workers)


def _first_rest(queue: str, workers: Sequence[Row[Any]]) -> dict[str, Any] | None:
    """The rest that ends first, of all the workers that leave the queue alone."""
    found = [worker.resting[queue] for worker in workers if queue in worker.resting]
    return min(found, key=lambda rest: datetime.fromisoformat(rest["until"]), default=None)


def _instant(until: datetime, now: datetime) -> str:
    return f"until {until:%H:%M:%S} UTC" if until.date() == now.date() else f"until {until:%Y-%m-%d %H:%M:%S} UTC"


def _unserved(row: Row[Any], workers: Sequence[Row[Any]]) -> str | None:
    """Why no worker serves a queue, where more is known than that."""
    if row.provider != "ollama":
        return None
    return _hosts(workers).lack(row.model) or "the hosts that have it are busy with other models"


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The GPU hosts at work, each with the tags of its models; `faults` are those of hosts that show none."""

    models: dict[str, list[str]]
    faults: dict[str, str]

    def lack(self, tag: str) -> str | None:
        """Why none of them can serve a model; None if one has it."""
        if not self.models:
            return "no GPU host is at work; start `bothways worker --provider ollama` beside an Ollama server"
        wanted = whole_tag(tag)
        if any(wanted in models for models in self.models.values()):
            return None
        if not any(self.models.values()) and self.faults:
            return "; ".join(self.faults[host] for host in sorted(self.faults)[:SHOWN])
        have = "; ".join(f"{host} has {listed(models)}" for host, models in sorted(self.models.items())[:SHOWN])
        return f"no host has {wanted} ({have}): `ollama pull {wanted}` there"


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """The first names of a list, how many more there are, "none" if there are none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def hosts_at_work(engine: Engine) -> Hosts:
    """The GPU hosts that were seen lately."""
    with postgres_errors(engine), engine.connect() as connection:
        return _hosts(connection.execute(_WORKERS, {"seen": WORKER_SEEN_S}).all())


def _hosts(workers: Sequence[Row[Any]]) -> Hosts:
    hosts = [worker for worker in workers if worker.endpoint]
    return Hosts(
        models={host.endpoint: host.models or [] for host in hosts},
        faults={host.endpoint: host.notes[0] for host in hosts if host.notes and not host.models},
    )
