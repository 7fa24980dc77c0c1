"""What a study asks, how long it takes and what it costs, told from its file alone."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.formats import closed
from contract.pools import Pool, Prices
from contract.tokens import estimate_tokens
from ops.forecast import forecast
from producer.forecast import DAY_S, Capacity, Load, Volume, cost, duration, together, volumes
from producer.loaded_study import LoadedStudy
from producer.plan import plan_jobs
from producer.study_file import read_study
from tests.builders import write_study

TWO_MODELS = [{"name": name, "provider": "simulated"} for name in ("one", "two")]
EXPECTED = {
    "name": "absent",
    "loader": "items",
    "path": "nowhere.jsonl",
    "prompt": "two-choice-low",
    "expect": {"items": 7609},
}


def loaded(folder: Path, **changes: Any) -> LoadedStudy:  # noqa: ANN401
    """A study as `plan` reads it."""
    return read_study(write_study(folder, **changes), may_lack_data=True)


def pool(name: str = "a", **limits: Any) -> Pool:  # noqa: ANN401
    """A pool of the whole quota."""
    return Pool.model_validate({"name": name, "provider": "openai", "share": 0.5} | limits)


def test_jobs_are_those_of_the_plan(tmp_path: Path) -> None:
    study = loaded(tmp_path, items=7, models=TWO_MODELS, repeats=3)

    made = list(volumes(study))

    assert sum(volume.jobs for volume in made) == len(list(plan_jobs(study))) == 7 * 2 * 2 * 3
    assert [(each.condition.model.name, each.condition.variant.label) for each in made] == [
        ("one", "12"),
        ("one", "21"),
        ("two", "12"),
        ("two", "21"),
    ]


def test_prompts_are_measured_by_the_text_that_would_be_sent_and_answers_by_their_budget(tmp_path: Path) -> None:
    study = loaded(tmp_path, items=3, repeats=2, formats=[{"format": "closed", "sampling": {"max_tokens": 9}}])
    (first, _) = volumes(study)

    texts = [closed.render(item, first.condition.variant, first.condition.prompt) for item in study.items["capitals"]]
    assert first.prompt_tokens == 2 * sum(map(estimate_tokens, texts))
    assert first.answer_tokens == 3 * 2 * 9


def test_a_file_that_is_not_at_hand_is_counted_by_what_is_expected_of_it(tmp_path: Path) -> None:
    made = list(volumes(loaded(tmp_path, datasets=[EXPECTED], repeats=2)))

    assert [(each.jobs, each.prompt_tokens, each.expected) for each in made] == [(15_218, None, True)] * 2


@pytest.mark.parametrize(
    ("model", "options", "tokens"),
    [
        ("gemini-2.5-flash", {}, 9),
        ("models/gemini-2.5-flash-lite", {}, 9),
        ("gemini-2.5-flash", {"thinking": "low"}, 109),
        ("gemini-2.5-pro", {}, 109),
        ("gemini-3-flash", {}, 109),
    ],
)
def test_an_answer_of_gemini_may_be_as_long_as_its_thinking_lets_it(
    tmp_path: Path, model: str, options: dict[str, str], tokens: int
) -> None:
    gemini = {"name": "g", "provider": "gemini", "model": model, "options": {"room": 100} | options}
    formats = [{"format": "closed", "sampling": {"max_tokens": 9}}]

    (first, _) = volumes(loaded(tmp_path, items=3, models=[gemini], formats=formats))

    assert first.answer_tokens == 3 * tokens


def test_a_limit_holds_for_what_is_expected_too(tmp_path: Path) -> None:
    assert sum(each.jobs for each in volumes(loaded(tmp_path, datasets=[EXPECTED], limit=10))) == 20


def test_a_file_that_is_there_must_hold_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the file holds 4 items, the study expects 7,609"):
        loaded(tmp_path, datasets=[EXPECTED | {"path": "items.jsonl"}])


def test_without_an_expectation_a_file_must_be_there(tmp_path: Path) -> None:
    without = {key: value for key, value in EXPECTED.items() if key != "expect"}

    with pytest.raises(InputError, match="there is no file"):
        loaded(tmp_path, datasets=[without])


def test_a_run_needs_its_data_whatever_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_study(write_study(tmp_path, datasets=[EXPECTED]))


@pytest.mark.parametrize(("done", "jobs", "prompts", "answers"), [(0, 8, 800, 80), (2, 6, 600, 60), (8, 0, 0, 0)])
def test_what_is_done_is_taken_off(tmp_path: Path, done: int, jobs: int, prompts: int, answers: int) -> None:
    (condition, *_) = [each.condition for each in volumes(loaded(tmp_path))]
    whole = Volume(condition=condition, jobs=8, prompt_tokens=800, answer_tokens=80)

    left = whole.left(done)

    assert (left.jobs, left.prompt_tokens, left.answer_tokens) == (jobs, prompts, answers)


@pytest.mark.parametrize(
    ("capacity", "seconds", "binding"),
    [
        pytest.param(Capacity(slots=4, pace_s=2.0), 500.0, "4 slots of workers", id="slots"),
        pytest.param(Capacity(pools=(pool(rpm=60),)), 2000.0, "requests a minute of a", id="requests"),
        pytest.param(Capacity(pools=(pool(rpm=60, window_s=5),)), 1000 / 6, "requests a minute of a", id="window"),
        pytest.param(
            Capacity(pools=(pool(rpm=60), pool("b", rpm=60))), 1000.0, "requests a minute of a and b", id="two pools"
        ),
        pytest.param(Capacity(pools=(pool(rpm=6000, tpm=1200),)), 11_000.0, "tokens a minute of a", id="tokens"),
        pytest.param(
            Capacity(pools=(pool(rpm=6000, tpm=1200, tokens_counted="input"),)),
            10_000.0,
            "tokens a minute of a",
            id="tokens of prompts alone",
        ),
        pytest.param(Capacity(pools=(pool(rpd=400),)), 4 * DAY_S, "requests a day of a", id="days"),
        pytest.param(
            Capacity(pools=(pool(rpd=400),), used_today={"a": 100}), 5 * DAY_S, "requests a day of a", id="used today"
        ),
        pytest.param(
            Capacity(pools=(pool(rpd=400),), next_day_s=3600.0),
            3600 + 3 * DAY_S,
            "requests a day of a",
            id="an hour before the next day",
        ),
        pytest.param(Capacity(pools=(pool(rpd=4000, rpm=60),)), 2000.0, "requests a minute of a", id="today is enough"),
        pytest.param(
            Capacity(pools=(pool(concurrency=2),), slots=8, pace_s=2.0), 1000.0, "calls at once of a", id="at once"
        ),
        pytest.param(
            Capacity(pools=(pool(rpm=60), pool("b", rpd=1)), slots=1, pace_s=1.0),
            1000.0,
            "1 slots of workers",
            id="a limit that not all pools have",
        ),
    ],
)
def test_what_takes_longest_is_what_binds(capacity: Capacity, seconds: float, binding: str) -> None:
    takes = duration(1000, 100_000, 10_000, capacity)

    assert takes is not None
    assert takes.seconds == pytest.approx(seconds)
    assert takes.binding == binding


@pytest.mark.parametrize("capacity", [Capacity(), Capacity(slots=4), Capacity(pace_s=1.0)])
def test_what_is_not_known_is_not_guessed(capacity: Capacity) -> None:
    assert duration(1000, 100_000, 10_000, capacity) is None


def test_costs_are_those_of_the_dearest_pool_between_no_answers_and_the_longest() -> None:
    cheap = pool(rpm=1, prices=Prices(input=0.1, output=0.4).model_dump())
    dear = pool("b", rpm=1, prices=Prices(input=1.0, output=4.0).model_dump())

    assert cost(2_000_000, 500_000, (cheap, dear)) == (2.0, 4.0)
    assert cost(2_000_000, 500_000, (pool(rpm=1),)) is None
    assert cost(None, 500_000, (cheap,)) is None


def test_every_retry_may_cost_as_much_as_the_first_call() -> None:
    priced = pool(rpm=1, prices=Prices(input=1.0, output=4.0).model_dump())

    assert cost(2_000_000, 500_000, (priced,), retries=2) == (2.0, 12.0)


def load(model: str, jobs: int, capacity: Capacity, *, in_turn: bool = False) -> Load:
    """A load of prompts of 100 tokens and answers of 10."""
    tokens = {"prompt_tokens": jobs * 100, "answer_tokens": jobs * 10}
    return Load(model=model, jobs=jobs, capacity=capacity, in_turn=in_turn, **tokens)


A = pool(rpm=60)
B = pool("b", rpm=120)
SLOT = Capacity(slots=1, pace_s=2.0)


@pytest.mark.parametrize(
    ("loads", "seconds", "binding"),
    [
        pytest.param(
            [load("one", 30, Capacity(pools=(A,))), load("two", 60, Capacity(pools=(A,)))],
            180.0,
            "requests a minute of a",
            id="one pool",
        ),
        pytest.param(
            [load("one", 30, Capacity(pools=(A,))), load("two", 60, Capacity(pools=(A, B)))],
            60.0,
            "requests a minute of a and b",
            id="pools that overlap",
        ),
        pytest.param(
            [load("one", 90, Capacity(pools=(A,))), load("two", 9, Capacity(pools=(A, B)))],
            180.0,
            "requests a minute of a",
            id="a model that may use only one of them",
        ),
        pytest.param(
            [load(name, 3, Capacity(pools=pools)) for name, pools in [("one", (A,)), ("two", (B,)), ("both", (A, B))]],
            6.0,
            "requests a minute of a and b",
            id="pools that a third model joins",
        ),
        pytest.param(
            [load(name, 100, Capacity(pools=(pool(rpd=240),), next_day_s=60.0)) for name in ("one", "two")],
            60.0,
            "requests a day of a",
            id="a day that is enough for either",
        ),
        pytest.param(
            [load(name, 10, SLOT, in_turn=True) for name in ("one", "two")], 40.0, "one and two in turn", id="in turn"
        ),
        pytest.param(
            [load("one", 30, Capacity(pools=(A,))), load("two", 40, SLOT)], 80.0, "1 slots of workers", id="apart"
        ),
        pytest.param(
            [
                load("one", 30, Capacity(pools=(A,))),
                load("two", 30, Capacity(pools=(A, pool("c", concurrency=1)), slots=1, pace_s=2.0)),
            ],
            120.0,
            "one and two in turn",
            id="pools that do not tell it together",
        ),
        pytest.param([load("one", 10, SLOT), load("two", 0, Capacity())], 20.0, "1 slots of workers", id="one is done"),
    ],
)
def test_a_study_takes_as_long_as_the_slowest_of_the_models_that_share_something(
    loads: list[Load], seconds: float, binding: str
) -> None:
    takes, unknown = together(loads)

    assert takes is not None
    assert takes.seconds == pytest.approx(seconds)
    assert (takes.binding, unknown) == (binding, ())


def test_the_time_of_a_study_is_not_known_where_that_of_one_model_is_not() -> None:
    assert together([load("one", 10, SLOT), load("two", 1, Capacity())]) == (None, ("two",))


def test_the_next_day_begins_by_the_clock_of_the_pool(tmp_path: Path) -> None:
    study = loaded(tmp_path, items=20, models=[{"name": "sim", "provider": "simulated", "pools": ["a"]}])
    pacific = pool(provider="simulated", rpd=60, day={"zone": "America/Los_Angeles"})

    made = forecast(study, None, {"a": pacific}, now=datetime(2026, 1, 1, 6, 0, tzinfo=UTC))

    assert made.takes is not None
    assert (made.takes.seconds, made.untimed, made.unpriced) == (2 * 3600.0, (), ("sim",))
