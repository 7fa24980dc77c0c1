"""Steering and watching with real processes: when calls stop, what the commands say, and how they end."""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from ops.cli.terminal import Exit
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance import test_study_end_to_end as end_to_end
from tests.acceptance.test_study_end_to_end import ROOT, Running, Stage, await_standstill, await_that

stage = end_to_end.stage

STOPS_WITHIN = timedelta(seconds=5)

# The command with a terminal of its own, as a shell starts it: what is typed there reaches it as signals.
IN_A_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("ops.cli", run_name="__main__")
"""
CTRL_C = b"\x03"
MOVES = re.compile(r"\x1b\[\d*[ABK]")
SHOWS_CURSOR = "\x1b[?25h"


def ended(stage: Stage, *arguments: str) -> Running:
    """A command, ended."""
    running = stage.start(*arguments)
    running.end()
    return running


def started_at(stage: Stage) -> list[datetime]:
    """When each call began, from the model's own ledger."""
    lines = [json.loads(line) for line in stage.ledger.read_text(encoding="utf-8").splitlines()]
    return [datetime.fromisoformat(line["at"]) for line in lines if line["event"] == "asked"]


def attempts_a_job(stage: Stage) -> Counter[int]:
    """How many jobs have how many attempts."""
    found = stage.rows("""
        SELECT job.id, count(attempt.id) AS attempts FROM job LEFT JOIN attempt ON attempt.job = job.id GROUP BY job.id
    """)
    return Counter(row["attempts"] for row in found)


class Screen:
    """A terminal with a command in it."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.text = ""

    def read(self, seconds: float = 0.0) -> None:
        """Take in what was written."""
        while select.select([self._master], [], [], seconds)[0]:
            try:
                written = os.read(self._master, 65_536)
            except OSError:  # nobody has the terminal open any more
                return
            if not written:
                return
            self.text += written.decode()
            seconds = 0.0

    def await_text(self, words: str) -> None:
        """Wait until something is written, for half a minute at most."""
        deadline = time.monotonic() + 30
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            self.read(0.1)

    def type(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def end(self) -> int:
        """The command's exit code, waited for."""
        deadline = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self.read(0.1)
        self.read()
        return self.process.returncode


