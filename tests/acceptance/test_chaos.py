"""Nothing lost and nothing twice, whatever dies: the simulated model's own ledger against what was stored.

`make test` runs a short form, `make chaos` the long one. BOTHWAYS_CHAOS_JOBS says how many jobs, BOTHWAYS_CHAOS_SEED
what happens in which order.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from contract.database import open_engine
from contract.results import counted_attempt
from ops.local.postgres import start_postgres
from ops.local.valkey import start_valkey
from ops.schema import migrate
from producer.enqueue import enqueue
from producer.study_file import read_study
from tests.acceptance.chaos import Chaos
from tests.acceptance.test_study_end_to_end import Stage

JOBS = int(os.environ.get("BOTHWAYS_CHAOS_JOBS", "1200"))
SEED = int(os.environ.get("BOTHWAYS_CHAOS_SEED", "1"))
WORKERS, SLOTS = 3, 4
BETWEEN = max(WORKERS * SLOTS, JOBS // 100)
QUIET_FROM = 0.8
LONGEST_S = 120 + JOBS / 10
LONGEST_PAUSE_S = 60

HABITS = {"knows": 0.5, "invalid_rate": 0.1, "fault_rate": 0.02, "latency_s": 0.15}
MODEL = {"name": "sim", "provider": "simulated", "timeout_s": 1, "options": HABITS}


@pytest.fixture
def chaos(tmp_path: Path) -> Iterator[Chaos]:
    """A study's services and processes of their own, because they will be killed."""
    with (
        start_postgres(tmp_path / "postgres") as postgres,
        start_valkey(tmp_path / "valkey") as valkey,
        ExitStack() as processes,
    ):
        engine = open_engine(postgres.url)
        processes.callback(engine.dispose)
        migrate(engine)
        ledger = tmp_path / "ledger.jsonl"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BOTHWAYS_", "OPENAI_"))}
        environment = kept | {
            "BOTHWAYS_DATABASE_URL": postgres.url,
            "BOTHWAYS_BROKER_URL": valkey.url,
            "BOTHWAYS_STATE": str(tmp_path / "state"),
            "BOTHWAYS_SIMULATED_LEDGER": str(ledger),
            "BOTHWAYS_LEASE_MARGIN_S": "2",
        }
        stage = Stage(engine=engine, folder=tmp_path, ledger=ledger, environment=environment, processes=processes)
        yield Chaos(stage=stage, postgres=postgres, valkey=valkey, seed=SEED, workers=WORKERS, slots=SLOTS)


def finished(stage: Stage) -> int:
    """How many jobs have their result."""
    return stage.count("finished_at IS NOT NULL")


def asked(stage: Stage) -> list[str]:
    """The calls that the model was asked, one after the other."""
    with stage.ledger.open(encoding="utf-8") as lines:
        entries = (json.loads(line) for line in lines)
        return [entry["call"] for entry in entries if entry["event"] == "asked"]


@pytest.mark.xdist_group("chaos")
def test_every_job_has_one_result_and_every_call_is_kept_whatever_dies(
    chaos: Chaos, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = chaos.stage
    study = stage.write_study(
        items=JOBS // 2, models=[MODEL], retry={"invalid": 1, "faults": 50}, bundles={"size": 8, "budget_s": 2}
    )
    enqueue(stage.engine, read_study(study))
    began = time.monotonic()
    chaos.begin()
    longest_s = 0.0
    while finished(stage) < QUIET_FROM * JOBS:
        took_s = chaos.pick_up(lambda: finished(stage), jobs=BETWEEN, longest_s=LONGEST_PAUSE_S)
        longest_s = max(longest_s, took_s)
        chaos.go_on()
    while finished(stage) < JOBS:
        assert time.monotonic() - began < LONGEST_S, (stage.states(), chaos.happened)
        time.sleep(0.2)
    took_s = time.monotonic() - began

    calls, attempts = asked(stage), stage.attempts()
    in_flight = set(calls) - attempts
    losses = sum(row["losses"] for row in stage.rows("SELECT losses FROM job"))
    told = ", ".join(f"{times} x {what}" for what, times in sorted(chaos.happened.items()))
    with capsys.disabled():
        sys.stdout.write(
            f"\nchaos, seed {SEED}: {JOBS:,} jobs in {took_s:.0f} s through {told}; {len(calls):,} calls, "
            f"{len(attempts):,} attempts, {len(in_flight)} calls in flight at a kill, {losses} losses counted, "
            f"at work again after {longest_s:.1f} s at the latest\n"
        )

    assert stage.count("state IN ('answered', 'invalid')") == JOBS
    assert stage.count("lease_until IS NOT NULL OR calling OR counted_attempt IS NULL") == 0
    assert len(calls) == len(set(calls))
    assert attempts <= set(calls)
    assert len(in_flight) <= losses <= chaos.lossy * SLOTS
    assert chaos.every_kind_happened
    assert losses > 0, "nothing was in flight whenever something died: this proves nothing"
    assert wrong_results(stage) == 0
    assert paid_twice(stage) == 0


def wrong_results(stage: Stage) -> int:
    """Jobs whose result is not what their attempts say."""
    (found,) = stage.rows(f"""
        SELECT count(*) AS jobs FROM job LEFT JOIN LATERAL ({counted_attempt("job.id")}) AS counted ON true
        WHERE (job.state, job.answer, job.counted_attempt)
              IS DISTINCT FROM (counted.outcome, counted.answer, counted.id)
    """)  # noqa: S608
    return int(found["jobs"])


def paid_twice(stage: Stage) -> int:
    """Jobs with more completions than their study allows and their losses explain."""
    (found,) = stage.rows("""
        SELECT count(*) AS jobs FROM (
            SELECT job.id FROM job JOIN attempt ON attempt.job = job.id WHERE outcome <> 'no_completion'
            GROUP BY job.id, losses
            HAVING count(*) FILTER (WHERE outcome = 'answered') > 1 + losses OR count(*) > 2 + losses
        ) AS twice
    """)
    return int(found["jobs"])
