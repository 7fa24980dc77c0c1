"""A GPU host: a worker beside its Ollama server, which serves one model at a time."""

import time
from collections.abc import Callable

from sqlalchemy import Engine, text

from contract.tables import DUE
from worker.contacts import Contacts
from worker.hosting import Hosting, Work
from worker.providers.base import ProviderError
from worker.providers.ollama_host import OllamaHost, whole_tag
from worker.queues import Station

TAGS_LAST_S = 10.0

# Whether jobs wait is asked with a limit, and study by study: what is paused or stopped does not count.
_WORK = text(f"""
    SELECT asked.queue, asked.tag, bool_or(job.waits IS NOT NULL) AS waiting, (
        SELECT count(*) FROM worker_heartbeat
        WHERE queues ? asked.queue AND worker <> :worker AND seen_at > now() - interval '30 s') AS hosts
    FROM (
        SELECT DISTINCT study.id AS study, condition.queue, rules -> 'model' ->> 'model' AS tag
        FROM condition JOIN study ON study.id = condition.study
        WHERE study.state = 'active' AND condition.state = 'active' AND condition.queue = ANY(:queues)
          AND NOT EXISTS (SELECT FROM stop WHERE stop.study = study.id AND stop.queue = condition.queue
                          AND stop.endpoint IN ('', :endpoint))
    ) AS asked LEFT JOIN LATERAL (
        (SELECT 1 AS waits FROM job WHERE job.queue = asked.queue AND job.study = asked.study AND {DUE}
         ORDER BY position LIMIT 1)
        UNION ALL
        (SELECT 1 FROM job WHERE job.queue = asked.queue AND job.study = asked.study AND state = 'queued' LIMIT 1)
    ) AS job ON true
    GROUP BY asked.queue, asked.tag ORDER BY asked.queue
""")  # noqa: S608 - only a constant


class GpuHost:
    """Which queue a host takes from, and what it tells of itself.

    `holds` says whether jobs of a queue are in hand.
    """

    def __init__(
        self, engine: Engine, host: OllamaHost, contacts: Contacts, holds: Callable[[str], bool], *, worker: str
    ) -> None:
        self._engine = engine
        self._host = host
        self._contacts = contacts
        self._holds = holds
        self._worker = worker
        self._hosting = Hosting(worker)
        self._tags: set[str] = set()
        self._fault: str | None = None
        self._looked_at = float("-inf")

    @property
    def station(self) -> Station:
        """The host as the heartbeat tells it."""
        warmth = None if self._hosting.current is None else self._contacts.warmth.get(self._hosting.current)
        notes = tuple(note for note in (self._fault, warmth and warmth.note) if note)
        slots = None if warmth is None else warmth.slots
        return Station(endpoint=self._host.label, models=tuple(sorted(self._tags)), notes=notes, slots=slots)

    def choose(self, queues: list[str]) -> list[str]:
        """The one queue to take from now, if any."""
        self._look()
        values = {"queues": queues, "worker": self._worker, "endpoint": self._host.label}
        with self._engine.connect() as connection:
            rows = connection.execute(_WORK, values).all()
        works = [
            Work(queue=row.queue, waiting=row.waiting, hosts=row.hosts)
            for row in rows
            if whole_tag(row.tag) in self._tags
        ]
        before = self._hosting.current
        queue = self._hosting.serve(works, held=before is not None and self._holds(before))
        if self._hosting.current != before and self._hosting.current is not None:
            self._contacts.forget(self._hosting.current)
        return [] if queue is None else [queue]

    def _look(self) -> None:
        """See which models the host has, now and then."""
        if time.monotonic() - self._looked_at < TAGS_LAST_S:
            return
        try:
            self._tags, self._fault = set(self._host.tags()), None
        except ProviderError as error:
            self._tags, self._fault = set(), f"Ollama at {self._host.label}: {error}"
        self._looked_at = time.monotonic()
