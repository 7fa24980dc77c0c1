"""A recipe on real Postgres and workers: texts, their checks, the step that sees another's text, the files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from contract.errors import InputError
from contract.study import Output
from ops.made_files import write_made
from ops.made_texts import read_made, rows_of
from ops.reparse import reparse
from producer.datasets.statements import with_statements
from producer.enqueue import Enqueued, enqueue
from producer.steering import Selection, retry
from producer.study_file import read_study
from producer.window import settle_children
from tests.builders import write_recipe, write_study
from tests.integration.test_evaluate import Answering
from tests.jobs import change, rows
from tests.workers import evaluator_on
from worker.providers.base import RefusedError, Request

ONE = Output(file="one.jsonl", wrong_answer="first")
TWO = Output(file="two.jsonl", wrong_answer="first", second_wrong_answer="second")


def planned(engine: Engine, folder: Path, **changes: Any) -> Enqueued:  # noqa: ANN401
    """The recipe in `folder`, enqueued."""
    return enqueue(engine, read_study(write_recipe(folder, **changes)))


def ask_all(engine: Engine, answer: Callable[[Request], str]) -> Answering:
    """Ask whatever is due until nothing is."""
    provider = Answering(answer)
    while due := [
        row["id"]
        for row in rows(
            engine, "SELECT id FROM job WHERE state = 'pending' AND planned AND not_before IS NULL ORDER BY position"
        )
    ]:
        change(
            engine,
            "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s' WHERE id = ANY(:due)",
            due=due,
        )
        evaluator_on(engine, provider).evaluate(due)
    return provider


def by_item(engine: Engine, step: str) -> list[tuple[str, str | None, int]]:
    """The state, text and round of each item's job of one step."""
    found = rows(
        engine,
        """SELECT job.state, job.text, job.round FROM job JOIN condition ON condition.id = job.condition
           WHERE condition.variant = :step ORDER BY job.position""",
        step=step,
    )
    return [(row["state"], row["text"], row["round"]) for row in found]


def saying(first: str, second: str) -> Callable[[Request], str]:
    """What a model says at the first step and at the second."""
    return lambda request: second if "Another?" in request.prompt else first


def test_the_second_step_waits_for_the_first_and_is_shown_its_text(engine: Engine, tmp_path: Path) -> None:
    done = planned(engine, tmp_path)
    assert done.new == 6
    waiting = rows(engine, "SELECT count(*) AS jobs FROM job WHERE not_before = 'infinity'")
    assert waiting == [{"jobs": 3}]

    asked = ask_all(engine, saying("  a dog\n", "a cat"))

    assert {(request.expects, request.allowed) for request in asked.requests} == {("text", None)}
    seconds = [request.prompt for request in asked.requests if "Another?" in request.prompt]
    assert len(seconds) == 3
    assert all("\nWrong: a dog\n" in prompt for prompt in seconds)
    assert by_item(engine, "first") == [("answered", "a dog", 1)] * 3
    assert by_item(engine, "second") == [("answered", "a cat", 1)] * 3
    assert rows(engine, "SELECT DISTINCT text, completion FROM attempt ORDER BY text DESC") == [
        {"text": "a dog", "completion": "  a dog\n"},
        {"text": "a cat", "completion": "a cat"},
    ]


def test_a_text_that_is_right_or_said_already_is_asked_for_again_with_another_seed(
    engine: Engine, tmp_path: Path
) -> None:
    planned(engine, tmp_path)
    said = {"A wrong one?": iter(["Ada", "a dog"]), "Another?": iter(["A dog!", "a cat"])}

    def answer(request: Request) -> str:
        if "Who built" not in request.prompt:
            return "something else" if "Another?" in request.prompt else "something"
        return next(texts for end, texts in said.items() if request.prompt.endswith(end)).__next__()

    asked = ask_all(engine, answer)

    assert by_item(engine, "first")[0] == ("answered", "a dog", 1)
    assert by_item(engine, "second")[0] == ("answered", "a cat", 1)
    reasons = rows(engine, "SELECT reason FROM attempt WHERE outcome = 'invalid' ORDER BY started_at")
    assert [row["reason"] for row in reasons] == ["equals_right", "equals_earlier"]
    seeds = [request.seed for request in asked.requests if "Who built" in request.prompt]
    assert len(seeds) == 4
    assert seeds[0] != seeds[1]


