"""Bundles: what travels together in one message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.window import LOSSES_ALONE, QueuedJob, cut_bundles

JOBS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("mn"), st.sampled_from("de"), st.integers(0, 5)), max_size=60
)


def job(number: int, *, study: str = "s", model: str = "m", dataset: str = "d", losses: int = 0) -> QueuedJob:
    """A queued job of a study whose bundles hold four."""
    return QueuedJob(id=number, study=study, model=model, dataset=dataset, losses=losses, size=4)


def cut(*jobs: QueuedJob) -> list[tuple[int, ...]]:
    """The ids of each bundle."""
    return [bundle.job_ids for bundle in cut_bundles(jobs)]


def test_no_jobs_make_no_bundles() -> None:
    assert cut() == []


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (4, [4]), (5, [4, 1]), (9, [4, 4, 1])], ids=["one", "full", "one more", "nine"]
)
def test_a_bundle_holds_at_most_what_its_study_allows(count: int, sizes: list[int]) -> None:
    assert [len(ids) for ids in cut(*(job(number) for number in range(count)))] == sizes


@pytest.mark.parametrize("part", ["study", "model", "dataset"])
def test_a_bundle_serves_one_study_model_and_dataset(part: str) -> None:
    assert cut(job(1), job(2), job(3, **{part: "other"}), job(4)) == [(1, 2), (3,), (4,)]  # type: ignore[arg-type]


def test_a_bundle_says_whose_it_is() -> None:
    (bundle,) = cut_bundles([job(1, study="trial", model="sim", dataset="capitals")])

    assert (bundle.study, bundle.model, bundle.dataset) == ("trial", "sim", "capitals")


@pytest.mark.parametrize("losses", [LOSSES_ALONE, LOSSES_ALONE + 1, 4])
def test_a_job_that_was_lost_twice_travels_alone(losses: int) -> None:
    assert cut(job(1), job(2, losses=losses), job(3), job(4)) == [(1,), (2,), (3, 4)]


def test_a_job_that_was_lost_once_travels_with_the_others() -> None:
    assert cut(job(1), job(2, losses=1), job(3)) == [(1, 2, 3)]


def test_two_suspects_do_not_travel_together() -> None:
    assert cut(job(1, losses=2), job(2, losses=2)) == [(1,), (2,)]


def test_studies_with_bundles_of_other_sizes_keep_their_own() -> None:
    small = [QueuedJob(id=n, study="a", model="m", dataset="d", losses=0, size=1) for n in (1, 2)]
    large = [QueuedJob(id=n, study="b", model="m", dataset="d", losses=0, size=3) for n in (3, 4, 5)]

    assert cut(*small, *large) == [(1,), (2,), (3, 4, 5)]


@given(JOBS)
def test_nothing_is_lost_doubled_or_put_out_of_order(made: list[tuple[str, str, str, int]]) -> None:
    jobs = [job(n, study=s, model=m, dataset=d, losses=losses) for n, (s, m, d, losses) in enumerate(made)]

    assert [number for ids in cut(*jobs) for number in ids] == list(range(len(jobs)))


@given(JOBS)
def test_every_bundle_keeps_the_rules(made: list[tuple[str, str, str, int]]) -> None:
    jobs = [job(n, study=s, model=m, dataset=d, losses=losses) for n, (s, m, d, losses) in enumerate(made)]

    for bundle in cut_bundles(jobs):
        held = [jobs[number] for number in bundle.job_ids]
        assert 1 <= len(held) <= 4
        assert {(j.study, j.model, j.dataset) for j in held} == {(bundle.study, bundle.model, bundle.dataset)}
        assert len(held) == 1 or all(j.losses < LOSSES_ALONE for j in held)
