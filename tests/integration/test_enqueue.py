"""Enqueueing on a real Postgres: all of a plan or nothing, and running again adds only what is new."""

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, RowMapping

from contract.conditions import Rules
from contract.errors import InputError
from contract.study import Study
from producer.enqueue import Enqueued, enqueue
from producer.study_file import read_study
from tests.builders import item_rows, write_study
from tests.jobs import change, rows

ROOT = Path(__file__).parents[2]
SIM = {"name": "sim", "provider": "simulated", "timeout_s": 5}
CAPITALS = {"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}
TABLES = ("study", "study_revision", "item", "condition", "job", "attempt", "stop")

# Reads and enqueues a study as soon as a line comes in, so that two of these begin together.
ENQUEUE = """
import sys
from pathlib import Path
from contract.database import open_engine
from producer.enqueue import enqueue
from producer.study_file import read_study

loaded = read_study(Path(sys.argv[1]))
engine = open_engine(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
done = enqueue(engine, loaded)
print(done.new, done.known, done.revision)
"""


def run(engine: Engine, path: Path) -> Enqueued:
    """What `bothways run` does with a study file."""
    return enqueue(engine, read_study(path))


def snapshot(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table that an enqueue may touch."""
    return {
        table: sorted(str(dict(row)) for row in rows(engine, f"SELECT * FROM {table}"))  # noqa: S608
        for table in TABLES
    }


def jobs(engine: Engine) -> list[RowMapping]:
    """The jobs by position, with what they are about."""
    return rows(
        engine,
        """SELECT job.*, condition.model, condition.dataset, condition.variant, item.source_id, item.payload
           FROM job JOIN condition ON condition.id = job.condition JOIN item ON item.id = job.item
           ORDER BY job.position, job.id""",
    )


def finish(engine: Engine, job: int, state: str, *, attempts: int = 1) -> None:
    """Give a job its result, with attempts of that outcome."""
    outcome = "no_completion" if state == "failed" else state
    for number in range(attempts):
        change(
            engine,
            """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, worker)
               VALUES (:id, :job, 1, 1, now() + make_interval(secs => :number), 5, :outcome, 'w')""",
            id=uuid.uuid4(),
            job=job,
            number=number,
            outcome=outcome,
        )
    change(engine, "UPDATE job SET state = :state, finished_at = now() WHERE id = :job", state=state, job=job)


def test_a_first_run_plans_every_job(engine: Engine, tmp_path: Path) -> None:
    done = run(engine, write_study(tmp_path, items=3, repeats=2))

    assert (done.revision, done.new, done.known, done.revived, done.unplanned, done.reopened) == (1, 12, 0, 0, 0, 0)
    found = jobs(engine)
    assert [job["position"] for job in found] == list(range(12))
    assert {job["queue"] for job in found} == {"simulated.sim"}
    assert {(job["state"], job["planned"], job["claim"], job["losses"], job["round"]) for job in found} == {
        ("pending", True, 0, 0, 1)
    }
    assert {(job["source_id"], job["variant"], job["repeat"]) for job in found} == {
        (item, order, repeat) for item in ("q0", "q1", "q2") for order in ("12", "21") for repeat in (1, 2)
    }


def test_running_again_adds_nothing(engine: Engine, tmp_path: Path) -> None:
    path = write_study(tmp_path)
    run(engine, path)
    before = jobs(engine)

    again = run(engine, path)

    assert (again.revision, again.new, again.known, again.revived, again.unplanned) == (2, 0, 8, 0, 0)
    assert jobs(engine) == before


def test_every_run_stores_the_study_as_it_stood(engine: Engine, tmp_path: Path) -> None:
    for repeats in (1, 2):
        run(engine, write_study(tmp_path, repeats=repeats))

    (study,) = rows(engine, "SELECT * FROM study")
    stored = rows(engine, "SELECT revision, spec FROM study_revision ORDER BY revision")
    assert (study["name"], study["revision"], study["state"]) == ("trial", 2, "active")
    assert [(row["revision"], row["spec"]["repeats"]) for row in stored] == [(1, 1), (2, 2)]
    assert Study.model_validate_json(json.dumps(stored[1]["spec"])) == read_study(tmp_path / "study.yaml").study


def test_raised_repeats_plan_only_what_is_new(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path, repeats=1))
    first = {job["id"] for job in jobs(engine)}

    done = run(engine, write_study(tmp_path, repeats=3))

    assert (done.new, done.known, done.unplanned) == (16, 8, 0)
    assert {job["repeat"] for job in jobs(engine) if job["id"] not in first} == {2, 3}


def test_raised_repeats_stand_beside_the_items_they_belong_to(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path, repeats=1))

    run(engine, write_study(tmp_path, repeats=3))

    found = jobs(engine)
    assert [job["position"] for job in found] == list(range(24))
    assert [job["repeat"] for job in found] == [1, 2, 3] * 8


def test_an_added_model_plans_only_its_own_jobs(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path))
    first = {job["id"] for job in jobs(engine)}

    done = run(engine, write_study(tmp_path, models=[SIM, SIM | {"name": "second"}]))

    assert (done.new, done.known) == (8, 8)
    added = [job for job in jobs(engine) if job["id"] not in first]
    assert {(job["model"], job["queue"]) for job in added} == {("second", "simulated.second")}


@pytest.mark.parametrize(
    ("full", "less"),
    [
        pytest.param({"repeats": 2}, {"repeats": 1}, id="a repeat"),
        pytest.param({"models": [SIM, SIM | {"name": "second"}]}, {"models": [SIM]}, id="a model"),
        pytest.param({"items": 4}, {"items": 2}, id="half the items"),
        pytest.param({"datasets": [CAPITALS, CAPITALS | {"name": "again"}]}, {"datasets": [CAPITALS]}, id="a dataset"),
    ],
)
def test_what_is_taken_out_is_kept_and_planned_again_when_it_comes_back(
    engine: Engine, tmp_path: Path, full: dict[str, Any], less: dict[str, Any]
) -> None:
    run(engine, write_study(tmp_path, **full))
    before = jobs(engine)
    half = len(before) // 2

    taken_out = run(engine, write_study(tmp_path, **less))
    between = jobs(engine)
    back = run(engine, write_study(tmp_path, **full))

    assert (taken_out.new, taken_out.known, taken_out.unplanned) == (0, half, half)
    assert len(between) == len(before)
    assert sum(job["planned"] for job in between) == half
    assert (back.new, back.known, back.revived, back.unplanned) == (0, half, half, 0)
    assert jobs(engine) == before


def test_a_result_that_was_taken_out_is_there_when_it_comes_back(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path, items=4))
    last = jobs(engine)[-1]["id"]
    finish(engine, last, "answered")

    run(engine, write_study(tmp_path, items=2))
    run(engine, write_study(tmp_path, items=4))

    (job,) = [job for job in jobs(engine) if job["id"] == last]
    assert (job["state"], job["planned"]) == ("answered", True)


def test_a_changed_text_is_a_new_item(engine: Engine, tmp_path: Path) -> None:
    old = item_rows(3)
    run(engine, write_study(tmp_path, items=old))

    done = run(engine, write_study(tmp_path, items=[old[0] | {"question": "Which is left?"}, *old[1:]]))

    assert (done.new, done.known, done.unplanned) == (2, 4, 2)
    q0 = {(job["payload"]["question"], job["planned"]) for job in jobs(engine) if job["source_id"] == "q0"}
    assert q0 == {(old[0]["question"], False), ("Which is left?", True)}


def test_equal_content_under_two_ids_is_asked_twice(engine: Engine, tmp_path: Path) -> None:
    row = item_rows(1)[0]

    done = run(engine, write_study(tmp_path, items=[row, row | {"id": "q1"}]))

    assert done.new == 4
    assert len(rows(engine, "SELECT id FROM item")) == 2


def test_another_cluster_is_noted_without_new_jobs(engine: Engine, tmp_path: Path) -> None:
    row = item_rows(1)[0]
    run(engine, write_study(tmp_path, items=[row | {"cluster": "old"}]))

    done = run(engine, write_study(tmp_path, items=[row | {"cluster": "new"}]))

    assert (done.new, done.known) == (0, 2)
    assert {job["cluster"] for job in rows(engine, "SELECT cluster FROM job")} == {"new"}


def test_another_study_cannot_change_what_this_one_calls_a_cluster(engine: Engine, tmp_path: Path) -> None:
    row = item_rows(1)[0]
    run(engine, write_study(tmp_path / "one", study="one", items=[row | {"cluster": "paragraph"}]))

    run(engine, write_study(tmp_path / "two", study="two", items=[row | {"cluster": "thread"}]))

    found = rows(engine, "SELECT study.name, cluster FROM job JOIN study ON study.id = job.study GROUP BY 1, 2")
    assert {job["name"]: job["cluster"] for job in found} == {"one": "paragraph", "two": "thread"}


def test_two_studies_share_items_and_nothing_else(engine: Engine, tmp_path: Path) -> None:
    one = run(engine, write_study(tmp_path, study="one"))

    two = run(engine, write_study(tmp_path, study="two", items=3))

    assert (one.new, two.new, two.known, two.unplanned) == (8, 6, 0, 0)
    assert len(rows(engine, "SELECT id FROM item")) == 4
    assert len(rows(engine, "SELECT id FROM condition")) == 4
    assert all(job["planned"] for job in jobs(engine))


def test_texts_reach_postgres_as_they_were_written(engine: Engine, tmp_path: Path) -> None:
    row = item_rows(1)[0] | {
        "question": "tab\there, \\N, \\., \"quote\", 'è' 🙂\nnew line",
        "choices": ["\\", "{}%s:x"],
    }

    run(engine, write_study(tmp_path, items=[row]))

    (item,) = rows(engine, "SELECT payload FROM item")
    assert item["payload"]["question"] == row["question"]
    assert item["payload"]["choices"] == row["choices"]


def test_changed_rules_reach_the_conditions_that_are_there(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path))

    done = run(engine, write_study(tmp_path, retry={"invalid": 2}, bundles={"size": 7}))

    assert (done.new, done.known) == (0, 8)
    stored = [Rules.from_stored(row["rules"]) for row in rows(engine, "SELECT rules FROM condition")]
    assert [(rules.retry.invalid, rules.bundles.size) for rules in stored] == [(2, 7)] * 2


@pytest.mark.parametrize(
    "changed",
    [
        {"models": [SIM | {"options": {"knows": 0.9}}]},
        {"formats": [{"format": "closed", "sampling": {"temperature": 1.0}}]},
    ],
    ids=["the model", "the sampling"],
)
def test_asking_otherwise_is_planned_anew(engine: Engine, tmp_path: Path, changed: dict[str, Any]) -> None:
    run(engine, write_study(tmp_path))

    done = run(engine, write_study(tmp_path, **changed))

    assert (done.new, done.known, done.unplanned) == (8, 0, 8)


def test_a_condition_that_a_person_paused_stays_paused(engine: Engine, tmp_path: Path) -> None:
    path = write_study(tmp_path)
    run(engine, path)
    change(engine, "UPDATE condition SET state = 'paused' WHERE variant = '21'")

    run(engine, path)

    states = rows(engine, "SELECT variant, state FROM condition ORDER BY variant")
    assert [(row["variant"], row["state"]) for row in states] == [("12", "active"), ("21", "paused")]


def test_a_cancelled_study_is_refused_and_stays_as_it_was(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path))
    change(engine, "UPDATE study SET state = 'cancelled'")
    before = snapshot(engine)

    with pytest.raises(InputError, match="the study trial was cancelled"):
        run(engine, write_study(tmp_path, repeats=2))

    assert snapshot(engine) == before


def test_a_raised_retry_count_asks_again_what_could_not_be_read(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path))
    once, twice, answered, refused, failed, *_ = (job["id"] for job in jobs(engine))
    finish(engine, once, "invalid")
    finish(engine, twice, "invalid", attempts=2)
    for job, state in ((answered, "answered"), (refused, "refused"), (failed, "failed")):
        finish(engine, job, state)

    same = run(engine, write_study(tmp_path))
    raised = run(engine, write_study(tmp_path, retry={"invalid": 1}))

    assert (same.reopened, raised.reopened, raised.new) == (0, 1, 0)
    found = {job["id"]: job for job in jobs(engine)}
    assert (found[once]["state"], found[once]["finished_at"]) == ("pending", None)
    assert [found[job]["state"] for job in (twice, answered, refused, failed)] == [
        "invalid",
        "answered",
        "refused",
        "failed",
    ]
    assert len(rows(engine, "SELECT id FROM attempt")) == 6


def test_a_result_outside_the_plan_is_not_asked_again(engine: Engine, tmp_path: Path) -> None:
    run(engine, write_study(tmp_path, items=2))
    for job in jobs(engine):
        finish(engine, job["id"], "invalid")

    done = run(engine, write_study(tmp_path, items=1, retry={"invalid": 1}))

    assert (done.unplanned, done.reopened) == (2, 2)
    assert {(job["planned"], job["state"]) for job in jobs(engine)} == {(True, "pending"), (False, "invalid")}


def test_running_again_clears_the_stops_of_that_study_only(engine: Engine, tmp_path: Path) -> None:
    path = write_study(tmp_path / "one", study="one")
    one = run(engine, path).study
    two = run(engine, write_study(tmp_path / "two", study="two")).study
    for study in (one, two):
        change(
            engine,
            "INSERT INTO stop (study, queue, reason, since) VALUES (:study, 'simulated.sim', 'wrong key', now())",
            study=study,
        )

    run(engine, path)

    assert [row["study"] for row in rows(engine, "SELECT study FROM stop")] == [two]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"repeats": "many"}, id="wrong type"),
        pytest.param({"items": [*item_rows(2), item_rows(3)[2] | {"target": 2}]}, id="bad last row"),
        pytest.param(
            {"datasets": [CAPITALS, CAPITALS | {"name": "gone", "path": "gone.jsonl"}]}, id="second file gone"
        ),
        pytest.param({"datasets": [CAPITALS | {"expect": {"items": 5}}]}, id="expectation not met"),
        pytest.param({"description": "a\0b", "repeats": 2}, id="NUL"),
    ],
)
@pytest.mark.parametrize("known", [False, True], ids=["a new study", "a known study"])
def test_a_bad_file_writes_nothing_at_all(engine: Engine, tmp_path: Path, bad: dict[str, Any], known: bool) -> None:
    if known:
        run(engine, write_study(tmp_path))
    before = snapshot(engine)

    with pytest.raises(InputError):
        run(engine, write_study(tmp_path, **bad))

    assert snapshot(engine) == before


def test_two_processes_that_enqueue_one_study_at_once_end_with_the_same_rows(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    path = write_study(tmp_path, items=300)
    command = [sys.executable, "-c", ENQUEUE, str(path), database_url]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    with (
        subprocess.Popen(command, cwd=ROOT, **pipes) as one,
        subprocess.Popen(command, cwd=ROOT, **pipes) as two,
    ):
        assert one.stdout is not None
        assert two.stdout is not None
        assert [one.stdout.readline(), two.stdout.readline()] == ["ready\n", "ready\n"]
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = sorted([one.communicate(timeout=30)[0], two.communicate(timeout=30)[0]])

    assert (one.returncode, two.returncode) == (0, 0)
    assert told == ["0 600 2\n", "600 0 1\n"]
    assert [job["position"] for job in jobs(engine)] == list(range(600))
    assert len(rows(engine, "SELECT id FROM item")) == 300
    assert len(rows(engine, "SELECT id FROM condition")) == 2