def test_what_stays_bad_is_listed_and_in_no_file_that_needs_it(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)

    def answer(request: Request) -> str:
        if "Who built" in request.prompt:
            return "Ada"
        return "barley" if "grind" in request.prompt and "Another?" in request.prompt else "rain"

    ask_all(engine, answer)

    made = read_made(engine, "recipe")
    assert [(one.id, one.step, one.why, one.said) for one in made.left_out] == [
        ("m1", "first", "invalid: equals_right", "Ada"),
        ("m1", "second", "the step before it has no text", None),
        ("m2", "second", "invalid: equals_right", "barley"),
        ("m3", "second", "invalid: equals_earlier", "rain"),
    ]
    single, none = rows_of(ONE, made.items)
    assert [row["id"] for row in single] == ["m2", "m3"]
    assert none == []
    assert rows_of(TWO, made.items) == ([], [])


def test_rows_have_the_fields_of_squad_it_2(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)
    ask_all(engine, saying("a dog", "a cat"))
    made = read_made(engine, "recipe")

    (first, *_), _ = rows_of(ONE, made.items)
    (both, *_), _ = rows_of(TWO, made.items)

    shared = {"id": "m1", "context": "Ada built the mill in May. It ground barley.", "question": "Who built the mill?"}
    assert first == shared | {"correct_answer": "Ada", "wrong_answer": "a dog"}
    assert both == shared | {"wrong_answer": "a dog", "second_wrong_answer": "a cat"}


def test_two_steps_that_never_saw_each_other_and_say_the_same_make_no_row(engine: Engine, tmp_path: Path) -> None:
    steps = [{"step": name, "prompt": "first.txt", "sampling": {"seed": n}} for n, name in enumerate(("one", "other"))]
    output = {"file": "both.jsonl", "wrong_answer": "one", "second_wrong_answer": "other"}
    planned(engine, tmp_path, steps=steps, writes=[output])
    ask_all(engine, lambda request: "A dog." if "grind" in request.prompt else f"made {request.seed}")

    kept, left_out = rows_of(Output(**output), read_made(engine, "recipe").items)

    assert [row["id"] for row in kept] == ["m1", "m3"]
    assert [(one.id, one.file, one.why) for one in left_out] == [
        ("m2", "both.jsonl", "both wrong answers say the same")
    ]


def test_a_refused_text_ends_the_step_that_needs_it(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)

    def answer(request: Request) -> str:
        if "Who built" in request.prompt:
            raise RefusedError("blocked")
        return "a cat" if "Another?" in request.prompt else "a dog"

    ask_all(engine, answer)

    made = read_made(engine, "recipe")
    assert [(one.id, one.step, one.state) for one in made.left_out] == [
        ("m1", "first", "refused"),
        ("m1", "second", "waits"),
    ]
    assert by_item(engine, "second")[0][0] == "failed"


def test_another_round_of_the_first_step_brings_another_of_the_second(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)
    ask_all(engine, lambda request: "Ada" if "Who" in request.prompt else f"x {request.number} {len(request.prompt)}")
    assert by_item(engine, "first")[0][0] == "invalid"

    chosen = retry(engine, "recipe", Selection(outcomes=("invalid",)), dry_run=False)
    ask_all(engine, saying("a dog", "a cat"))

    assert sum(each.jobs for each in chosen) >= 1
    assert by_item(engine, "first")[0] == ("answered", "a dog", 2)
    assert by_item(engine, "second")[0] == ("answered", "a cat", 2)
    assert read_made(engine, "recipe").left_out == ()


def test_running_a_recipe_again_asks_for_nothing_again(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)
    ask_all(engine, saying("a dog", "a cat"))

    again = planned(engine, tmp_path)

    assert (again.new, again.known) == (0, 6)
    assert ask_all(engine, saying("a", "b")).requests == []


