"""Recorded answers on real Postgres: they become what a worker would have stored, whole or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from analysis.load import load_results
from contract.database import open_engine
from contract.errors import InputError
from contract.recorded import RecordedModel
from ops.cli import imports
from ops.cli.follow import stuck_reasons
from ops.cli.main import app
from ops.inspection import read_item
from ops.progress import read_progress
from ops.readings import readings_in_use
from ops.reparse import reparse
from producer.recorded_import import Imported, import_answers
from producer.steering import Selection, retry
from producer.study_file import read_study
from tests.builders import write_study
from tests.integration.test_formats import CLOSED, LIKERT, OPEN, answering, planned, three_choices
from tests.integration.test_recipes import ask_all
from tests.jobs import rows, states
from worker.providers.base import Request

PAPER = {"name": "paper", "provider": "recorded", "model": "gpt"}
CODERS = {"name": "coders", "provider": "recorded", "model": "two-coders"}
GENDER = {"name": "gender", "loader": "items", "path": "items.jsonl"}
ORDERS = ["123", "321"]
TWO = CLOSED | {"orders": ORDERS}
RESULTS = """
    SELECT item.source_id, condition.format, condition.stage, condition.variant, job.part, job.repeat, job.state,
           job.answer, job.text, attempt.outcome, attempt.completion, attempt.completion_length, attempt.claim,
           attempt.round, attempt.answer AS read, attempt.text AS told, attempt.tier, attempt.reason, attempt.reading,
           attempt.reading_version
    FROM job JOIN condition ON condition.id = job.condition JOIN item ON item.id = job.item
    JOIN study ON study.id = job.study LEFT JOIN attempt ON attempt.id = job.counted_attempt
    WHERE study.name = :study AND condition.stage = :stage ORDER BY 1, 2, 3, 4, 5, 6
"""


@pytest.fixture(scope="module")
def untouched(module_database_url: str) -> Iterator[Engine]:
    """A database that stays empty, whatever is refused."""
    engine = open_engine(module_database_url)
    yield engine
    engine.dispose()


def bring(
    engine: Engine,
    folder: Path,
    lines: list[dict[str, Any]],
    *,
    as_given: bool = False,
    dry_run: bool = False,
    **changes: Any,  # noqa: ANN401
) -> Imported:
    """Import these rows into a study of two questions."""
    whole = {"study": "published", "datasets": [GENDER], "models": [PAPER], "formats": [TWO]} | changes
    loaded = read_study(write_study(folder, items=three_choices(), **whole))
    model = loaded.study.models[0]
    assert isinstance(model, RecordedModel)
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return import_answers(engine, loaded, model, file, as_given=as_given, dry_run=dry_run)


def closed(item: str, variant: str, **said: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row of a closed answer."""
    return {"item": item, "format": "closed", "variant": variant, **said}


