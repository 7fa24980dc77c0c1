"""What a study asks, how long it takes and what it costs, told from its file alone."""

from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.formats import closed
from contract.pools import Pool, Prices
from contract.tokens import estimate_tokens
from producer.forecast import DAY_S, Capacity, Volume, cost, duration, volumes
from producer.plan import plan_jobs
from producer.study_file import LoadedStudy, read_study
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
            Capacity(pools=(pool(rpd=400),), used_today={"a": 100}), 4.5 * DAY_S, "requests a day of a", id="used today"
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
