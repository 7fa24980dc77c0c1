"""How one item is shown: both orders beside each other, and nothing that a model says acts on the terminal."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from ops.cli.show import render_item
from ops.inspection import AttemptSeen, JobSeen

PROMPT = "Read this:\nParagraph 0.\n\nA) the right one\nB) the wrong one\nAnswer:"


def attempt(number: int = 1, **changes: Any) -> AttemptSeen:  # noqa: ANN401
    """An attempt that answered A, read as choice 0."""
    values: dict[str, Any] = {
        "id": f"id-{number}",
        "round": 1,
        "started_at": datetime(2026, 1, 1, 12, number, tzinfo=UTC),
        "latency_ms": 250,
        "seed": 77,
        "prompt": PROMPT,
        "outcome": "answered",
        "completion": "A",
        "completion_length": 1,
        "thinking": None,
        "finish_reason": "stop",
        "tokens_in": 21,
        "tokens_out": 1,
        "tokens_cached": None,
        "answer": 0,
        "text": None,
        "tier": "bare_letter",
        "reason": None,
        "reading": "strict",
        "reading_version": 3,
        "error_kind": None,
        "error_message": None,
        "answered_by": "tiny-7b",
        "endpoint": "http://127.0.0.1:8000/v1",
        "server_version": "v1.2",
        "digest": None,
        "quantisation": None,
        "pool": None,
        "logprobs": None,
        "worker": "w1",
    }
    return AttemptSeen(**(values | changes))


def fault(**changes: Any) -> AttemptSeen:  # noqa: ANN401
    """An attempt without a completion."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("completion", "completion_length", "finish_reason", "tokens_in", "tokens_out", "answer")
    )
    nothing |= dict.fromkeys(("tier", "reading", "reading_version", "answered_by", "endpoint", "server_version"))
    error: dict[str, Any] = {"outcome": "no_completion", "error_kind": "rejected", "error_message": "HTTP 400"}
    return attempt(**(nothing | error | changes))


def job(*attempts: AttemptSeen, **changes: Any) -> JobSeen:  # noqa: ANN401
    """A job of order 12 with these attempts."""
    values: dict[str, Any] = {
        "id": 1,
        "model": "sim",
        "dataset": "capitals",
        "format": "closed",
        "stage": "answer",
        "variant": "12",
        "order": (0, 1),
        "part": 0,
        "repeat": 1,
        "state": "answered" if attempts else "pending",
        "planned": True,
        "round": 1,
        "answer": 0 if attempts else None,
        "text": None,
        "counted_attempt": attempts[-1].id if attempts else None,
        "source_id": "q0",
        "cluster": "c0",
        "item": {"question": "Which?", "choices": ["the right one", "the wrong one"], "target": 0},
        "attempts": attempts,
    }
    return JobSeen(**(values | changes))


def swapped(*attempts: AttemptSeen, **changes: Any) -> JobSeen:  # noqa: ANN401
    """The same in order 21."""
    return job(*attempts, **({"id": 2, "variant": "21", "order": (1, 0)} | changes))


