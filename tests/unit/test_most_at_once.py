"""How many calls ran at once, from when each of them ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.providers.ollama_host import most_at_once

INTERVALS = st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 10)).map(lambda pair: (pair[0], sum(pair))))


@pytest.mark.parametrize(
    ("intervals", "most"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([(0, 1)], 1, id="one"),
        pytest.param([(0, 0), (0, 0)], 1, id="without length"),
        pytest.param([(0, 1), (1, 2), (2, 3)], 1, id="touching"),
        pytest.param([(0, 1.1), (0.9, 2.0), (1.9, 3.0)], 1, id="touching, but for a blur"),
        pytest.param([(0, 1), (0.02, 1.01), (0.01, 0.99)], 3, id="all together"),
        pytest.param([(0, 1), (0, 1), (1, 2), (1, 2)], 2, id="two and two"),
        pytest.param([(0, 3), (0, 1), (1, 2), (2, 3)], 2, id="a long one beside short ones"),
        pytest.param([(5, 6), (0, 1), (0.1, 1.1), (0.2, 1.2), (5.1, 6.1)], 3, id="in any order"),
    ],
)
def test_what_overlaps_is_counted_and_what_touches_is_not(intervals: list[tuple[float, float]], most: int) -> None:
    assert most_at_once(intervals) == most


@given(INTERVALS)
def test_there_is_at_least_one_and_at_most_all(intervals: list[tuple[float, float]]) -> None:
    assert 1 <= most_at_once(intervals) <= max(1, len(intervals))


@given(st.lists(st.floats(0.1, 10), min_size=1))
def test_calls_one_after_the_other_are_one_at_once(lengths: list[float]) -> None:
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]

    assert most_at_once(list(zip([0.0, *ends], ends, strict=False))) == 1
