"""The quotas that the fake Gemini keeps: a true sliding window, told of in the API's own words."""

import time
import uuid

import pytest

from contract.forms import Sampling
from contract.models import GeminiModel
from tests.fake_gemini import FakeGemini, fake_gemini
from tests.gemini_quota import PER_DAY, PER_MINUTE, TOKENS_PER_MINUTE, Meter, Quota, tokens_of
from worker.providers.base import ExhaustedError, Request, ThrottledError
from worker.providers.gemini import GeminiProvider


def ask(provider: GeminiProvider) -> str:
    """The answer to one call."""
    request = Request(call=uuid.uuid4(), number=1, prompt="A or B?", sampling=Sampling(), seed=1, timeout_s=30.0)
    return provider.complete(request).text


def metered(server: FakeGemini, key: str = "key-1") -> GeminiProvider:
    """A provider of the model that has a quota."""
    spec = GeminiModel(provider="gemini", name="m", model="gemini-3-flash-metered", base_url=server.base_url)
    return GeminiProvider(spec, api_key=key)


def test_a_window_slides_with_the_requests_that_were_accepted() -> None:
    meter = Meter(Quota(requests=2, window_s=10.0))

    outcomes = [meter.admit("k", 1, at_s=at_s) is None for at_s in (0.0, 6.0, 9.9, 10.0, 15.9, 16.0, 16.1)]

    assert outcomes == [True, True, False, True, False, True, False]
    assert [arrival.at_s for arrival in meter.accepted] == [0.0, 6.0, 10.0, 16.0]
    assert [arrival.at_s for arrival in meter.refused] == [9.9, 15.9, 16.1]


def test_a_refusal_names_the_quota_and_the_wait_after_which_the_request_fits() -> None:
    meter = Meter(Quota(requests=5, tokens=100, window_s=10.0))
    meter.admit("k", 60, at_s=0.0)
    meter.admit("k", 30, at_s=4.0)

    small, large = meter.admit("k", 20, at_s=5.0), meter.admit("k", 80, at_s=5.0)

    assert "'retryDelay': '5s'" in str(small)
    assert "'retryDelay': '9s'" in str(large)
    assert TOKENS_PER_MINUTE in str(small)
    assert PER_MINUTE not in str(small)


def test_every_key_has_a_quota_of_its_own() -> None:
    meter = Meter(Quota(requests=1, window_s=10.0))

    assert meter.admit("one", 1, at_s=0.0) is None
    assert meter.admit("other", 1, at_s=0.0) is None
    assert meter.admit("one", 1, at_s=1.0) is not None


def test_a_day_ends_when_it_is_told_to() -> None:
    meter = Meter(Quota(per_day=1))
    meter.admit("k", 1)

    refusal = meter.admit("k", 1)
    meter.new_day()

    assert PER_DAY in str(refusal)
    assert meter.admit("k", 1) is None


def test_a_prompt_counts_by_its_bytes() -> None:
    assert [tokens_of(prompt) for prompt in ("", "abcd", "abcde", "perché")] == [1, 1, 2, 2]


def test_a_client_that_waits_as_told_is_served_again() -> None:
    with fake_gemini(quota=Quota(requests=3, window_s=3.0)) as server:
        provider = metered(server)
        assert [ask(provider) for _ in range(3)] == ["A"] * 3
        with pytest.raises(ThrottledError) as caught:
            ask(provider)

        wait_s = caught.value.wait_s
        assert wait_s is not None
        assert 0 < wait_s <= 3.0
        time.sleep(wait_s)
        assert ask(provider) == "A"
        arrivals = [arrival.at_s for arrival in server.meter.accepted]
        assert arrivals[3] - arrivals[0] >= 3.0
        assert len(server.meter.refused) == 1


def test_a_day_that_is_spent_exhausts_its_key_only() -> None:
    with fake_gemini(quota=Quota(requests=100, per_day=1)) as server:
        one, other = metered(server), metered(server, "key-2")
        ask(one)

        with pytest.raises(ExhaustedError):
            ask(one)
        assert ask(other) == "A"
