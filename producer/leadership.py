"""Who dispatches: one leader at a time, by an advisory lock, and a sign of life of everyone who could.

The lock belongs to a connection. Postgres ends that connection when nothing was heard on it for some seconds, so the
lock is free soon after its holder died, whether the process was killed, its host lost power, or it only hangs.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text

LEADER_HEARD_S = 15
"""A leader that says nothing for longer loses its lock; with a stand-by's pause a successor leads within 30 s."""

FORGOTTEN_AFTER_S = 86_400
"""Heartbeats that are older are nobody's any more."""

_LEADER_LOCK = 7_401_002

_BEAT = text("""
    INSERT INTO dispatcher_heartbeat (dispatcher, started_at, seen_at, leads, fault)
    VALUES (:dispatcher, now(), now(), :leads, :fault)
    ON CONFLICT (dispatcher) DO UPDATE SET seen_at = now(), leads = excluded.leads, fault = excluded.fault
""")
_GONE = text("DELETE FROM dispatcher_heartbeat WHERE dispatcher = :dispatcher")
_FORGET = [
    text(f"DELETE FROM {table} WHERE seen_at < now() - make_interval(secs => :age)")  # noqa: S608 - constants
    for table in ("worker_heartbeat", "dispatcher_heartbeat")
]


class Presence:
    """The entry of one dispatcher in Postgres."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._name = f"{socket.gethostname()}.{os.getpid()}.{id(self):x}"

    def beat(self, *, leads: bool, fault: str | None = None) -> None:
        """Say that this dispatcher lives, whether it leads, and in one sentence what keeps it from its work."""
        with self._engine.begin() as connection:
            connection.execute(_BEAT, {"dispatcher": self._name, "leads": leads, "fault": fault})

    def leave(self) -> None:
        """Take the entry away, and those that nobody renewed for a day."""
        with self._engine.begin() as connection:
            connection.execute(_GONE, {"dispatcher": self._name})
            for forget in _FORGET:
                connection.execute(forget, {"age": FORGOTTEN_AFTER_S})


@contextmanager
def candidacy(engine: Engine) -> Iterator[Connection]:
    """A connection on which to try for the lead; it never goes back to the pool, so its end frees the lock."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        connection.execute(text(f"SET idle_session_timeout = '{LEADER_HEARD_S}s'"))
        yield connection


def try_to_lead(connection: Connection) -> bool:
    """Whether this connection has the lead from now on."""
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LEADER_LOCK}).scalar_one())


def still_leads(connection: Connection) -> None:
    """Make oneself heard on the connection; an error says that the lead is lost."""
    connection.execute(text("SELECT 1"))


def resign(connection: Connection) -> None:
    """Give the lead back."""
    connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LEADER_LOCK})