def all_closed(**said: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """A row for each job of a study of two questions in two orders."""
    return [closed(item, order, **said) for item in ("q0", "q1") for order in ORDERS]


def results(engine: Engine, study: str = "published", stage: str = "answer") -> list[dict[str, Any]]:
    """What the jobs of a stage came to."""
    return [dict(row) for row in rows(engine, RESULTS, study=study, stage=stage)]


def everything(engine: Engine) -> list[dict[str, Any]]:
    """All that a second import could change, as JSON: Python has no instant that never comes."""
    jobs = rows(engine, "SELECT to_jsonb(job) AS held FROM job ORDER BY id")
    attempts = rows(engine, "SELECT to_jsonb(attempt) AS held FROM attempt ORDER BY id")
    return [
        row["held"] for row in (*jobs, *attempts, *rows(engine, "SELECT to_jsonb(deployment) AS held FROM deployment"))
    ]


def saying(request: Request) -> str:
    """A model whose answers can be read, but for some."""
    return "I would rather not" if "number 1" in request.prompt and request.expects == "letter" else answering(request)


def test_what_is_imported_equals_what_a_worker_stored_for_the_same_completions(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path / "asked", CLOSED, LIKERT, OPEN)
    ask_all(engine, saying)
    asked, judged = results(engine, "trial"), results(engine, "trial", "annotate")
    choices = {(row["source_id"], row["variant"]): row["answer"] + 1 for row in judged}
    lines = [
        {"item": row["source_id"], **{name: row[name] for name in ("format", "variant", "part", "completion")}}
        | ({"answer": choices[row["source_id"], row["variant"]]} if row["format"] == "open" else {})
        for row in asked
    ]

    done = bring(engine, tmp_path / "imported", lines, formats=[CLOSED, LIKERT, OPEN], annotator=CODERS)

    assert results(engine) == asked
    told = ("source_id", "variant", "state", "answer", "outcome")
    annotated = results(engine, stage="annotate")
    assert [[row[name] for name in told] for row in annotated] == [[row[name] for name in told] for row in judged]
    assert {row["reading"] for row in annotated} == {"recorded"}
    invalid = sum(row["state"] == "invalid" for row in asked)
    assert invalid == 6
    assert (done.rows, done.invalid, done.waiting, done.finished) == (32, invalid, 0, 36)
    assert done.answered == 36 - invalid


def test_what_is_imported_is_measured_like_what_was_asked(database_url: str, engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path / "asked", TWO)
    ask_all(engine, saying)
    lines = [closed(row["source_id"], row["variant"], completion=row["completion"]) for row in results(engine, "trial")]

    bring(engine, tmp_path / "imported", lines)

    asked, imported = (load_results(database_url, study).drop("model") for study in ("trial", "published"))
    assert imported.height == 4
    assert imported.equals(asked)


def test_importing_twice_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    lines = [{"item": "q0", "variant": "reasoning", "completion": "The man.", "answer": "The man"}]
    bring(engine, tmp_path, lines, formats=[OPEN], annotator=CODERS)
    assert [row["model"] for row in rows(engine, "SELECT model FROM deployment ORDER BY id")] == ["gpt", "two-coders"]
    before = everything(engine)

    again = bring(engine, tmp_path, lines, formats=[OPEN], annotator=CODERS)

    assert everything(engine) == before
    assert (again.finished, again.waiting) == (0, 6)


@pytest.mark.parametrize(
    ("bad", "field", "problem"),
    [
        (closed("q9", "123", answer=1), "item", "is the id of no item"),
        (closed("q1", "213", answer=1), "variant", "it has 123, 321"),
        (closed("q1", "321", answer=1) | {"format": "open"}, "format", "it has closed"),
        (closed("q1", "321", answer=1, part=1), "part", "1 is none; only ratings have parts"),
        (closed("q1", "321", answer=1, repeat=2), "repeat", "the study has 1"),
        (closed("q1", "321", answer="The men"), "answer", "is no choice of the item"),
        (closed("q1", "321"), "answer", "is missing, and so is the completion"),
        (closed("q0", "123", answer=1, repeat=1), "item", "row 1 gives the answer to this already"),
        (closed("q0", "123", answer=1), "item", "this is repeat 2"),
        ({"item": "q1", "answer": 1}, "variant", "the study asks this item in several: 123, 321"),
    ],
)
def test_a_bad_last_row_is_named_and_nothing_is_imported(
    untouched: Engine, tmp_path: Path, bad: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        bring(untouched, tmp_path, [*all_closed(answer=1)[:3], bad])

    assert f"answers.jsonl, row 4: {field}: " in str(refused.value)
    assert problem in str(refused.value)
    for table in ("study", "item", "condition", "job", "attempt", "deployment"):
        assert rows(untouched, f"SELECT * FROM {table}") == []  # noqa: S608


def test_rows_without_a_repeat_are_numbered_as_they_come(engine: Engine, tmp_path: Path) -> None:
    done = bring(engine, tmp_path, [*all_closed(answer=1), *all_closed(answer=2)[:1]], repeats=2)

    assert (done.finished, done.waiting) == (5, 3)
    found = [(row["repeat"], row["answer"]) for row in results(engine) if row["source_id"] == "q0"]
    assert found == [(1, 0), (2, 1), (1, 0), (2, None)]


def test_a_dry_run_says_the_same_and_writes_nothing(engine: Engine, tmp_path: Path) -> None:
    tried = bring(engine, tmp_path, all_closed(answer="A"), dry_run=True)

    assert rows(engine, "SELECT * FROM study") == []
    assert bring(engine, tmp_path, all_closed(answer="A")) == tried


def test_rows_of_no_model_of_ours_are_refused(untouched: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no row is of the model 'gpt'; 4 are of other models"):
        bring(untouched, tmp_path, all_closed(answer=1, model="llama"))


@pytest.mark.parametrize("as_given", [False, True])
def test_where_a_completion_says_otherwise_what_is_read_counts_unless_told(
    engine: Engine, tmp_path: Path, *, as_given: bool
) -> None:
    done = bring(engine, tmp_path, [closed("q0", "321", completion="A", answer=1)], as_given=as_given)

    ((told,), answered) = done.disagreements, [row for row in results(engine) if row["state"] == "answered"]
    assert (told.row, told.item, told.given, told.read) == (1, "q0", 1, 3)
    reading = ("recorded", 0) if as_given else ("strict", 2)
    assert [(row["reading"], row["answer"], row["completion"]) for row in answered] == [(*reading, "A")]


def test_another_answer_to_the_same_job_is_refused(engine: Engine, tmp_path: Path) -> None:
    bring(engine, tmp_path, all_closed(answer=1))

    with pytest.raises(InputError, match=r"row 1: item: the job has another answer from an earlier import"):
        bring(engine, tmp_path, all_closed(answer=2))


def test_answers_that_are_to_be_annotated_anew_are_left_to_the_annotator(engine: Engine, tmp_path: Path) -> None:
    judge = {"name": "judge", "provider": "simulated", "model": "judge"}
    lines = [{"item": "q0", "variant": "reasoning", "completion": "The man.", "answer": 2}]

    done = bring(engine, tmp_path, lines, formats=[OPEN], annotator=judge)
    ask_all_of = "SELECT count(*) AS due FROM job WHERE queue = 'simulated.judge' AND not_before IS NULL"

    assert (done.for_annotator, done.finished) == (1, 1)
    assert rows(engine, ask_all_of) == [{"due": 1}]


def test_an_open_answer_needs_its_text(untouched: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 1: completion: is missing; an open answer is its text"):
        bring(
            untouched, tmp_path, [{"item": "q0", "variant": "reasoning", "answer": 2}], formats=[OPEN], annotator=CODERS
        )


def test_show_tells_where_an_answer_comes_from(engine: Engine, tmp_path: Path) -> None:
    bring(engine, tmp_path, all_closed(answer=1))

    (attempt,) = read_item(engine, "published", "q0")[0].attempts
    assert (attempt.answered_by, attempt.endpoint, attempt.worker) == ("gpt", "answers.jsonl", "import")
    assert attempt.digest is not None
    assert len(attempt.digest) == 64
    assert (attempt.prompt, attempt.completion, attempt.reading) == (None, None, "recorded")
    assert rows(engine, "SELECT provider FROM deployment") == [{"provider": "recorded"}]


def test_reparse_reads_imported_completions_and_leaves_recorded_answers_alone(engine: Engine, tmp_path: Path) -> None:
    said = [closed("q0", "123", completion="B, and not A"), closed("q0", "321", completion="B", answer=1)]
    bring(engine, tmp_path, [*said, closed("q1", "123", answer="C")], as_given=True)
    before = {(row["source_id"], row["variant"]): row for row in results(engine)}

    done = reparse(engine, "published", reading="first-letter")

    after = {(row["source_id"], row["variant"]): row for row in results(engine)}
    assert sum(each.read for each in done.conditions) == 1
    assert after["q0", "123"]["reading"] == "first-letter"
    assert all(after[key] == before[key] for key in after if key != ("q0", "123"))
    assert readings_in_use(engine, "published").otherwise == 0


def test_what_is_not_imported_yet_waits_for_that_and_nobody_else(engine: Engine, tmp_path: Path) -> None:
    bring(engine, tmp_path, all_closed(answer=1)[:3])

    assert states(engine) == {"answered": 3, "pending": 1}
    assert stuck_reasons(read_progress(engine, "published")) == ["recorded.paper waits for bothways import"]


def test_a_job_that_was_opened_again_is_finished_by_the_same_file(engine: Engine, tmp_path: Path) -> None:
    bring(engine, tmp_path, all_closed(completion="?"))
    retry(engine, "published", Selection(outcomes=("invalid",)), dry_run=False)
    assert states(engine) == {"pending": 4}

    bring(engine, tmp_path, all_closed(completion="A"))

    assert states(engine) == {"answered": 4}


def test_the_command_says_what_came_and_what_is_left(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "connect", lambda: SimpleNamespace(engine=engine))
    study = write_study(tmp_path, items=three_choices(), datasets=[GENDER], models=[PAPER], formats=[TWO])
    file = tmp_path / "answers.csv"
    file.write_text("item,variant,completion,answer\nq0,123,A,1\nq0,321,A,1\nq1,123,,\n", encoding="utf-8")

    done = CliRunner().invoke(app, ["import", str(study), str(file), "--json"])

    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    counts = {"rows": 3, "answered": 2, "invalid": 1, "finished": 3, "waiting": 1, "of_others": 0}
    assert {name: told[name] for name in counts} == counts
    assert told["disagreements"] == [{"row": 2, "item": "q0", "given": 1, "read": 3}]
    assert states(engine) == {"answered": 2, "invalid": 1, "pending": 1}


@pytest.mark.parametrize(
    ("models", "words", "problem"),
    [
        ([PAPER, PAPER | {"name": "other"}], [], "name one of the recorded models of trial with --model: paper, other"),
        ([PAPER], ["--model", "papper"], "name one of the recorded models of trial with --model: paper"),
        ([{"name": "sim", "provider": "simulated"}], [], "study trial has no model of the provider recorded"),
    ],
)
def test_the_command_wants_one_recorded_model(
    tmp_path: Path, models: list[dict[str, Any]], words: list[str], problem: str
) -> None:
    study = write_study(tmp_path, items=three_choices(), datasets=[GENDER], models=models, formats=[TWO])

    done = CliRunner().invoke(app, ["import", str(study), str(tmp_path / "answers.csv"), *words])

    assert problem in str(done.exception)