def test_a_step_that_is_added_later_takes_up_the_texts_that_are_there(engine: Engine, tmp_path: Path) -> None:
    first = {"step": "first", "prompt": "first.txt", "checks": ["not_right"]}
    planned(engine, tmp_path, steps=[first], writes=[{"file": "one.jsonl", "wrong_answer": "first"}])
    ask_all(engine, lambda request: "Ada" if "Who built" in request.prompt else "a dog")

    added = planned(engine, tmp_path)

    assert added.new == 3
    assert [state for state, *_ in by_item(engine, "second")] == ["failed", "pending", "pending"]
    asked = ask_all(engine, saying("a dog", "a cat"))
    assert ["\nWrong: a dog\n" in request.prompt for request in asked.requests] == [True, True]


def test_a_child_that_missed_its_parent_s_end_is_settled(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path)
    ask_all(engine, saying("a dog", "a cat"))
    change(
        engine,
        """UPDATE job SET state = 'pending', finished_at = NULL, not_before = 'infinity', round = 2,
               counted_attempt = NULL
           WHERE parent IS NOT NULL""",
    )
    assert ask_all(engine, saying("a", "b")).requests == []

    with engine.begin() as connection:
        assert settle_children(connection) == 3

    assert len(ask_all(engine, saying("a", "a bird")).requests) == 3


def test_texts_are_held_against_new_checks_without_asking(engine: Engine, tmp_path: Path) -> None:
    first, second = (
        {"step": "first", "prompt": "first.txt"},
        {"step": "second", "prompt": "second.txt", "after": "first"},
    )
    planned(engine, tmp_path, steps=[first, second])
    ask_all(engine, saying("Answer: barley", "answer, barley!"))
    assert {state for state, *_ in by_item(engine, "first")} == {"answered"}

    stricter = [first, second | {"checks": ["not_earlier"]}]
    planned(engine, tmp_path, steps=stricter)
    done = reparse(engine, "recipe")

    assert done.results == 3
    assert by_item(engine, "second") == [("invalid", None, 1)] * 3
    (first_step, second_step) = done.conditions
    assert first_step.moves == {}
    assert second_step.moves == {("a text", "invalid (equals_earlier)"): 3}
    assert rows(engine, "SELECT DISTINCT reading FROM attempt") == [{"reading": "text"}]


@pytest.mark.parametrize("said", ["\x00 a dog \ud800", "=HYPERLINK()", "x" * 100_000, "日本\u202e"])
def test_hostile_texts_are_kept_and_shown_to_the_next_step(engine: Engine, tmp_path: Path, said: str) -> None:
    planned(engine, tmp_path)

    asked = ask_all(engine, saying(said, "a cat"))

    assert {state for state, *_ in by_item(engine, "second")} == {"answered"}
    assert len(asked.requests) == 6


FIRST = {"step": "first", "prompt": "first.txt"}
SECOND = {"step": "second", "prompt": "second.txt", "after": "first"}


def test_another_step_of_the_same_parents_leaves_the_texts_of_the_first_as_they_are(
    engine: Engine, tmp_path: Path
) -> None:
    planned(engine, tmp_path, steps=[FIRST, SECOND])
    ask_all(engine, saying("a dog", "a cat"))

    planned(engine, tmp_path, steps=[FIRST, SECOND, SECOND | {"step": "third", "sampling": {"seed": 9}}])

    assert by_item(engine, "second") == [("answered", "a cat", 1)] * 3
    assert len(ask_all(engine, saying("a", "a bird")).requests) == 3
    assert by_item(engine, "third") == [("answered", "a bird", 1)] * 3


def test_a_prompt_that_is_changed_and_changed_back_costs_its_own_texts_and_no_more(
    engine: Engine, tmp_path: Path
) -> None:
    planned(engine, tmp_path)
    ask_all(engine, saying("a dog", "a cat"))
    file = tmp_path / "second.txt"
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace("Wrong:", "Not:"), encoding="utf-8")
    planned(engine, tmp_path, keep_prompts=True)
    assert len(ask_all(engine, saying("a", "a bird")).requests) == 3

    file.write_text(before, encoding="utf-8")
    back = planned(engine, tmp_path, keep_prompts=True)

    assert (back.revived, back.unplanned) == (3, 3)
    assert ask_all(engine, saying("a", "b")).requests == []
    made = read_made(engine, "recipe").items
    assert [item.texts["second", 0] for item in made] == ["a cat"] * 3


