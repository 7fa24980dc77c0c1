"""What must not be told is taken out of what a server said, however it was quoted."""

import json
from collections.abc import Callable

import pytest

from worker.providers.hidden import without

KEY = "sk-\"quoted\\key'-7741-and-its-end"
PROMPT = "Contesto: «L'età dell'oro» \\ \"così\".\n\nDomanda: qual è l'ora?\nA) mezzogiorno\nB) mezzanotte"


def nested(text: str) -> str:
    """JSON that holds JSON."""
    return json.dumps({"raw": json.dumps({"sent": text}, ensure_ascii=False)}, ensure_ascii=False)


@pytest.mark.parametrize("secret", [KEY, PROMPT], ids=["key", "prompt"])
@pytest.mark.parametrize(
    "quote",
    [str, json.dumps, lambda text: json.dumps(text, ensure_ascii=False), repr, nested],
    ids=["as it is", "JSON", "JSON beyond ASCII", "Python", "JSON within JSON"],
)
def test_a_quoted_secret_is_hidden_whole(secret: str, quote: Callable[[str], str]) -> None:
    told = without((KEY, PROMPT), f"bad request: {quote(secret)} was sent")

    assert told.replace(quote(""), "").startswith("bad request: ")
    assert told.endswith(" was sent")
    assert told.count("[...]") == 1
    assert len(told) < 60


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(f"input_value={PROMPT[:40]!r}...", "input_value='[...]'...", id="the beginning"),
        pytest.param(f"... {PROMPT[-30:]} is too long", "... [...] is too long", id="the end"),
        pytest.param(f"no key {KEY[4:24]}*** here", "no key [...]*** here", id="the middle of a key"),
        pytest.param(f"{PROMPT[:30]} and {PROMPT[20:60]}", "[...] and [...]", id="two pieces"),
        pytest.param("HTTP 401: wrong key for mezzo", "HTTP 401: wrong key for mezzo", id="a word that is in it, too"),
        pytest.param("nothing of it", "nothing of it", id="nothing"),
    ],
)
def test_a_piece_of_a_secret_is_hidden_too(said: str, told: str) -> None:
    assert without((KEY, PROMPT), said) == told


def test_a_long_prompt_costs_no_time() -> None:
    prompt = "".join(f"line {number} of a long context. " for number in range(20_000))

    assert without((prompt,), f"the prompt begins with {prompt[:100]}") == "the prompt begins with [...]"
