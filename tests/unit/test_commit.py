"""Committing together: everything is committed once, nobody goes on before that, and one bad entry harms no other."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from worker.commit import MOST_AT_ONCE, Committer

LONG_S = 20.0


class Books:
    """Where entries end up, one list a transaction. The first transaction lasts until it is let go."""

    def __init__(self) -> None:
        self.transactions: list[list[int]] = []
        self.first_may_end = threading.Event()
        self.bad: set[int] = set()

    def commit_all(self, entries: Sequence[int]) -> list[bool]:
        if self.bad.intersection(entries):
            raise ValueError(f"{sorted(self.bad.intersection(entries))} cannot be stored")
        self.transactions.append(list(entries))
        if len(self.transactions) == 1:
            self.first_may_end.wait(LONG_S)
        return [entry % 2 == 0 for entry in entries]


def commit_behind_first(books: Books, entries: Sequence[int]) -> dict[int, Future[bool]]:
    """Commit 0; while that is under way let a thread for each entry line up; then let all end."""
    committer: Committer[int] = Committer(books.commit_all, alone=(ValueError,))
    with ThreadPoolExecutor(len(entries) + 1) as threads:
        futures = {0: threads.submit(committer.commit, 0)}
        while not books.transactions:
            time.sleep(0.01)
        futures |= {entry: threads.submit(committer.commit, entry) for entry in entries}
        time.sleep(0.2)
        assert not any(future.done() for future in futures.values())
        books.first_may_end.set()
    return futures


def test_what_lines_up_behind_a_commit_becomes_one_transaction() -> None:
    books = Books()

    futures = commit_behind_first(books, range(1, 20))

    assert [sorted(entries) for entries in books.transactions] == [[0], list(range(1, 20))]
    assert {entry: future.result() for entry, future in futures.items()} == {n: n % 2 == 0 for n in range(20)}


def test_a_transaction_has_an_end_however_many_line_up() -> None:
    books = Books()

    commit_behind_first(books, range(1, 2 * MOST_AT_ONCE))

    assert max(len(entries) for entries in books.transactions) == MOST_AT_ONCE
    assert sorted(entry for entries in books.transactions for entry in entries) == list(range(2 * MOST_AT_ONCE))


def test_one_entry_that_cannot_be_stored_fails_alone() -> None:
    books = Books()
    books.bad = {3}

    futures = commit_behind_first(books, range(1, 6))

    with pytest.raises(ValueError, match=r"\[3\] cannot be stored"):
        futures.pop(3).result()
    assert {entry: future.result() for entry, future in futures.items()} == {
        0: True,
        1: False,
        2: True,
        4: True,
        5: False,
    }
    assert sorted(books.transactions) == [[0], [1], [2], [4], [5]]


def test_a_database_that_is_away_is_told_to_everybody_who_waited_for_it() -> None:
    def away(_: Sequence[int]) -> list[bool]:
        raise ConnectionError

    committer: Committer[int] = Committer(away, alone=(ValueError,))

    for entry in (1, 2):
        with pytest.raises(ConnectionError):
            committer.commit(entry)


def test_a_thread_that_ends_while_it_commits_holds_up_nobody() -> None:
    ends = iter([SystemExit, None])

    def commit_all(entries: Sequence[int]) -> list[bool]:
        time.sleep(0.2)
        if end := next(ends):
            raise end
        return [True] * len(entries)

    committer: Committer[int] = Committer(commit_all, alone=(ValueError,))
    with ThreadPoolExecutor(2) as threads:
        ended = threads.submit(committer.commit, 1)
        time.sleep(0.1)
        other = threads.submit(committer.commit, 2)

        assert isinstance(ended.exception(LONG_S), SystemExit)
        assert other.result(LONG_S)


def test_every_entry_of_a_crowd_is_committed_once() -> None:
    stored: list[int] = []

    def commit_all(entries: Sequence[int]) -> list[bool]:
        stored.extend(entries)
        return [entry % 3 == 0 for entry in entries]

    committer: Committer[int] = Committer(commit_all, alone=(ValueError,))

    def go(number: int) -> list[bool]:
        return [committer.commit(number + 16 * turn) for turn in range(200)]

    with ThreadPoolExecutor(16) as threads:
        said = list(threads.map(go, range(16)))

    assert sorted(stored) == list(range(3200))
    assert said == [[(number + 16 * turn) % 3 == 0 for turn in range(200)] for number in range(16)]
