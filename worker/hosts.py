"""A GPU host: a worker beside its Ollama server, which serves one model at a time."""

import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from sqlalchemy import Connection, Engine, text

from contract.models import whole_tag
from contract.tables import DUE
from worker.contacts import Contacts
from worker.hosting import IDLE_S, Hosting, Work
from worker.providers.base import ProviderError
from worker.providers.ollama_host import OllamaHost
from worker.queues import Station

LOOKED_AT_EVERY_S = 10.0
"""How often a host is asked which models it has."""

SEEN_FOR_S = 30.0
"""What was seen counts for so long while a host does not answer: it may just be busy."""

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

# What waits for a parent has no instant of its own: then the parents that are being asked are looked at. Each part has
# an index that holds little more than what it looks for.
_SOON = text("""
    SELECT EXISTS (SELECT FROM job WHERE queue = :queue AND state IN ('queued', 'running'))
        OR EXISTS (SELECT FROM job WHERE queue = :queue AND planned AND state = 'pending' AND not_before IS NOT NULL
                   AND not_before <= now() + make_interval(secs => :soon_s))
        OR EXISTS (SELECT FROM job AS parent JOIN job ON job.parent = parent.id
                   WHERE parent.state IN ('queued', 'running')
                     AND job.queue = :queue AND job.planned AND job.state = 'pending')
""")


class Stock:
    """The models that an Ollama server has, their digests by tag, as it was last seen.

    It is looked at in a thread of its own: a server may take seconds to answer, and the heartbeat must not wait for it.
    """

    def __init__(self, host: OllamaHost, *, patience: float = 1.0) -> None:
        self._host = host
        self._every_s = patience * LOOKED_AT_EVERY_S
        self._counts_for_s = patience * SEEN_FOR_S
        self._seen_at = float("-inf")
        self.digests: Mapping[str, str] = MappingProxyType({})
        self.fault: str | None = None

    @property
    def label(self) -> str:
        """Where the server is."""
        return str(self._host.label)

    def look(self) -> None:
        """See what the server has; one that does not answer has nothing, after a while."""
        try:
            self.digests, self.fault = MappingProxyType(self._host.tags()), None
            self._seen_at = time.monotonic()
        except ProviderError as error:
            self.fault = f"Ollama at {self.label}: {error}"
        except Exception as error:  # noqa: BLE001 - this thread lives as long as the worker
            self.fault = f"Ollama at {self.label}: unknown error {type(error).__name__}"
        if time.monotonic() - self._seen_at >= self._counts_for_s:
            self.digests = MappingProxyType({})

    def keep_looking(self, stopping: threading.Event) -> None:
        """Look now and then, until told to stop."""
        self.look()
        while not stopping.wait(self._every_s):
            self.look()


class GpuHost:
    """Which queue a host takes from, and what it tells of itself.

    `holds` says whether jobs of a queue are in hand.
    """

    def __init__(
        self,
        engine: Engine,
        stock: Stock,
        contacts: Contacts,
        holds: Callable[[str], bool],
        *,
        worker: str,
        patience: float = 1.0,
    ) -> None:
        self._engine = engine
        self._stock = stock
        self._contacts = contacts
        self._holds = holds
        self._worker = worker
        self._soon_s = patience * IDLE_S
        self._hosting = Hosting(worker, patience=patience)
        self._met: tuple[str | None, str | None] = None, None

    @property
    def station(self) -> Station:
        """The host as the heartbeat tells it. Until its model is warm one bundle is enough: the others would wait."""
        current = self._hosting.current
        warmth = None if current is None else self._contacts.warmth.get(current)
        notes = tuple(note for note in (self._stock.fault, warmth and warmth.note) if note)
        slots = 1 if warmth is None else warmth.slots
        return Station(endpoint=self._stock.label, models=tuple(sorted(self._stock.digests)), notes=notes, slots=slots)

    def serves(self, queue: str) -> bool:
        """Whether jobs of `queue` may be taken at this moment."""
        return queue == self._hosting.served

    def choose(self, queues: list[str]) -> list[str]:
        """The one queue to take from now, if any."""
        digests, before = self._stock.digests, self._hosting.current
        values = {"queues": queues, "worker": self._worker, "endpoint": self._stock.label}
        with self._engine.connect() as connection:
            rows = [row for row in connection.execute(_WORK, values).all() if whole_tag(row.tag) in digests]
            held = before is not None and self._holds(before)
            soon = before if not held and before is not None and self._soon(connection, before) else None
        works = [Work(queue=row.queue, waiting=row.waiting, hosts=row.hosts, soon=row.queue == soon) for row in rows]
        queue = self._hosting.serve(works, held=held)
        self._meet_anew(next((digests[whole_tag(row.tag)] for row in rows if row.queue == queue), None))
        return [] if queue is None else [queue]

    def _soon(self, connection: Connection, queue: str) -> bool:
        """Whether jobs of `queue` that cannot be taken now may come soon."""
        return bool(connection.execute(_SOON, {"queue": queue, "soon_s": self._soon_s}).scalar_one())

    def _meet_anew(self, digest: str | None) -> None:
        """Have a model met before it is asked where the host goes over to it, or where another one has its tag now."""
        served = self._hosting.served
        if served is not None and (served, digest) != self._met:
            self._contacts.forget(served)
        self._met = served, digest
