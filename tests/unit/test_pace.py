"""A worker's pace: seconds a job, by queue."""

import pytest

from worker.pace import Pace


def test_a_queue_of_which_nothing_was_done_has_no_pace() -> None:
    assert Pace().now() == {}


def test_the_first_job_sets_the_pace_and_later_ones_move_it() -> None:
    pace = Pace()
    pace.note("a", 2.0)
    assert pace.now() == {"a": 2.0}

    for _ in range(200):
        pace.note("a", 1.0)

    assert pace.now()["a"] == pytest.approx(1.0, abs=0.01)


def test_queues_have_paces_of_their_own() -> None:
    pace = Pace()
    pace.note("a", 2.0)
    pace.note("b", 0.1)

    assert pace.now() == {"a": 2.0, "b": 0.1}