def shown(*jobs: JobSeen, width: int = 200) -> str:
    """What is printed."""
    console = Console(width=width, file=StringIO(), highlight=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(render_item(jobs))
    return capture.get()


def words(text: str) -> str:
    """The text of one column without its frame, in one line."""
    return " ".join(text.replace("│", " ").split())


def test_both_orders_stand_beside_each_other() -> None:
    text = shown(job(attempt(completion="A")), swapped(attempt(completion="The letter B.")))

    assert any("order 12" in line and "order 21" in line for line in text.splitlines())
    assert any("'A'" in line and "'The letter B.'" in line for line in text.splitlines())


def test_dataset_model_repeat_and_the_right_choice_stand_over_each_pair() -> None:
    pairs = [
        each
        for model in ("sim", "second")
        for repeat in (1, 2)
        for each in (job(model=model, repeat=repeat), swapped(model=model, repeat=repeat))
    ]

    headings = [line for line in shown(*pairs).splitlines() if line.startswith("q0 on capitals")]

    assert headings == [
        f"q0 on capitals, asked of {model}, repeat {repeat}; cluster c0; right: choice 1, 'the right one'"
        for model in ("sim", "second")
        for repeat in (1, 2)
    ]


def test_an_item_without_a_target_has_no_right_choice() -> None:
    item = {"question": "Which?", "choices": ["one", "two"], "target": None}

    text = shown(job(item=item), swapped(item=item))

    assert "no choice is right" in text
    assert "right: choice" not in text


@pytest.mark.parametrize(
    ("order", "choice", "result", "read"),
    [
        pytest.param((0, 1), 0, "A = choice 1, 'the right one'", "read letter A", id="12, A"),
        pytest.param((0, 1), 1, "B = choice 2, 'the wrong one'", "read letter B", id="12, B"),
        pytest.param((1, 0), 0, "B = choice 1, 'the right one'", "read letter B", id="21, B"),
        pytest.param((1, 0), 1, "A = choice 2, 'the wrong one'", "read letter A", id="21, A"),
    ],
)
def test_a_letter_is_the_place_in_which_the_choice_was_shown(
    order: tuple[int, ...], choice: int, result: str, read: str
) -> None:
    variant = "".join(str(each + 1) for each in order)

    text = words(shown(job(attempt(answer=choice), answer=choice, order=order, variant=variant)))

    assert f"order {variant}: answered, {result}" in text
    assert f"{read}, by tier bare_letter of strict 3" in text


def test_what_could_not_be_read_says_why() -> None:
    unreadable = attempt(outcome="invalid", completion="C", answer=None, tier="other", reason="other_letter")

    text = words(shown(job(unreadable, state="invalid", answer=None)))

    assert "order 12: invalid" in text
    assert "attempt 1, round 1: invalid (counted)" in text
    assert "read nothing: other_letter, by tier other of strict 3" in text


def test_a_job_without_an_attempt_was_not_asked_yet() -> None:
    text = shown(job(), swapped(attempt()))

    assert text.count("not asked yet") == 1
    assert "order 12: pending" in text
    assert "attempt 1" in text


def test_a_job_that_left_the_plan_is_marked() -> None:
    text = shown(job(attempt(), planned=False), swapped(attempt()))

    assert text.count("no longer planned") == 1


def test_every_attempt_is_shown_and_the_counted_one_marked() -> None:
    attempts = (
        attempt(1, outcome="invalid", completion="hm", answer=None, reason="unreadable"),
        fault(id="id-2"),
        attempt(3, round=2),
        attempt(4, round=2, completion="A again"),
    )

    text = words(shown(job(*attempts, counted_attempt="id-3", round=2)))

    assert "attempt 1, round 1: invalid 'hm'" in text
    assert "attempt 2, round 1: no_completion rejected: HTTP 400" in text
    assert "attempt 3, round 2: answered (counted) 'A'" in text
    assert "attempt 4, round 2: answered 'A again'" in text
    assert text.count("(counted)") == 1


def test_the_prompt_is_shown_line_for_line_and_again_only_where_it_changed() -> None:
    text = shown(job(attempt(1), attempt(2), attempt(3, prompt="Another prompt.")))

    lines = [line.strip("│ ") for line in text.splitlines()]
    start = lines.index("Read this:")
    assert lines[start : start + 6] == PROMPT.split("\n")
    assert text.count("prompt as sent") == 2
    assert text.count("Read this:") == 1
    assert text.count("Another prompt.") == 1


def test_a_call_says_when_how_long_with_which_seed_and_by_whom() -> None:
    text = words(shown(job(attempt(1, seed=4242, latency_ms=1250, finish_reason=None, worker="w7"))))

    assert "1250 ms, seed 4242, finish unknown" in text
    assert "answered by tiny-7b at http://127.0.0.1:8000/v1 version v1.2; worker w7" in text


def test_a_count_that_nobody_told_is_unknown_and_none_is_zero() -> None:
    text = words(shown(job(attempt(tokens_in=21, tokens_out=0, tokens_cached=None))))

    assert "tokens: 21 in, 0 out, unknown from cache" in text


def test_a_call_without_a_completion_was_answered_by_nobody() -> None:
    text = words(shown(job(fault(), state="failed", answer=None, counted_attempt=None)))

    assert "rejected: HTTP 400" in text
    assert "answered by nobody" in text
    assert "by tier" not in text


def test_an_empty_completion_is_not_the_same_as_none() -> None:
    empty = attempt(outcome="invalid", completion="", answer=None, reason="empty")

    assert "''" in shown(job(empty, state="invalid", answer=None))
    assert "''" not in shown(job(fault(), state="failed", answer=None))


@pytest.mark.parametrize(
    ("completion", "printed"),
    [
        pytest.param("\x1b[2J\x1b]0;owned\x07A", r"'\x1b[2J\x1b]0;owned\x07A'", id="escapes"),
        pytest.param("A\r\nB\t\b", r"'A\r\nB\t\x08'", id="control characters"),
        pytest.param("[red]A[/red] [/]", "'[red]A[/red] [/]'", id="markup"),
        pytest.param(":100: :warning:", "':100: :warning:'", id="emoji codes"),
        pytest.param("\x9b31mA\u202e", r"'\x9b31mA\u202e'", id="beyond ASCII"),
    ],
)
def test_raw_text_is_shown_to_the_last_character(completion: str, printed: str) -> None:
    assert printed in shown(job(attempt(completion=completion)))


HOSTILE = "x\x1b[31m\x1b]0;owned\x07\x9b2J\r\b[/nope][red]y"
PLACES: dict[str, JobSeen] = {
    "prompt": job(attempt(prompt=HOSTILE)),
    "completion": job(attempt(completion=HOSTILE)),
    "thinking": job(attempt(thinking=HOSTILE)),
    "finish reason": job(attempt(finish_reason=HOSTILE)),
    "who answered": job(attempt(answered_by=HOSTILE)),
    "server version": job(attempt(server_version=HOSTILE)),
    "quantisation": job(attempt(quantisation=HOSTILE)),
    "first token": job(attempt(logprobs={HOSTILE: -0.1})),
    "error message": job(fault(error_message=HOSTILE), state="failed", answer=None),
    "item id": job(attempt(), source_id=HOSTILE),
    "cluster": job(attempt(), cluster=HOSTILE),
    "choice": job(attempt(), item={"question": "Which?", "choices": [HOSTILE, "b"], "target": 0}),
}


@pytest.mark.parametrize("seen", PLACES.values(), ids=PLACES)
def test_nothing_that_others_wrote_acts_on_the_terminal(seen: JobSeen) -> None:
    text = shown(seen)

    acting = {character for character in text if unicodedata.category(character) == "Cc" and character != "\n"}
    assert acting == set()
    assert "[/nope][red]y" in text


def test_control_characters_of_a_prompt_are_shown_and_not_left_out() -> None:
    text = shown(job(attempt(prompt="one\rtwo\x07three")))

    assert "onetwo" not in text
    assert "twothree" not in text


def test_a_narrow_page_breaks_long_text_and_loses_nothing_of_it() -> None:
    long = "".join(f"{number:04}" for number in range(100))

    text = shown(job(attempt(completion=long)), swapped(replace(attempt(), completion="B")), width=80)

    left = "".join(line.split("│")[1].strip() for line in text.splitlines() if "│" in line)
    assert long in left
    assert {len(line) for line in text.splitlines() if "│" in line} == {80}


def test_who_answered_is_told_down_to_the_weights_and_the_quota() -> None:
    text = shown(job(attempt(digest="0123456789abcdef" * 4, quantisation="Q4_K_M", pool="first-project")), width=400)

    assert "digest 0123456789ab quantised as Q4_K_M through pool first-project" in " ".join(text.split())


def test_the_first_token_s_candidates_are_told_as_probabilities_the_likeliest_first() -> None:
    assert "first token: 'A' 0.500, 'B' 0.250" in shown(job(attempt(logprobs={"B": -1.3863, "A": -0.6931})))


def test_a_text_that_a_step_made_is_shown_as_it_was_read_and_as_it_was_said() -> None:
    said = attempt(completion=" a dog\n", answer=None, text="a dog", tier="text", reading="text", reading_version=1)
    bad = attempt(2, outcome="invalid", completion="1973", answer=None, tier="not_right", reason="equals_right")

    made: dict[str, Any] = {"format": "open", "stage": "generate", "order": (), "answer": None}

    text = shown(
        job(said, **made, variant="plausible", text="a dog"),
        job(bad, **made, variant="second", state="invalid"),
    )

    assert "step plausible: answered, 'a dog'" in text
    assert "' a dog\\n'" in text
    assert "read the text 'a dog', by tier text of text 1" in text
    assert "step second: invalid" in text
    assert "read nothing: equals_right, by tier not_right" in text


def test_ratings_open_answers_and_annotations_are_shown_as_what_they_are() -> None:
    rated = attempt(completion="2", answer=2, tier="number", reading="first-number", reading_version=1)
    said = attempt(2, completion="The right one.", answer=None, text="The right one.", reading="open-text")
    judged = attempt(3, completion="the right one", answer=0, tier="exact", reading="option-text")
    common: dict[str, Any] = {"order": ()}

    text = shown(
        job(rated, **common, format="likert", variant="5-negative", part=2, answer=2),
        job(said, **common, format="open", variant="reasoning", answer=None, text="The right one."),
        job(judged, **common, format="open", stage="annotate", variant="reasoning", answer=0),
    )

    assert "scale 5-negative, statement of choice 2: answered, 2" in text
    assert "read the rating 2, by tier number" in text
    assert "open, reasoning: answered, 'The right one.'" in text
    assert "annotation of reasoning: answered, choice 1, 'the right one'" in text
    assert "read choice 1, by tier exact" in text
