"""Committing together: what several threads want stored at the same time becomes one transaction.

While one thread waits for Postgres, the others line up; then the first in line commits for all of them. No thread goes
on before its own entry is committed.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Entry = TypeVar("Entry")
MOST_AT_ONCE = 64


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass
class _Ticket(Generic[Entry]):
    """An entry in line. `news` is released when it was settled, or when its thread is the next to commit."""

    entry: Entry
    settled: bool = False
    said: bool = False
    error: Exception | None = None
    news: threading.Lock = field(default_factory=_locked)


class Committer(Generic[Entry]):
    """Passes entries to `commit_all`, many at a time; it returns what is to be said to each of them.

    `alone`: the errors that one entry may cause for all. Then each is committed by itself, and only that one fails.
    """

    def __init__(
        self, commit_all: Callable[[Sequence[Entry]], Sequence[bool]], *, alone: tuple[type[Exception], ...]
    ) -> None:
        self._commit_all = commit_all
        self._alone = alone
        self._line: deque[_Ticket[Entry]] = deque()
        self._busy = False
        self._change = threading.Lock()

    def commit(self, entry: Entry) -> bool:
        """Have `entry` committed, by this thread or by one that came before; returns or raises what came of it."""
        ticket = _Ticket(entry)
        if not self._line_up(ticket):
            ticket.news.acquire()
        if not ticket.settled:
            self._commit_line()
        if ticket.error is not None:
            raise ticket.error
        return ticket.said

    def _line_up(self, ticket: _Ticket[Entry]) -> bool:
        """Whether nobody is at work, so that the ticket's thread is the one to commit."""
        with self._change:
            self._line.append(ticket)
            first, self._busy = not self._busy, True
            return first

    def _commit_line(self) -> None:
        """Commit for everybody in line, ourselves at its head; then let the next in line go on."""
        with self._change:
            tickets = [self._line.popleft() for _ in range(min(len(self._line), MOST_AT_ONCE))]
        try:
            self._settle_all(tickets)
        finally:
            for ticket in tickets:
                if not ticket.settled:
                    ticket.error, ticket.settled = RuntimeError("the thread that was to commit this ended"), True
            with self._change:
                self._busy = bool(self._line)
                waiting = tickets[1:] + ([self._line[0]] if self._line else [])
            for ticket in reversed(waiting):
                ticket.news.release()

    def _settle_all(self, tickets: Sequence[_Ticket[Entry]]) -> None:
        try:
            self._settle(tickets)
        except self._alone:
            for ticket in tickets:
                self._settle_alone(ticket)
        except Exception as error:  # noqa: BLE001 - raised where the entries came from
            for ticket in tickets:
                ticket.error, ticket.settled = error, True

    def _settle_alone(self, ticket: _Ticket[Entry]) -> None:
        try:
            self._settle([ticket])
        except Exception as error:  # noqa: BLE001 - raised where the entry came from
            ticket.error, ticket.settled = error, True

    def _settle(self, tickets: Sequence[_Ticket[Entry]]) -> None:
        said = self._commit_all([ticket.entry for ticket in tickets])
        for ticket, answer in zip(tickets, said, strict=True):
            ticket.said, ticket.settled = answer, True
