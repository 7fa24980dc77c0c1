"""Committing together: what several threads want stored at the same time becomes one transaction.

While one thread waits for Postgres, the others line up; the next one in turn commits for all of them. No thread goes on
before its own entry is committed.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")
MOST_AT_ONCE = 64


@dataclass
class _Ticket(Generic[Entry]):
    entry: Entry
    done: bool = False
    said: bool = False
    error: Exception | None = None


class Committer(Generic[Entry]):
    """Passes entries to `commit_all`, many at a time; it returns what is to be said to each of them.

    `alone`: the errors that one entry may cause for all. Then each is committed by itself, and only that one fails.
    """

    def __init__(
        self, commit_all: Callable[[Sequence[Entry]], Sequence[bool]], *, alone: tuple[type[Exception], ...]
    ) -> None:
        self._commit_all = commit_all
        self._alone = alone
        self._turn = threading.Lock()
        self._line: deque[_Ticket[Entry]] = deque()

    def commit(self, entry: Entry) -> bool:
        """Have `entry` committed, by this thread or by one that came before; returns or raises what came of it."""
        ticket = _Ticket(entry)
        self._line.append(ticket)
        with self._turn:
            while not ticket.done:
                self._commit_line()
        if ticket.error is not None:
            raise ticket.error
        return ticket.said

    def _commit_line(self) -> None:
        tickets = [self._line.popleft() for _ in range(min(len(self._line), MOST_AT_ONCE))]
        try:
            self._settle(tickets)
        except self._alone:
            for ticket in tickets:
                self._settle_alone(ticket)
        except Exception as error:  # noqa: BLE001 - raised where the entries came from
            for ticket in tickets:
                ticket.error, ticket.done = error, True

    def _settle_alone(self, ticket: _Ticket[Entry]) -> None:
        try:
            self._settle([ticket])
        except Exception as error:  # noqa: BLE001 - raised where the entry came from
            ticket.error, ticket.done = error, True

    def _settle(self, tickets: Sequence[_Ticket[Entry]]) -> None:
        said = self._commit_all([ticket.entry for ticket in tickets])
        for ticket, answer in zip(tickets, said, strict=True):
            ticket.said, ticket.done = answer, True
