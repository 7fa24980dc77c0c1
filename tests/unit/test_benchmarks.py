"""The pure parts of the benchmarks: rates and shares over the middle of a run, verdicts, the table, the JSON, sizes."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ops.benchmarks.enqueueing import shape_for
from ops.benchmarks.figures import Call, Goal, Line, Measurement, NotMeasuredError, Row, busy_share, middle_rate
from ops.benchmarks.machine import machine_facts
from ops.benchmarks.options import Options
from ops.benchmarks.prefix_jobs import some_paragraphs
from ops.benchmarks.run import run_all, run_one
from ops.benchmarks.synthetic import Shape, write_study
from ops.benchmarks.table import as_json, render
from producer.plan import plan_jobs
from producer.study_file import read_study
from tests.builders import make_item

ROOT = Path(__file__).parents[2]


def line(measured: float = 30.0, baseline: float = 10.0, goal: Goal | None = None, unit: str = "jobs/s") -> Line:
    """A line about nothing in particular."""
    return Line(what="work", unit=unit, measured=measured, baseline=baseline, against="the plain way", goal=goal)


def measured(*lines: Line, name: str = "work") -> Row:
    """The row of a benchmark that went well."""
    return Row(name=name, seconds=1.25, measurement=Measurement(lines=lines, raw={"jobs": 7}))


def test_a_rate_is_that_of_the_middle_whatever_the_ends_were_like() -> None:
    begin = [float(number) for number in range(10)]
    middle = [10 + number / 10 for number in range(80)]
    end = [20.0 + number for number in range(10)]
    times = begin + middle + end
    random.Random(1).shuffle(times)

    assert middle_rate(times) == pytest.approx(10.0)


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 1.0, 1.0]])
def test_too_few_moments_give_no_rate(times: list[float]) -> None:
    assert middle_rate(times) == 0.0


def test_slots_that_are_never_idle_are_busy_all_the_time() -> None:
    calls = [Call(started=number / 2, seconds=0.5) for number in range(20)] * 3

    assert busy_share(calls, 3) == pytest.approx(1.0)
    assert busy_share(calls, 6) == pytest.approx(0.5)


def test_what_a_slot_does_in_the_first_and_last_tenth_counts_for_nothing() -> None:
    always = [Call(started=0.0, seconds=10.0)]
    at_the_ends = [Call(started=0.0, seconds=1.0), Call(started=9.0, seconds=1.0)]
    half_inside = [Call(started=0.0, seconds=5.0)]

    assert busy_share(always + at_the_ends, 2) == pytest.approx(0.5)
    assert busy_share(always + half_inside, 2) == pytest.approx(0.75)


def test_no_calls_keep_no_slot_busy() -> None:
    assert busy_share([], 4) == 0.0
    assert busy_share([Call(started=1.0, seconds=0.0)], 4) == 0.0


@pytest.mark.parametrize(
    ("goal", "reached"),
    [
        (Goal(bound=3), True),
        (Goal(bound=3.01), False),
        (Goal(bound=3, at_least=False), True),
        (Goal(bound=2.99, at_least=False), False),
        (Goal(bound=30, of_ratio=False), True),
        (Goal(bound=29, at_least=False, of_ratio=False), False),
    ],
)
def test_a_goal_bounds_the_ratio_or_the_figure_from_one_side(goal: Goal, reached: bool) -> None:
    assert line(goal=goal).reached is reached


def test_a_line_without_a_baseline_has_no_ratio_and_reaches_none() -> None:
    alone = line(baseline=0.0, goal=Goal(bound=0))

    assert alone.ratio is None
    assert alone.reached is False


def test_the_table_says_of_every_line_what_it_was_against_what_and_whether_that_is_enough() -> None:
    table = render(
        [
            measured(line(12345.0, 2469.0, Goal(bound=4)), line(1.5, 1.0), name="fast"),
            measured(line(60.0, 900.0, Goal(bound=50, at_least=False, of_ratio=False), unit="MB"), name="large"),
            Row(name="absent", seconds=0, reason="give --squad-it FILE"),
            Row(name="broken", seconds=3, reason="StackError: no disk", failed=True),
        ]
    ).splitlines()

    assert [row.split("  ")[0] for row in table] == ["benchmark", "fast", "fast", "large", "absent", "broken"]
    for cell in ("12,345 jobs/s", "2,469 jobs/s (the plain way)", "5x", "at least 4x"):
        assert cell in table[1]
    assert table[1].endswith("  reached")
    assert table[2].endswith("  -")
    assert "at most 50 MB" in table[3]
    assert table[3].endswith("not reached")
    assert table[4].endswith("not measured: give --squad-it FILE")
    assert table[5].endswith("failed: StackError: no disk")


def test_the_json_holds_lines_verdicts_raw_figures_and_what_was_not_measured() -> None:
    rows = [measured(line(goal=Goal(bound=5))), Row(name="absent", seconds=0.04, reason="give a file")]

    told = json.loads(json.dumps(as_json(rows, machine_facts())))

    assert set(told["machine"]) >= {"cores", "python", "versions", "date", "revision"}
    first, second = told["rows"]
    assert first["raw"] == {"jobs": 7}
    assert first["lines"][0]["ratio"] == 3.0
    assert first["lines"][0]["to_reach"] == "at least 5x"
    assert first["lines"][0]["verdict"] == "not reached"
    assert second == {"name": "absent", "seconds": 0.0, "status": "not measured", "reason": "give a file"}


def test_what_goes_wrong_in_a_benchmark_is_told_in_its_row() -> None:
    def lacks(_: Options) -> Measurement:
        raise NotMeasuredError("give a file")

    def breaks(_: Options) -> Measurement:
        raise ZeroDivisionError("nothing\nthere")

    missing, broken = (run_one("work", measure, Options()) for measure in (lacks, breaks))

    assert (missing.reason, missing.failed) == ("give a file", False)
    assert (broken.reason, broken.failed) == ("ZeroDivisionError: nothing there", True)


def test_a_benchmark_that_cannot_even_be_imported_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.benchmarks.run.MODULES", {"gone": "is_not_there", "prefix-order": "prefix_order"})

    gone, lacking = run_all(["gone", "prefix-order"], Options())

    assert gone.failed
    assert lacking.reason == "give --squad-it FILE, the SQuAD_it-test.json.gz"


def test_a_made_up_study_has_as_many_jobs_as_its_shape_says(tmp_path: Path) -> None:
    shape = Shape(items=7, models=3, repeats=2, latency_s=0.2)

    loaded = read_study(write_study(tmp_path / "trial", shape))

    assert sum(1 for _ in plan_jobs(loaded)) == shape.jobs == 84
    assert loaded.study.study == "trial"
    assert {item.cluster for item in loaded.items["made-up"][:4]} == {loaded.items["made-up"][0].cluster}


@pytest.mark.parametrize("jobs", [100, 1_000, 1_000_000])
def test_the_enqueued_study_has_the_jobs_that_were_asked_for(jobs: int) -> None:
    assert shape_for(jobs).jobs == jobs


def test_paragraphs_are_taken_whole_and_no_more_than_needed() -> None:
    items = [make_item(f"q{number}", cluster=f"p{number // 3}") for number in range(30)]

    chosen = some_paragraphs(items, 7)

    assert len(chosen) == 9
    assert set(Counter(item.cluster for item in chosen).values()) == {3}
    assert chosen == sorted(chosen, key=items.index)


def test_the_peak_of_memory_is_this_process_own() -> None:
    # A process of its own: this one may have held more before.
    program = """
from ops.benchmarks.machine import peak_memory_bytes
before = peak_memory_bytes()
held = bytearray(64 * 2**20)
print(peak_memory_bytes() - before)
"""
    grown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert 32 * 2**20 < int(grown) < 128 * 2**20
