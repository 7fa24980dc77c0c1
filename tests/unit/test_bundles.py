"""Bundles and shares: what travels together in one message, and whose turn it is."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.results import LOSSES_ALONE
from producer.bundles import Bundle, Claimant, DueJob, cut_bundles, share

JOBS = st.lists(
    st.tuples(st.sampled_from("mn"), st.sampled_from("de"), st.one_of(st.none(), st.integers(0, 5)), st.integers(0, 5)),
    max_size=60,
)


def job(number: int, *, model: str = "m", dataset: str = "d", prefix: int | None = 7, losses: int = 0) -> DueJob:
    """A due job."""
    return DueJob(id=number, model=model, dataset=dataset, prefix=prefix, losses=losses)


def cut(*jobs: DueJob, size: int = 4, slots: int = 1, more: bool = False) -> list[tuple[int, ...]]:
    """The ids of each bundle."""
    return [bundle.job_ids for bundle in cut_bundles(jobs, "s", size=size, slots=slots, more=more)]


def of_prefixes(*lengths: int) -> list[DueJob]:
    """Jobs in plan order, so many of each prefix."""
    prefixes = [prefix for prefix, length in enumerate(lengths) for _ in range(length)]
    return [job(number, prefix=prefix) for number, prefix in enumerate(prefixes)]


def sizes(*lengths: int, size: int, slots: int = 1, more: bool = False) -> list[int]:
    """How many jobs each bundle has, cut from so many jobs of each prefix."""
    return [len(ids) for ids in cut(*of_prefixes(*lengths), size=size, slots=slots, more=more)]


def test_no_jobs_make_no_bundles() -> None:
    assert cut() == []


@pytest.mark.parametrize(
    ("count", "lengths"), [(1, [1]), (4, [4]), (5, [4, 1]), (9, [4, 4, 1])], ids=["one", "full", "one more", "nine"]
)
def test_a_bundle_holds_at_most_what_its_study_allows(count: int, lengths: list[int]) -> None:
    assert [len(ids) for ids in cut(*(job(number) for number in range(count)))] == lengths


@pytest.mark.parametrize("part", ["model", "dataset"])
def test_a_bundle_serves_one_model_and_dataset(part: str) -> None:
    assert cut(job(1), job(2), job(3, **{part: "other"}), job(4)) == [(1, 2), (3,), (4,)]  # type: ignore[arg-type]


def test_a_bundle_says_whose_it_is() -> None:
    found = cut_bundles([job(1, model="sim", dataset="capitals")], "trial", size=4, slots=1, more=False)

    assert found == [Bundle(job_ids=(1,), study="trial", model="sim", dataset="capitals")]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param([6, 6, 6], [6, 6, 6], id="a prefix that does not fit any more begins a new bundle"),
        pytest.param([2, 2, 2, 2, 2], [8, 2], id="short prefixes fill a bundle together"),
        pytest.param([8, 8], [8, 8], id="a prefix that fills a bundle has it for itself"),
        pytest.param([20], [8, 8, 4], id="a prefix that is too long is cut at the bundle's size"),
        pytest.param([20, 3, 4], [8, 8, 7, 4], id="the rest of a long prefix is filled up"),
        pytest.param([3, 20], [3, 8, 8, 4], id="a long prefix begins a new bundle"),
        pytest.param([5, 3, 5, 3], [8, 8], id="prefixes that fit together"),
    ],
)
def test_jobs_of_one_prompt_prefix_stay_together(lengths: list[int], expected: list[int]) -> None:
    assert sizes(*lengths, size=8) == expected


def test_jobs_whose_prefix_is_not_known_share_it_with_nobody() -> None:
    assert cut(*(job(number, prefix=None) for number in range(6))) == [(0, 1, 2, 3), (4, 5)]


@pytest.mark.parametrize(
    ("pairs", "slots", "expected"),
    [
        pytest.param(4, 1, [8], id="one slot takes all"),
        pytest.param(4, 4, [2, 2, 2, 2], id="each slot gets some"),
        pytest.param(4, 64, [2, 2, 2, 2], id="prefixes are not torn for idle slots"),
        pytest.param(6, 4, [4, 4, 4], id="no slot waits for another with a full bundle"),
        pytest.param(32, 4, [16] * 4, id="as many as there is room for"),
    ],
)
def test_the_last_jobs_of_a_study_are_spread_over_the_slots(pairs: int, slots: int, expected: list[int]) -> None:
    assert sizes(*([2] * pairs), size=16, slots=slots) == expected


def test_a_bundle_that_later_jobs_may_fill_is_left_for_the_next_time() -> None:
    assert sizes(6, 6, 3, size=8, slots=64, more=True) == [6, 6]
    assert sizes(3, size=8, more=True) == [3]


@pytest.mark.parametrize("losses", [LOSSES_ALONE, LOSSES_ALONE + 1, 4])
def test_a_job_that_was_lost_twice_travels_alone(losses: int) -> None:
    assert cut(job(1), job(2, losses=losses), job(3), job(4)) == [(1,), (2,), (3, 4)]


def test_a_job_that_was_lost_once_travels_with_the_others() -> None:
    assert cut(job(1), job(2, losses=1), job(3)) == [(1, 2, 3)]


def test_two_suspects_do_not_travel_together() -> None:
    assert cut(job(1, losses=2), job(2, losses=2)) == [(1,), (2,)]


@given(JOBS, st.integers(1, 20), st.integers(1, 100))
def test_nothing_is_lost_doubled_or_put_out_of_order(
    made: list[tuple[str, str, int | None, int]], size: int, slots: int
) -> None:
    jobs = [job(n, model=m, dataset=d, prefix=p, losses=losses) for n, (m, d, p, losses) in enumerate(made)]

    assert [number for ids in cut(*jobs, size=size, slots=slots) for number in ids] == list(range(len(jobs)))


@given(JOBS, st.integers(1, 20), st.integers(1, 100), st.booleans())
def test_every_bundle_keeps_the_rules(
    made: list[tuple[str, str, int | None, int]], size: int, slots: int, more: bool
) -> None:
    jobs = [job(n, model=m, dataset=d, prefix=p, losses=losses) for n, (m, d, p, losses) in enumerate(made)]

    for bundle in cut_bundles(jobs, "s", size=size, slots=slots, more=more):
        held = [jobs[number] for number in bundle.job_ids]
        assert 1 <= len(held) <= size
        assert {(j.model, j.dataset) for j in held} == {(bundle.model, bundle.dataset)}
        assert len(held) == 1 or all(j.losses < LOSSES_ALONE for j in held)


@given(st.lists(st.integers(1, 12), max_size=20), st.integers(12, 30), st.integers(1, 8))
def test_no_prefix_that_fits_a_bundle_is_ever_torn(lengths: list[int], size: int, slots: int) -> None:
    jobs = of_prefixes(*lengths)

    prefixes = [[jobs[number].prefix for number in ids] for ids in cut(*jobs, size=size, slots=slots)]

    assert all(set(one).isdisjoint(other) for one, other in pairwise(prefixes))


def claimant(number: int, *, weight: int = 1, held: int = 0, size: int = 4, budget_s: float = 60.0) -> Claimant:
    """A study with due jobs."""
    return Claimant(id=number, name=f"s{number}", weight=weight, held=held, size=size, budget_s=budget_s)


def shares(room: int, *claimants: Claimant, pace_s: float | None = None, seed: int = 1) -> dict[int, int]:
    """The jobs that each study may queue."""
    return share(room, claimants, pace_s, random.Random(seed))


def test_a_single_study_has_all_the_room_in_whole_bundles() -> None:
    assert shares(18, claimant(1)) == {1: 16}


def test_studies_share_alike() -> None:
    assert shares(64, claimant(1), claimant(2)) == {1: 32, 2: 32}


def test_a_study_of_twice_the_weight_has_twice_as_much() -> None:
    assert shares(96, claimant(1, weight=2), claimant(2)) == {1: 64, 2: 32}


def test_what_a_study_holds_already_counts() -> None:
    assert shares(32, claimant(1, held=32), claimant(2)) == {1: 0, 2: 32}


def test_a_study_that_holds_nothing_gets_a_bundle_however_little_room_there_is() -> None:
    assert shares(1, claimant(1, held=100), claimant(2)) == {1: 0, 2: 4}


def test_no_room_is_shared_by_nobody() -> None:
    assert shares(0, claimant(1), claimant(2)) == {1: 0, 2: 0}
    assert shares(10) == {}


def test_ties_are_broken_by_lot() -> None:
    winners = {max(given := shares(4, claimant(1), claimant(2), seed=seed), key=given.__getitem__) for seed in range(9)}

    assert winners == {1, 2}


@pytest.mark.parametrize(
    ("pace_s", "budget_s", "jobs"),
    [(None, 60, 16), (0.001, 60, 16), (5, 60, 12), (30, 60, 2), (90, 60, 1)],
    ids=["not known", "fast", "slower", "slow", "slower than the budget"],
)
def test_a_bundle_has_no_more_jobs_than_its_time_budget_is_likely_to_be_enough_for(
    pace_s: float | None, budget_s: float, jobs: int
) -> None:
    assert claimant(1, size=16, budget_s=budget_s).bundle_size(pace_s) == jobs


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 200), st.integers(1, 16)), min_size=1, max_size=8),
    st.integers(0, 500),
)
def test_shares_never_exceed_the_room_but_for_studies_that_hold_nothing(
    made: list[tuple[int, int, int]], room: int
) -> None:
    studies = [claimant(n, weight=w, held=h, size=s) for n, (w, h, s) in enumerate(made)]

    given_now = shares(room, *studies)

    spare = sum(study.size for study in studies if study.held == 0)
    assert 0 <= sum(given_now.values()) <= room + (spare if room else 0)
    assert all(given_now[study.id] % study.size == 0 for study in studies)
