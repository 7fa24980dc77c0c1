"""The benchmarks with tiny numbers: each runs to its end and measures what it says, not how fast anything is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ops.benchmarks.figures import Measurement
from ops.benchmarks.options import Options
from ops.benchmarks.run import run_all
from tests.builders import squad_document

ROOT = Path(__file__).parents[2]
TINY = Options(jobs=400, messages=40, orchestrated_jobs=100, slots_jobs=200, remembered_jobs=100, prefix_jobs=4)


def run(name: str, options: Options = TINY) -> Measurement:
    """One benchmark, measured."""
    (row,) = run_all([name], options)
    assert row.measurement is not None, row.reason
    assert all(line.measured > 0 and line.baseline > 0 for line in row.measurement.lines)
    return row.measurement


def test_enqueueing_counts_every_job_at_both_sizes() -> None:
    raw = run("enqueue").raw

    assert raw["baseline_messages"] == 40
    assert (raw["tenth_of_the_jobs"]["jobs"], raw["all_jobs"]["jobs"]) == (40, 400)
    assert raw["tenth_of_the_jobs_every_item_new"]["items"] == 20
    assert raw["all_jobs"]["memory_peak_bytes"] >= raw["all_jobs"]["memory_before_bytes"]


def test_the_brokers_memory_is_looked_at_again_and_again_while_leases_run_out() -> None:
    raw = run("broker-memory").raw

    assert raw["jobs"] == raw["queued_jobs"] == 400
    assert 0 < raw["windows_full_mb"] < 5
    assert len(raw["after_each_expiry_mb"]) == 30


def test_our_rate_is_measured_with_the_bundles_that_suit_it_and_with_those_by_default() -> None:
    raw = run("orchestration").raw

    assert set(raw["jobs_per_s_by_bundle"]) == {64, 16}
    assert set(raw["baseline_jobs_per_s_by_slots"]) == {4, 8}


@pytest.mark.parametrize("name", ["slots", "worker-memory"])
def test_a_worker_answers_every_job_of_the_study(name: str) -> None:
    measurement = run(name)

    assert measurement.raw["answered"] == measurement.raw["jobs"]


def test_the_order_of_the_jobs_changes_nothing_but_their_order(tmp_path: Path) -> None:
    data = tmp_path / "squad.json"
    data.write_text(json.dumps(squad_document()), encoding="utf-8")

    orders = run("prefix-order", Options(prefix_jobs=6, squad_it=data)).raw["orders"]

    assert set(orders) == {"random", "two passes", "ours"}
    assert len({order["prompt_tokens_a_job"] for order in orders.values()}) == 1
    assert orders["ours"]["units"] < orders["random"]["units"] == orders["two passes"]["units"]


def test_the_command_ends_well_and_says_what_it_could_not_measure(tmp_path: Path) -> None:
    written = tmp_path / "new" / "figures.json"
    command = [sys.executable, "-m", "ops.benchmarks", "prefix-order", "--json", str(written)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)

    assert "not measured: give --squad-it FILE" in done.stdout
    (row,) = json.loads(written.read_text(encoding="utf-8"))["rows"]
    assert (row["name"], row["status"]) == ("prefix-order", "not measured")


def test_a_benchmark_that_does_not_exist_is_refused() -> None:
    command = [sys.executable, "-m", "ops.benchmarks", "no-such"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert "orchestration" in done.stderr
