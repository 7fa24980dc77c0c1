"""Stored completions read again: nothing is asked, nothing that was said changes, results follow from what is read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from contract.answers import LetterReading
from contract.completion import Completion
from contract.errors import UnknownStudyError
from contract.formats import asking
from contract.forms import ClosedFormat
from contract.reading import READINGS, STRICT, STRICT_VERSION
from ops.progress import read_study_spec
from ops.readings import readings_in_use
from ops.reparse import Reparsed, reparse
from tests.jobs import change, plan, rows, states
from tests.workers import evaluator_on
from worker.providers.base import Description, Endpoint, Request

SAYS_BOTH = "A, or perhaps B."


class Saying:
    """A model that says the same each time."""

    endpoint = Endpoint(provider="simulated", model="saying", label=None)

    def __init__(self, *said: str) -> None:
        self._said = list(said)
        self.calls = 0

    def complete(self, request: Request) -> Completion:  # noqa: ARG002
        self.calls += 1
        return Completion(text=self._said[(self.calls - 1) % len(self._said)], finish_reason="stop")

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def asked(engine: Engine, folder: Path, *said: str, **changes: Any) -> None:  # noqa: ANN401
    """A study whose jobs were asked and got these completions, in turn."""
    plan(engine, folder, **changes)
    change(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s'")
    ids = [found["id"] for found in rows(engine, "SELECT id FROM job ORDER BY position")]
    evaluator_on(engine, Saying(*said)).evaluate(ids)


def moves(done: Reparsed) -> dict[tuple[str, str], int]:
    """What became of what, over all conditions."""
    total: dict[tuple[str, str], int] = {}
    for condition in done.conditions:
        for move, times in condition.moves.items():
            total[move] = total.get(move, 0) + times
    return total


def everything(engine: Engine) -> list[dict[str, Any]]:
    """All that could have changed."""
    held = "SELECT * FROM attempt ORDER BY id", "SELECT * FROM job ORDER BY id", "SELECT * FROM study_revision"
    return [dict(found) for statement in held for found in rows(engine, statement)]


def test_reading_again_by_the_same_rules_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A", "B.", "I cannot say.")
    before = everything(engine)

    done = reparse(engine, "trial")

    assert (sum(each.read for each in done.conditions), moves(done), done.results) == (8, {}, 0)
    assert everything(engine) == before


def test_an_older_version_s_readings_are_brought_up_to_date(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A")
    change(engine, "UPDATE attempt SET outcome = 'invalid', answer = NULL, reason = 'unreadable', reading_version = 0")
    change(engine, "UPDATE job SET state = 'invalid', answer = NULL")

    done = reparse(engine, "trial")

    assert done.results == 8
    assert states(engine) == {"answered": 8}
    (found,) = rows(engine, "SELECT DISTINCT reading, reading_version FROM attempt")
    assert (found["reading"], found["reading_version"]) == (STRICT, STRICT_VERSION)
    assert {move[0] for move in moves(done)} == {"invalid (unreadable)"}


def test_a_dry_run_says_what_would_change_and_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, SAYS_BOTH)
    before = everything(engine)

    done = reparse(engine, "trial", reading="first-letter", dry_run=True)

    assert sum(moves(done).values()) == 8
    assert done.results == 0
    assert everything(engine) == before
    first = done.conditions[0]
    (examples,) = first.examples.values()
    assert (len(examples), examples[0].completion) == (3, SAYS_BOTH)


def test_another_reading_becomes_the_study_s_own(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, SAYS_BOTH)
    assert states(engine) == {"invalid": 8}

    done = reparse(engine, "trial", reading="first-letter")

    assert done.results == 8
    assert states(engine) == {"answered": 8}
    (form,) = read_study_spec(engine, "trial").formats
    assert isinstance(form, ClosedFormat)
    assert form.reading == "first-letter"
    assert rows(engine, "SELECT revision FROM study")[0]["revision"] == 2
    again = reparse(engine, "trial", reading="first-letter")
    assert (moves(again), again.results) == ({}, 0)
    assert rows(engine, "SELECT revision FROM study")[0]["revision"] == 2
    back = reparse(engine, "trial", reading=STRICT)
    assert back.results == 8
    assert states(engine) == {"invalid": 8}


def test_the_raw_text_and_what_it_cost_stay_as_they_were(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, SAYS_BOTH, "A")
    raw = "SELECT id, job, completion, prompt, seed, tokens_in, latency_ms, started_at, round FROM attempt ORDER BY id"
    before = rows(engine, raw)

    reparse(engine, "trial", reading="first-letter")

    assert rows(engine, raw) == before


def test_the_earliest_attempt_that_can_be_read_counts_now(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, SAYS_BOTH, "B", retry={"invalid": 1}, items=1)
    (by_second,) = {tuple(found.values()) for found in rows(engine, "SELECT state FROM job")}

    done = reparse(engine, "trial", reading="first-letter")

    assert by_second == ("answered",)
    assert done.results == 2
    counted = rows(engine, "SELECT attempt.completion FROM job JOIN attempt ON attempt.id = job.counted_attempt")
    assert [found["completion"] for found in counted] == [SAYS_BOTH, SAYS_BOTH]


def test_what_is_not_finished_keeps_its_state(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, SAYS_BOTH)
    change(engine, "UPDATE job SET state = 'pending', finished_at = NULL, counted_attempt = NULL")

    done = reparse(engine, "trial", reading="first-letter")

    assert done.results == 0
    assert states(engine) == {"pending": 8}


def test_blocked_and_failed_calls_are_left_alone(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A")
    change(engine, "UPDATE attempt SET outcome = 'no_completion', answer = NULL, error_kind = 'misconfigured'")

    assert sum(each.read for each in reparse(engine, "trial").conditions) == 0


def test_other_studies_are_left_alone(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path / "one", SAYS_BOTH)
    asked(engine, tmp_path / "two", SAYS_BOTH, study="other")

    reparse(engine, "other", reading="first-letter")

    found = rows(
        engine, "SELECT study.name, job.state, count(*) FROM job JOIN study ON study.id = job.study GROUP BY 1, 2"
    )
    assert {(each["name"], each["state"]) for each in found} == {("trial", "invalid"), ("other", "answered")}


def test_an_unknown_study_is_refused(engine: Engine) -> None:
    with pytest.raises(UnknownStudyError):
        reparse(engine, "nothing")


def test_a_text_on_which_a_reading_breaks_is_invalid_and_keeps_no_other_from_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(engine, tmp_path, "A", "breaks it", items=2)
    strict = READINGS[STRICT]

    def read(text: str, **known: Any) -> LetterReading:  # noqa: ANN401
        if text == "breaks it":
            raise RecursionError("too deep")
        return strict.read(text, **known)

    monkeypatch.setattr(asking, "READINGS", {STRICT: replace(strict, version=99, read=read)})
    reparse(engine, "trial")

    told = rows(engine, "SELECT completion, reading_version, error_kind, tier FROM attempt ORDER BY completion")
    assert {each["reading_version"] for each in told} == {99}
    assert [each["error_kind"] for each in told] == [None, None, "bug", "bug"]
    monkeypatch.undo()
    reparse(engine, "trial")
    assert rows(engine, "SELECT id FROM attempt WHERE error_kind IS NOT NULL OR error_message IS NOT NULL") == []


def test_a_result_that_does_not_follow_from_its_attempts_is_mended(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A")
    change(engine, "UPDATE job SET state = 'invalid', answer = NULL, counted_attempt = NULL")

    assert reparse(engine, "trial").results == 8
    assert states(engine) == {"answered": 8}


def test_figures_of_two_readings_say_so_until_they_are_read_alike(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A")
    assert readings_in_use(engine, "trial").note is None
    change(engine, "UPDATE attempt SET reading_version = 1 WHERE job IN (SELECT id FROM job LIMIT 3)")

    mixed = readings_in_use(engine, "trial")
    reparse(engine, "trial")

    assert mixed.otherwise == 3
    assert mixed.note == f"read by {STRICT} {STRICT_VERSION} and {STRICT} 1: bothways reparse"
    assert readings_in_use(engine, "trial").note is None


def test_more_jobs_than_one_batch_are_read(engine: Engine, tmp_path: Path) -> None:
    asked(engine, tmp_path, "A", items=130)
    change(engine, "UPDATE attempt SET reading_version = 1")

    assert sum(each.read for each in reparse(engine, "trial").conditions) == 260
    assert readings_in_use(engine, "trial").otherwise == 0