@contextmanager
def in_terminal(stage: Stage, *arguments: str) -> Iterator[Screen]:
    """Run the command in a terminal of 120 columns."""
    master, slave = os.openpty()
    with os.fdopen(master, "wb", buffering=0), os.fdopen(slave, "wb", buffering=0):
        process = subprocess.Popen(
            [sys.executable, "-c", IN_A_TERMINAL, *arguments],
            cwd=ROOT,
            env=stage.environment | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        try:
            yield Screen(master, process)
        finally:
            process.kill()
            process.wait()


def test_a_study_that_is_paused_stops_at_once_and_goes_on_when_it_is_resumed(stage: Stage) -> None:
    # All 200 jobs fit into the window of eight slots: when the study is paused, every one of them is queued.
    study = stage.write_study(items=100, latency_s=0.5)
    stage.start("worker", "--provider", "simulated", "--slots", "8")
    stage.start("dispatch")
    waiting = stage.start("run", str(study), "--wait")
    await_that(lambda: len(stage.attempts()) >= 8)
    queued = stage.states()["queued"]

    pausing = ended(stage, "pause", "trial")
    paused_at = datetime.now(UTC)
    code = waiting.end()
    await_standstill(lambda: len(started_at(stage)), seconds=1)
    at_rest, calls, attempts = stage.states(), stage.calls(), stage.attempts()
    resuming = ended(stage, "resume", "trial")
    again = stage.run(study)

    assert queued > 100
    assert (pausing.process.returncode, pausing.said) == (0, "trial is paused\n")
    assert max(started_at(stage)[: len(calls)]) <= paused_at + STOPS_WITHIN
    assert code == Exit.STUCK
    assert "the study is paused" in waiting.said
    assert "Traceback" not in waiting.said
    assert calls == attempts
    assert at_rest == {"answered": len(attempts), "pending": 200 - len(attempts)}
    assert at_rest["pending"] > 0
    assert (resuming.process.returncode, resuming.said) == (0, "trial is active\n")
    assert again.process.returncode == 0, again.said
    assert stage.states() == {"answered": 200}
    assert attempts_a_job(stage) == {1: 200}
    assert len(stage.calls()) == 200


def test_what_only_a_paused_model_has_left_to_do_ends_the_waiting(stage: Stage) -> None:
    models = [{"name": name, "provider": "simulated"} for name in ("sim", "second")]
    study = stage.write_study(items=2, models=models)
    enqueue(stage.engine, read_study(study))
    pausing = ended(stage, "pause", str(study), "--model", "second", "--json")
    stage.rows("UPDATE job SET state = 'answered' WHERE queue = 'simulated.sim'")

    waiting = stage.run(study)

    assert json.loads(pausing.out.read_text(encoding="utf-8")) == {
        "study": "trial",
        "model": "second",
        "state": "paused",
        "study_state": "active",
        "still_held": ["second"],
        "accepted": [],
    }
    assert waiting.process.returncode == Exit.STUCK, waiting.said
    assert "simulated.second is paused" in waiting.said
    assert "4 jobs wait" in waiting.said


def test_what_could_not_be_read_is_asked_again_and_nothing_else(stage: Stage) -> None:
    model = {"name": "sim", "provider": "simulated", "options": {"invalid_rate": 0.3}}
    study = stage.write_study(items=20, models=[model])
    stage.start_worker()
    stage.run(study)
    invalid = {row["id"] for row in stage.rows("SELECT id FROM job WHERE state = 'invalid'")}
    first = stage.attempts()

    counting = ended(stage, "retry", "trial", "--outcome", "invalid", "--dry-run")
    counted_only = stage.states()
    retrying = ended(stage, "retry", "trial", "--outcome", "invalid,failed", "--json")
    reopened = {row["id"] for row in stage.rows("SELECT id FROM job WHERE state = 'pending'")}
    again = stage.run(study)

    assert 0 < len(invalid) < 40
    assert (counting.process.returncode, counting.said) == (0, f"{len(invalid)} jobs would be asked again\n")
    assert counted_only["invalid"] == len(invalid)
    assert json.loads(retrying.out.read_text(encoding="utf-8")) == {
        "dry_run": False,
        "chosen": [{"model": "sim", "dataset": "capitals", "outcome": "invalid", "jobs": len(invalid)}],
    }
    assert reopened == invalid
    assert again.process.returncode == 0, again.said
    assert {row["id"] for row in stage.rows("SELECT id FROM job WHERE round = 2")} == invalid
    assert stage.count("round = 1") == 40 - len(invalid)
    assert stage.count("finished_at IS NULL OR counted_attempt IS NULL") == 0
    assert attempts_a_job(stage) == {1: 40 - len(invalid), 2: len(invalid)}
    assert first < stage.attempts() == stage.calls()


def test_watching_into_a_pipe_prints_plain_lines_and_ends_when_the_study_is_done(stage: Stage) -> None:
    study = stage.write_study(items=16, latency_s=0.1)
    enqueue(stage.engine, read_study(study))
    watching = stage.start("status", "--watch")

    def watched() -> str:
        return watching.out.read_text(encoding="utf-8") + watching.said

    await_that(lambda: "0 of 32 jobs" in watched())
    stage.start_worker()
    stage.start("run", str(study), "--wait")
    code = watching.end()
    text = watched()

    assert code == 0
    assert "\x1b" not in text
    assert {line.split(":")[0] for line in text.splitlines()} == {"trial"}
    assert "0 failed; 32 wait)" in text.splitlines()[0]
    assert text.splitlines()[-1] == "trial: 32 of 32 jobs (32 answered, 0 invalid, 0 refused, 0 failed); done"
    assert stage.states() == {"answered": 32}


def test_watching_in_a_terminal_redraws_and_ctrl_c_ends_it(stage: Stage) -> None:
    enqueue(stage.engine, read_study(stage.write_study(items=4)))

    with in_terminal(stage, "status", "trial", "--watch") as screen:
        screen.await_text("0 of 8 jobs")
        stage.rows("UPDATE job SET state = 'answered' WHERE position < 3")
        screen.await_text("3 of 8 jobs")
        screen.type(CTRL_C)
        code = screen.end()

    assert code == Exit.INTERRUPTED
    assert "Traceback" not in screen.text
    assert MOVES.search(screen.text)
    assert screen.text.rindex(SHOWS_CURSOR) > screen.text.rindex("3 of 8 jobs")
    assert stage.states() == {"answered": 3, "pending": 5}


def test_resuming_names_what_still_stands_still(stage: Stage) -> None:
    models = [{"name": name, "provider": "simulated"} for name in ("sim", "second")]
    enqueue(stage.engine, read_study(stage.write_study(items=1, models=models)))
    stage.rows("UPDATE condition SET state = 'paused' WHERE model = 'second'")
    stage.rows("UPDATE study SET state = 'paused'")

    of_model = ended(stage, "resume", "trial", "--model", "sim")
    of_study = ended(stage, "resume", "trial")

    assert of_study.said.splitlines() == [
        "trial is active",
        "model second still stands still: bothways resume trial --model second",
    ]
    assert of_model.process.returncode == 0
    assert re.search(r"bothways resume trial$", of_model.said, re.MULTILINE)


def test_the_words_of_a_server_cannot_act_on_the_terminal(stage: Stage) -> None:
    enqueue(stage.engine, read_study(stage.write_study(items=1)))
    stage.rows("UPDATE job SET state = 'failed'")
    stage.rows("""
        INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, error_kind, error_message, worker)
        SELECT gen_random_uuid(), id, 1, 1, now(), 5, 'no_completion', 'rejected', E'a\\x1b[2J[/b][red]b', 'w' FROM job
    """)

    status = ended(stage, "status", "trial")

    text = status.out.read_text(encoding="utf-8")
    assert "failed: 2 x rejected: a" in text
    assert "[/b][red]b" in text
    assert "\x1b" not in text


NO_UTF8 = os.fsdecode(b"q\xff")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("pause", NO_UTF8), id="study"),
        pytest.param(("show", "trial", NO_UTF8), id="item"),
        pytest.param(("show", "trial", "q9"), id="unknown item"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(stage: Stage, arguments: tuple[str, ...]) -> None:
    enqueue(stage.engine, read_study(stage.write_study(items=1)))

    refused = ended(stage, *arguments)

    assert refused.process.returncode == Exit.USAGE
    assert len(refused.said.splitlines()) == 1
    assert refused.said.startswith("bothways: ")