def test_a_second_text_is_always_one_that_was_shown_the_first_one_of_now(engine: Engine, tmp_path: Path) -> None:
    planned(engine, tmp_path, steps=[FIRST, SECOND])
    ask_all(engine, saying("Answer: a dog", "an old cat"))
    planned(engine, tmp_path, steps=[FIRST | {"checks": ["bare"]}, SECOND])
    assert reparse(engine, "recipe").results == 3
    retry(engine, "recipe", Selection(outcomes=("invalid",)), dry_run=False)

    ask_all(engine, saying("a bird", "a new cat"))

    assert by_item(engine, "first") == [("answered", "a bird", 2)] * 3
    assert by_item(engine, "second") == [("answered", "a new cat", 2)] * 3
    assert {row["second_wrong_answer"] for row in rows_of(TWO, read_made(engine, "recipe").items)[0]} == {"a new cat"}


@pytest.mark.parametrize("queued", [False, True])
def test_a_step_that_was_due_waits_again_where_the_text_before_it_is_found_bad(
    engine: Engine, tmp_path: Path, queued: bool
) -> None:
    planned(engine, tmp_path, steps=[FIRST, SECOND])
    queue = "UPDATE job SET state = 'queued', lease_until = now() + interval '900 s' WHERE state = 'pending'"
    change(engine, f"{queue} AND parent IS NULL")
    parents = [row["id"] for row in rows(engine, "SELECT id FROM job WHERE parent IS NULL")]
    evaluator_on(engine, Answering(lambda _: "Answer: a dog")).evaluate(parents)
    if queued:
        change(engine, queue)
    planned(engine, tmp_path, steps=[FIRST | {"checks": ["bare"]}, SECOND])

    reparse(engine, "recipe")
    children = [row["id"] for row in rows(engine, "SELECT id FROM job WHERE parent IS NOT NULL")]
    provider = Answering(lambda _: "a cat")
    evaluator_on(engine, provider).evaluate(children)
    with engine.begin() as connection:
        settle_children(connection)

    assert provider.requests == []
    assert by_item(engine, "second") == [("failed", None, 1)] * 3
    assert rows(engine, "SELECT error_kind FROM attempt WHERE error_kind IS NOT NULL") == []
    retry(engine, "recipe", Selection(outcomes=("invalid",)), dry_run=False)
    ask_all(engine, saying("a bird", "a cat"))
    assert by_item(engine, "second") == [("answered", "a cat", 2)] * 3


def test_statements_are_made_for_every_choice_and_read_back_as_they_were_written(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "say.txt").write_text("Question: {question}\nAnswer: {choice}\nStatement:", encoding="utf-8")
    output = Output(file="statements.csv", statements="say")
    steps = [{"step": "say", "prompt": "say.txt", "each": "choice", "checks": ["bare", "not_question"]}]
    data = write_study(tmp_path, items=3).parent / "items.jsonl"
    planned(
        engine,
        tmp_path,
        datasets=[{"name": "capitals", "loader": "items", "path": data.name}],
        steps=steps,
        writes=[output.model_dump(exclude_none=True)],
        retry={"invalid": 0},
    )

    asked = ask_all(
        engine, lambda request: "Is it?" if "wrong 2" in request.prompt else f'"{request.prompt[10:12]}", so'
    )

    made = read_made(engine, "recipe")
    assert len(asked.requests) == 6
    assert [(one.id, one.choice, one.why) for one in made.left_out] == [("q2", 2, "invalid: question")]
    found, twins = rows_of(output, made.items)
    assert twins == []
    assert [(row["id"], row["choice"]) for row in found] == [
        ("q0", "right 0"),
        ("q0", "wrong 0"),
        ("q1", "right 1"),
        ("q1", "wrong 1"),
        ("q2", "right 2"),
    ]
    write_made(tmp_path / "made", "recipe", {output.file: found}, {})
    with pytest.raises(InputError, match=r"question q2 has no statement for its choice 'wrong 2'"):
        with_statements(
            read_study(write_study(tmp_path, items=3)).items["capitals"],
            tmp_path / "made" / output.file,
        )
