"""The OpenAI-compatible provider at a real llama.cpp with a small model."""

import re
from collections.abc import Iterator

import pytest

from contract.forms import Sampling
from contract.reading import read_letter
from ops.local.model import MODEL, launch_model
from tests.openai_calls import fault_in, make_provider, make_request
from worker.providers.base import Request, TooLongError

LETTERS = ("A", "B")
QUESTION = "Which is the capital of Italy?\nA) Paris\nB) Rome\nAnswer with one letter."
CONTEXT = 256
SLOTS = 2

pytestmark = pytest.mark.xdist_group("llama.cpp")


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    with launch_model(tmp_path_factory.mktemp("llm"), slots=SLOTS, context=CONTEXT).wait_ready() as server:
        yield server.url


def ask(*, seed: int = 1, allowed: tuple[str, ...] | None = None, prompt: str = QUESTION, **sampling: float) -> Request:
    """One call with time enough for a busy machine."""
    chosen = Sampling.model_validate({"max_tokens": 32, "temperature": 1.0} | sampling)
    return make_request(60, chosen, prompt=prompt, seed=seed, allowed=allowed)


def test_an_answer_limited_by_a_grammar_is_one_of_the_letters(base_url: str) -> None:
    provider = make_provider(base_url, MODEL, constrains_by="grammar")

    said = {provider.complete(ask(seed=seed, allowed=LETTERS, temperature=2.0)).text for seed in range(8)}

    assert said == set(LETTERS)


def test_a_grammar_holds_texts_that_need_escaping(base_url: str) -> None:
    odd = ('say "no" \\ [x]', "a\nb", "è\t≥", "\x01\x7f")
    provider = make_provider(base_url, MODEL, constrains_by="grammar")

    for text in odd:
        assert provider.complete(ask(allowed=(text,))).text == text


def test_an_answer_limited_by_a_schema_is_read_as_one_of_the_letters(base_url: str) -> None:
    provider = make_provider(base_url, MODEL, constrains_by="json_schema")

    text = provider.complete(ask(allowed=LETTERS, max_tokens=16)).text

    assert re.fullmatch(r'\{\s*"answer"\s*:\s*"[AB]"\s*\}?\s*', text)
    assert read_letter(text, letters=LETTERS).letter in LETTERS


def test_the_letters_are_among_the_candidates_for_the_first_token(base_url: str) -> None:
    completion = make_provider(base_url, MODEL).complete(ask(temperature=0.0, logprobs=10, max_tokens=4))

    assert completion.logprobs is not None
    assert set(LETTERS) <= set(completion.logprobs)
    assert completion.text.startswith(next(iter(completion.logprobs)))
    assert list(completion.logprobs.values()) == sorted(completion.logprobs.values(), reverse=True)
    assert max(completion.logprobs.values()) < 0


def test_the_seed_of_a_call_reaches_the_model(base_url: str) -> None:
    provider = make_provider(base_url, MODEL)
    prompt = "Tell me about the sea."
    provider.complete(ask(prompt=prompt, max_tokens=1))  # from here on the server has this prompt at hand

    texts = [
        provider.complete(ask(prompt=prompt, seed=seed, temperature=1.5, max_tokens=6)).text for seed in (1, 1, 2, 3)
    ]

    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_a_prompt_beyond_the_context_is_too_long(base_url: str) -> None:
    fault = fault_in(make_provider(base_url, MODEL), ask(prompt="hello " * 2 * CONTEXT))

    assert type(fault) is TooLongError


def test_the_server_describes_itself_as_it_answers(base_url: str) -> None:
    provider = make_provider(base_url, MODEL)
    description = provider.describe()

    assert (description.context_length, description.slots, description.quantisation) == (CONTEXT, SLOTS, "Q4_1")
    assert description.server_version == provider.complete(ask(max_tokens=1)).server_version
    assert re.fullmatch("[0-9a-f]{64}", description.template_digest or "")
