"""What servers say in their own words about waits and limits: the pure half of the OpenAI-compatible provider."""

import uuid
from datetime import UTC, datetime

import pytest

from contract.forms import Sampling
from worker.providers.base import Request
from worker.providers.openai_body import further_fields
from worker.providers.openai_waits import named_wait

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "wait_s"),
    [
        ("Rate limit reached. Please try again in 7.66s. Visit our pages.", 7.66),
        ("Please try again in 1m2.5s", 62.5),
        ("Please try again in 120ms.", 0.12),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 1h2m3s.", 3723.0),
        ("Please retry in 47.17s.", 47.17),
        ("Please retry after 26 seconds.", 26.0),
        ("Try again in 1 minute 30 seconds, or in 500 milliseconds.", 90.0),
        ("Try again in 500 milliseconds.", 0.5),
        ("Try again in 2 days", 172_800.0),
        ("Limit 200, used 200 in 1m2s.", None),
        ("Please try again in a while, 5s or so.", None),
        ("", None),
    ],
)
def test_a_wait_is_read_in_a_message(message: str, wait_s: float | None) -> None:
    assert named_wait({}, message, now=NOW) == (None if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        pytest.param({"retry-after": "2"}, 2.0, id="seconds"),
        pytest.param({"retry-after": "-2"}, 0.0, id="no time before now"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="milliseconds are the finer word"),
        pytest.param({"retry-after-ms": "nan", "retry-after": "2"}, 2.0, id="no number of milliseconds"),
        pytest.param({"retry-after": "Thu, 01 Jan 2026 12:01:30 GMT"}, 90.0, id="a date"),
        pytest.param({"retry-after": "Thu, 01 Jan 2026 12:01:30 -0000"}, 90.0, id="a date without a zone"),
        pytest.param({"retry-after": "Thu, 01 Jan 2026 13:01:30 +0100"}, 90.0, id="a date elsewhere"),
        pytest.param({"retry-after": "Thu, 01 Jan 2026 11:59:00 GMT"}, 0.0, id="a date that is over"),
        pytest.param({"retry-after": "Thu, 99 Jan 2026 12:00:00 GMT"}, 5.0, id="a date that is none"),
        pytest.param({"retry-after": "inf"}, 5.0, id="for ever"),
        pytest.param({"retry-after": "soon"}, 5.0, id="a word"),
        pytest.param({}, 5.0, id="nothing"),
    ],
)
def test_a_wait_in_a_header_goes_before_one_in_the_message(headers: dict[str, str], wait_s: float) -> None:
    assert named_wait(headers, "Please try again in 5s.", now=NOW) == wait_s


@pytest.mark.parametrize(
    ("text", "literal"),
    [("A", '"A"'), ('"', r'"\""'), ("\\", r'"\\"'), ("a\nb", r'"a\x0ab"'), ("è", '"è"'), ("\x85", r'"\x85"')],
)
def test_a_grammar_quotes_what_would_mean_something_in_it(text: str, literal: str) -> None:
    request = Request(
        call=uuid.uuid4(), number=1, prompt="?", sampling=Sampling(), seed=1, timeout_s=1, allowed=(text, "B")
    )

    fields = further_fields(request, budget="max_tokens", constrains_by="grammar")

    assert fields == {"max_tokens": 16, "grammar": f'root ::= {literal} | "B"'}
