"""Steering on a real Postgres: what is asked again, and what stands still until somebody takes it up."""

import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import Engine, text

from contract.completion import Completion
from contract.errors import InputError, UnknownStudyError, UsageError
from ops.cli import steer as commands
from ops.progress import read_progress
from producer.enqueue import enqueue
from producer.steering import Selection, Steered, retry, steer
from producer.study_file import read_study
from producer.window import LOSSES_POISON, claimants, due_jobs, recover
from tests.builders import write_study
from tests.workers import evaluator_on
from worker.evaluate import Evaluator
from worker.providers.base import Description, Endpoint, Request
from worker.store import JobStore

SIM = {"name": "sim", "provider": "simulated"}
SECOND = {"name": "second", "provider": "simulated"}
CAPITALS = {"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}
RIVERS = CAPITALS | {"name": "rivers"}

POISON = LOSSES_POISON + 1

Activity = Literal["active", "paused", "cancelled"]

# How the four jobs of each model and dataset ended: state, the kinds of error of their calls in order, losses.
Ending = tuple[str, tuple[str | None, ...], int]
ENDINGS: dict[tuple[str, str], list[Ending]] = {
    ("sim", "capitals"): [
        ("answered", ("transient", None), 0),
        ("invalid", (None,), 0),
        ("refused", ("refused",), 0),
        ("failed", ("rejected", "transient"), 2),
    ],
    ("sim", "rivers"): [
        ("answered", (None,), 0),
        ("invalid", ("transient", None), 0),
        ("refused", ("refused",), 0),
        ("failed", ("transient", "rejected"), 0),
    ],
    ("second", "capitals"): [
        ("answered", (None,), 0),
        ("invalid", (None,), 0),
        ("answered", (None,), 0),
        ("failed", ("transient",), POISON),
    ],
    ("second", "rivers"): [
        ("answered", (None,), 0),
        ("invalid", (None,), 0),
        ("invalid", (None, None), 0),
        ("failed", (), POISON),
    ],
}
EVERY_STATE = ("pending", "queued", "running", "answered", "invalid", "refused", "failed", "failed")


class Letters:
    """A provider that answers the same text to everything, and does something in the middle of every call."""

    endpoint = Endpoint(provider="simulated", model="letters", label=None)

    def __init__(self, answer: str, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._answer = answer
        self._meanwhile = meanwhile
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        self._meanwhile()
        return Completion(text=self._answer, finish_reason="stop")

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def plan(engine: Engine, folder: Path, **changes: Any) -> int:  # noqa: ANN401
    """Enqueue a study; returns its id."""
    return enqueue(engine, read_study(write_study(folder, **changes))).study


def rows(engine: Engine, statement: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """What a statement returns, committed."""
    with engine.begin() as connection:
        found = connection.execute(text(statement), values)
        return [dict(each) for each in found.mappings()] if found.returns_rows else []


def jobs(engine: Engine) -> list[dict[str, Any]]:
    """Every job's row."""
    return rows(engine, "SELECT * FROM job ORDER BY position, id")


def attempts(engine: Engine) -> list[dict[str, Any]]:
    """Every attempt's row."""
    return rows(engine, "SELECT * FROM attempt ORDER BY started_at, id")


def states(engine: Engine) -> Counter[str]:
    """How many jobs are in each state."""
    return Counter(job["state"] for job in jobs(engine))


def states_by_model(engine: Engine) -> dict[str, set[str]]:
    """The states that the jobs of each model are in."""
    found = rows(engine, "SELECT model, job.state FROM job JOIN condition ON condition.id = job.condition")
    return {
        model: {row["state"] for row in found if row["model"] == model} for model in {row["model"] for row in found}
    }


def everything(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    """Every row that steering could touch."""
    tables = ("study", "condition", "job", "attempt", "stop")
    return {table: rows(engine, f"SELECT * FROM {table} ORDER BY id") for table in tables}  # noqa: S608


def end(engine: Engine, job: int, ending: Ending) -> None:
    """Let a job have ended like this, its calls a second apart."""
    state, kinds, losses = ending
    last = None
    for second, kind in enumerate(kinds):
        last = uuid.uuid4()
        outcome = {None: "answered" if state == "answered" else "invalid", "refused": "refused"}.get(
            kind, "no_completion"
        )
        rows(
            engine,
            """INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, outcome, error_kind, worker)
               VALUES (:id, :job, 1, 3, now() + make_interval(secs => :second), 5, :outcome, :kind, 'w')""",
            id=last,
            job=job,
            second=second,
            outcome=outcome,
            kind=kind,
        )
    rows(
        engine,
        """UPDATE job SET state = :state, losses = :losses, claim = 3, finished_at = now(), answer = :answer,
               counted_attempt = :counted WHERE id = :job""",
        state=state,
        losses=losses,
        job=job,
        answer=0 if state == "answered" else None,
        counted=None if state == "failed" else last,
    )


@pytest.fixture
def ended(engine: Engine, tmp_path: Path) -> Engine:
    """A database whose one study, of two models on two datasets, has ended as `ENDINGS` say."""
    plan(engine, tmp_path, items=2, models=[SIM, SECOND], datasets=[CAPITALS, RIVERS])
    for (model, dataset), endings in ENDINGS.items():
        found = rows(
            engine,
            """SELECT job.id FROM job JOIN condition ON condition.id = job.condition
               WHERE model = :model AND dataset = :dataset ORDER BY position""",
            model=model,
            dataset=dataset,
        )
        for row, ending in zip(found, endings, strict=True):
            end(engine, row["id"], ending)
    return engine


def queue_all(engine: Engine) -> list[int]:
    """Mark every pending job as queued, as the dispatcher leaves them; all ids in order."""
    rows(
        engine,
        "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s' WHERE state = 'pending'",
    )
    return [job["id"] for job in jobs(engine)]


def offered(engine: Engine, queue: str = "simulated.sim") -> int:
    """How many jobs of a queue the dispatcher would queue now; nothing is changed."""
    with engine.connect() as connection:
        return sum(len(due_jobs(connection, queue, study.id, limit=100)) for study in claimants(connection, queue))


def stop(engine: Engine, study: int, queue: str) -> None:
    """Let a fault have stopped a queue."""
    rows(
        engine,
        "INSERT INTO stop (study, queue, reason, since) VALUES (:study, :queue, 'wrong key', now())",
        study=study,
        queue=queue,
    )


def evaluator_of(engine: Engine, provider: Letters) -> Evaluator:
    """A worker's evaluator whose every model is served by `provider`."""
    return evaluator_on(engine, provider, worker="w1")


SELECTIONS: dict[str, tuple[Selection, list[tuple[str, str, str, int]]]] = {
    "failed": (
        Selection(outcomes=("failed",)),
        [
            ("second", "capitals", "failed", 1),
            ("second", "rivers", "failed", 1),
            ("sim", "capitals", "failed", 1),
            ("sim", "rivers", "failed", 1),
        ],
    ),
    "invalid": (
        Selection(outcomes=("invalid",)),
        [
            ("second", "capitals", "invalid", 1),
            ("second", "rivers", "invalid", 2),
            ("sim", "capitals", "invalid", 1),
            ("sim", "rivers", "invalid", 1),
        ],
    ),
    "two outcomes of one cell": (
        Selection(outcomes=("refused", "invalid"), models=("sim",), datasets=("rivers",)),
        [("sim", "rivers", "invalid", 1), ("sim", "rivers", "refused", 1)],
    ),
    "one model": (
        Selection(outcomes=("refused", "failed"), models=("second",)),
        [("second", "capitals", "failed", 1), ("second", "rivers", "failed", 1)],
    ),
    "both models named": (
        Selection(outcomes=("refused",), models=("second", "sim")),
        [("sim", "capitals", "refused", 1), ("sim", "rivers", "refused", 1)],
    ),
    "one dataset": (
        Selection(outcomes=("invalid",), datasets=("capitals",)),
        [("second", "capitals", "invalid", 1), ("sim", "capitals", "invalid", 1)],
    ),
    "the kind of the last call": (
        Selection(outcomes=("failed",), kinds=("transient",)),
        [("sim", "capitals", "failed", 1)],
    ),
    "another kind": (Selection(outcomes=("failed",), kinds=("rejected",)), [("sim", "rivers", "failed", 1)]),
    "lost too often, with a call kept and without": (
        Selection(outcomes=("failed",), kinds=("poison",)),
        [("second", "capitals", "failed", 1), ("second", "rivers", "failed", 1)],
    ),
    "two kinds": (
        Selection(outcomes=("failed",), kinds=("rejected", "poison"), datasets=("rivers",)),
        [("second", "rivers", "failed", 1), ("sim", "rivers", "failed", 1)],
    ),
    "a kind across outcomes": (
        Selection(outcomes=("failed", "refused"), kinds=("refused",)),
        [("sim", "capitals", "refused", 1), ("sim", "rivers", "refused", 1)],
    ),
    "an unreadable completion has no kind": (Selection(outcomes=("invalid",), kinds=("transient",)), []),
    "nothing": (Selection(outcomes=("refused",), models=("second",)), []),
}


@pytest.mark.parametrize(("selection", "expected"), SELECTIONS.values(), ids=SELECTIONS)
def test_exactly_what_was_chosen_is_asked_again_and_a_dry_run_only_counts_it(
    ended: Engine, selection: Selection, expected: list[tuple[str, str, str, int]]
) -> None:
    before = everything(ended)

    counted = retry(ended, "trial", selection, dry_run=True)
    after_dry_run = everything(ended)
    chosen = retry(ended, "trial", selection, dry_run=False)

    assert after_dry_run == before
    assert counted == chosen
    assert [(part.model, part.dataset, part.outcome, part.jobs) for part in chosen] == expected
    after = {job["id"]: job for job in jobs(ended)}
    reopened = [job for job in before["job"] if after[job["id"]]["state"] == "pending"]
    untouched = [job for job in before["job"] if after[job["id"]]["state"] != "pending"]
    assert untouched == [after[job["id"]] for job in untouched]
    names = {row["id"]: (row["model"], row["dataset"]) for row in before["condition"]}
    assert Counter((*names[job["condition"]], job["state"]) for job in reopened) == {
        (model, dataset, outcome): count for model, dataset, outcome, count in expected
    }


def test_a_job_that_is_asked_again_begins_a_new_round_and_keeps_its_attempts(ended: Engine) -> None:
    kept = attempts(ended)
    rows(ended, "UPDATE job SET not_before = now() + interval '1 hour' WHERE state = 'failed'")

    retry(ended, "trial", Selection(outcomes=("invalid", "refused", "failed")), dry_run=False)

    reopened = [job for job in jobs(ended) if job["state"] == "pending"]
    assert len(reopened) == 11
    cleared = ("round", "losses", "not_before", "finished_at", "answer", "counted_attempt", "lease_until", "calling")
    assert {tuple(job[name] for name in cleared) for job in reopened} == {
        (2, 0, None, None, None, None, None, False),
    }
    assert {job["claim"] for job in reopened} == {3}
    assert attempts(ended) == kept


def test_every_retry_is_a_round_of_its_own(ended: Engine) -> None:
    selection = Selection(outcomes=("failed",), models=("sim",), datasets=("rivers",))
    retry(ended, "trial", selection, dry_run=False)
    rows(ended, "UPDATE job SET state = 'failed', finished_at = now() WHERE state = 'pending'")

    retry(ended, "trial", selection, dry_run=False)

    assert sorted(job["round"] for job in jobs(ended)) == [1] * 15 + [3]


def test_what_was_lost_too_often_can_be_lost_as_often_again(ended: Engine) -> None:
    retry(ended, "trial", Selection(outcomes=("failed",), kinds=("poison",)), dry_run=False)
    rows(
        ended,
        """UPDATE job SET state = 'running', calling = true, lease_until = now() - interval '1 second'
           WHERE state = 'pending'""",
    )

    with ended.begin() as connection:
        recover(connection)

    again = [job for job in jobs(ended) if job["round"] == 2]
    assert [(job["state"], job["losses"]) for job in again] == [("pending", 1)] * 2


def test_the_kind_that_status_names_is_the_kind_that_retry_takes(ended: Engine) -> None:
    named = {fault.kind: fault.jobs for fault in read_progress(ended, "trial").faults}

    taken = {
        kind: sum(
            part.jobs for part in retry(ended, "trial", Selection(outcomes=("failed",), kinds=(kind,)), dry_run=True)
        )
        for kind in ("transient", "rejected", "poison")
    }

    assert named == taken


def test_what_is_not_finished_or_answered_stays_as_it_is(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    for position, state in enumerate(EVERY_STATE):
        rows(engine, "UPDATE job SET state = :state WHERE position = :place", state=state, place=position)
    before = jobs(engine)

    retry(engine, "trial", Selection(outcomes=("invalid", "refused", "failed")), dry_run=False)

    after = jobs(engine)
    assert after[:4] == before[:4]
    assert [(job["state"], job["round"]) for job in after[4:]] == [("pending", 2)] * 4


def test_what_is_no_longer_planned_is_not_asked_again(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    rows(engine, "UPDATE job SET state = 'failed', planned = position < 3")

    chosen = retry(engine, "trial", Selection(outcomes=("failed",)), dry_run=False)

    assert [part.jobs for part in chosen] == [3]
    assert [job["state"] for job in jobs(engine)] == ["pending"] * 3 + ["failed"] * 5


def test_another_study_is_not_asked_again(engine: Engine, tmp_path: Path) -> None:
    other = plan(engine, tmp_path / "other", study="other")
    plan(engine, tmp_path / "trial")
    rows(engine, "UPDATE job SET state = 'failed'")

    retry(engine, "trial", Selection(outcomes=("failed",)), dry_run=False)

    assert {job["state"] for job in jobs(engine) if job["study"] == other} == {"failed"}
    assert states(engine) == {"failed": 8, "pending": 8}


def test_a_retry_ends_in_one_result_a_job_read_from_all_its_attempts(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    evaluator_of(engine, Letters("who knows")).evaluate(queue_all(engine))
    first = attempts(engine)
    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)

    evaluator_of(engine, Letters("A")).evaluate(queue_all(engine))

    assert states(engine) == {"answered": 8}
    assert attempts(engine)[:8] == first
    assert [attempt["round"] for attempt in attempts(engine)] == [1] * 8 + [2] * 8
    assert {job["counted_attempt"] for job in jobs(engine)} == {attempt["id"] for attempt in attempts(engine)[8:]}


def test_an_unreadable_answer_is_drawn_afresh_when_it_is_asked_again(engine: Engine, tmp_path: Path) -> None:
    # With the seed that it had, a server that honours seeds would say the same unreadable words once more.
    plan(engine, tmp_path, items=1, retry={"invalid": 1})
    unreadable = Letters("who knows")
    evaluator_of(engine, unreadable).evaluate(queue_all(engine))
    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)

    evaluator_of(engine, unreadable).evaluate(queue_all(engine))

    seeds_by_prompt = {
        prompt: [request.seed for request in unreadable.requests if request.prompt == prompt]
        for prompt in {request.prompt for request in unreadable.requests}
    }
    assert [len(seeds) for seeds in seeds_by_prompt.values()] == [4, 4]
    assert [len(set(seeds)) for seeds in seeds_by_prompt.values()] == [4, 4]


def test_running_a_study_again_does_not_repeat_a_retry(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    evaluator_of(engine, Letters("who knows")).evaluate(queue_all(engine))
    retry(engine, "trial", Selection(outcomes=("invalid",)), dry_run=False)
    evaluator_of(engine, Letters("who knows")).evaluate(queue_all(engine))

    plan(engine, tmp_path)

    assert states(engine) == {"invalid": 8}
    assert {job["round"] for job in jobs(engine)} == {2}


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        pytest.param(
            Selection(outcomes=("failed",), models=("sim", "third")),
            "the study has no model 'third'; it has: second, sim",
            id="model",
        ),
        pytest.param(
            Selection(outcomes=("failed",), datasets=("lakes",)),
            "the study has no dataset 'lakes'; it has: capitals, rivers",
            id="dataset",
        ),
    ],
)
def test_an_unknown_name_is_refused_and_nothing_is_asked_again(ended: Engine, selection: Selection, said: str) -> None:
    before = jobs(ended)

    with pytest.raises(UsageError) as refused:
        retry(ended, "trial", selection, dry_run=False)

    assert str(refused.value) == said
    assert jobs(ended) == before


@pytest.mark.parametrize(
    ("outcome", "kinds", "said"),
    [
        pytest.param("answered", None, "no outcome 'answered'; there are: invalid, refused, failed", id="answered"),
        pytest.param("pending", None, "no outcome 'pending'", id="a state that is no outcome"),
        pytest.param("invalid,,failed", None, "no outcome ''", id="empty"),
        pytest.param("failed", ["timeout"], "no error kind 'timeout'; there are: transient, ", id="error kind"),
    ],
)
def test_only_outcomes_that_may_be_asked_again_are_taken(outcome: str, kinds: list[str] | None, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        commands.retry("trial", outcome=outcome, error_kind=kinds)

    assert said in str(refused.value)


UNKNOWN: dict[str, Callable[[Engine, str], object]] = {
    "retry": lambda engine, name: retry(engine, name, Selection(outcomes=("failed",)), dry_run=False),
    "pause": lambda engine, name: steer(engine, name, "paused"),
    "resume": lambda engine, name: steer(engine, name, "active"),
    "cancel": lambda engine, name: steer(engine, name, "cancelled"),
    "pause a model": lambda engine, name: steer(engine, name, "paused", model="sim"),
}


@pytest.mark.parametrize("act", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_study_is_refused_with_the_known_ones(
    engine: Engine, tmp_path: Path, act: Callable[[Engine, str], object]
) -> None:
    plan(engine, tmp_path / "trial", study="trial")
    plan(engine, tmp_path / "other", study="other")

    with pytest.raises(UnknownStudyError) as refused:
        act(engine, "trail")

    assert str(refused.value) == "no study 'trail' in the database; known: other, trial"


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_pausing_or_cancelling_puts_back_what_is_queued_and_nothing_more_is_offered(
    engine: Engine,
    tmp_path: Path,
    state: Activity,
) -> None:
    plan(engine, tmp_path)
    queue_all(engine)

    steered = steer(engine, "trial", state)

    assert steered == Steered(state=state, study_state=state, still_held=())
    assert {(job["state"], job["lease_until"]) for job in jobs(engine)} == {("pending", None)}
    assert offered(engine) == 0


def test_a_paused_study_goes_on_where_it_was_when_it_is_resumed(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    rows(engine, "UPDATE job SET state = 'answered' WHERE position < 3")
    before = jobs(engine)
    queue_all(engine)
    steer(engine, "trial", "paused")

    steered = steer(engine, "trial", "active")

    assert steered == Steered(state="active", study_state="active", still_held=())
    assert jobs(engine) == before
    assert offered(engine) == 5


def test_another_study_goes_on_while_one_is_paused(engine: Engine, tmp_path: Path) -> None:
    other = plan(engine, tmp_path / "other", study="other")
    plan(engine, tmp_path / "trial")
    queue_all(engine)

    steer(engine, "trial", "paused")

    assert {job["state"] for job in jobs(engine) if job["study"] == other} == {"queued"}
    assert states(engine) == {"queued": 8, "pending": 8}


def test_pausing_one_model_leaves_the_others(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND], datasets=[CAPITALS, RIVERS])
    queue_all(engine)

    steered = steer(engine, "trial", "paused", model="sim")

    assert steered == Steered(state="paused", study_state="active", still_held=("sim",))
    assert states_by_model(engine) == {"sim": {"pending"}, "second": {"queued"}}
    assert offered(engine) == 0
    assert read_progress(engine, "trial").state == "active"


def test_a_message_that_was_under_way_when_its_model_was_paused_asks_nothing(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND])
    ids = queue_all(engine)
    provider = Letters("A")
    steer(engine, "trial", "paused", model="sim")
    # A dispatcher that looked before the pause and writes after it.
    queue_all(engine)

    evaluator_of(engine, provider).evaluate(ids)

    assert states_by_model(engine) == {"sim": {"pending"}, "second": {"answered"}}
    assert len(provider.requests) == 8


def test_what_runs_when_its_study_is_paused_ends_and_is_stored(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, items=2)
    ids = queue_all(engine)
    provider = Letters("A", meanwhile=lambda: steer(engine, "trial", "paused"))

    evaluator_of(engine, provider).evaluate(ids)

    assert len(provider.requests) == 1
    assert [attempt["outcome"] for attempt in attempts(engine)] == ["answered"]
    assert [job["state"] for job in jobs(engine)] == ["answered", "pending", "pending", "pending"]
    assert {(job["lease_until"], job["calling"]) for job in jobs(engine)} == {(None, False)}


@pytest.mark.parametrize("model", [None, "sim"], ids=["the study", "its model"])
def test_a_claimed_job_that_is_paused_before_its_call_is_put_back_and_not_asked(
    engine: Engine, tmp_path: Path, model: str | None
) -> None:
    plan(engine, tmp_path, items=1)
    store = JobStore(engine, worker="w1")
    claimed = store.claim(queue_all(engine))
    steer(engine, "trial", "paused", model=model)

    begun = [store.begin_call(job) for job in claimed]
    store.give_back(claimed)

    assert begun == [False, False]
    assert {(job["state"], job["calling"], job["losses"]) for job in jobs(engine)} == {("pending", False, 0)}
    assert attempts(engine) == []


def test_a_cancelled_study_takes_no_jobs_until_it_is_resumed(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    steer(engine, "trial", "cancelled")

    with pytest.raises(InputError, match="the study trial was cancelled; `bothways resume trial` takes it up again"):
        plan(engine, tmp_path)
    steer(engine, "trial", "active")
    plan(engine, tmp_path)

    assert offered(engine) == 8


@pytest.mark.parametrize(
    ("state", "model"),
    [
        pytest.param("paused", None, id="paused"),
        pytest.param("paused", "sim", id="one model paused"),
        pytest.param("active", "sim", id="one model resumed"),
    ],
)
def test_a_cancelled_study_can_only_be_resumed_whole(
    engine: Engine,
    tmp_path: Path,
    state: Activity,
    model: str | None,
) -> None:
    plan(engine, tmp_path)
    steer(engine, "trial", "cancelled")

    with pytest.raises(UsageError, match="the study trial is cancelled; `bothways resume trial` takes it up again"):
        steer(engine, "trial", state, model=model)

    assert read_progress(engine, "trial").state == "cancelled"
    assert rows(engine, "SELECT DISTINCT state FROM condition") == [{"state": "active"}]


@pytest.mark.parametrize("held", ["paused", "cancelled"])
def test_a_model_that_was_held_by_itself_stays_so_when_its_study_is_resumed(
    engine: Engine,
    tmp_path: Path,
    held: Activity,
) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND])
    steer(engine, "trial", held, model="second")
    steer(engine, "trial", "paused")

    steered = steer(engine, "trial", "active")

    assert steered == Steered(state="active", study_state="active", still_held=("second",))
    assert (offered(engine, "simulated.sim"), offered(engine, "simulated.second")) == (8, 0)


def test_a_model_is_resumed_by_its_name(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path, models=[SIM, SECOND])
    for model in ("sim", "second"):
        steer(engine, "trial", "paused", model=model)

    steered = steer(engine, "trial", "active", model="second")

    assert steered == Steered(state="active", study_state="active", still_held=("sim",))
    assert (offered(engine, "simulated.sim"), offered(engine, "simulated.second")) == (0, 8)


def test_a_paused_model_stays_paused_when_its_study_gets_another_dataset(engine: Engine, tmp_path: Path) -> None:
    plan(engine, tmp_path)
    steer(engine, "trial", "paused", model="sim")

    plan(engine, tmp_path, datasets=[CAPITALS, RIVERS])

    assert offered(engine) == 0


@pytest.mark.parametrize("state", ["paused", "active", "cancelled"])
def test_an_unknown_model_is_refused_and_nothing_is_changed(
    engine: Engine,
    tmp_path: Path,
    state: Activity,
) -> None:
    study = plan(engine, tmp_path, models=[SIM, SECOND])
    stop(engine, study, "simulated.sim")
    queue_all(engine)

    with pytest.raises(UsageError) as refused:
        steer(engine, "trial", state, model="third")

    assert str(refused.value) == "the study has no model 'third'; it has: second, sim"
    assert states(engine) == {"queued": 16}
    assert rows(engine, "SELECT DISTINCT state FROM condition") == [{"state": "active"}]
    assert len(rows(engine, "SELECT * FROM stop")) == 1


@pytest.mark.parametrize(
    ("state", "model", "left"),
    [
        pytest.param("active", None, [("other", "simulated.sim")], id="resuming the study"),
        pytest.param(
            "active", "sim", [("other", "simulated.sim"), ("trial", "simulated.second")], id="resuming one model"
        ),
        pytest.param(
            "paused",
            None,
            [("other", "simulated.sim"), ("trial", "simulated.second"), ("trial", "simulated.sim")],
            id="pausing",
        ),
    ],
)
def test_resuming_clears_the_stops_in_its_own_scope_only(
    engine: Engine,
    tmp_path: Path,
    state: Activity,
    model: str | None,
    left: list[tuple[str, str]],
) -> None:
    trial = plan(engine, tmp_path / "trial", models=[SIM, SECOND])
    other = plan(engine, tmp_path / "other", study="other")
    for study, queue in ((trial, "simulated.sim"), (trial, "simulated.second"), (other, "simulated.sim")):
        stop(engine, study, queue)

    steer(engine, "trial", state, model=model)

    found = rows(
        engine,
        "SELECT study.name, stop.queue FROM stop JOIN study ON study.id = stop.study ORDER BY name, queue",
    )
    assert [(row["name"], row["queue"]) for row in found] == left
