"""What the OpenAI-compatible provider sends beside the prompt, and what it reads beside the text."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from contract.forms import Sampling
from contract.reading import read_letter
from tests.fake_openai import FakeOpenAI, fake_openai
from tests.openai_calls import KEY, fault_in, make_provider, make_request, provider_at
from worker.providers.base import Description, MisconfiguredError, TransientError
from worker.providers.openai_errors import BudgetNameError

VALUE = "tenant-0123456789"
LETTERS = ("A", "B")


@pytest.fixture(scope="module")
def running_server() -> Iterator[FakeOpenAI]:
    """The server that all tests of this page ask."""
    with fake_openai() as server:
        yield server


@pytest.fixture
def server(running_server: FakeOpenAI) -> FakeOpenAI:
    """The server, with nothing received and nothing told yet."""
    running_server.received.clear()
    running_server.told, running_server.props, running_server.latency_s = {}, None, 0.0
    return running_server


def test_further_headers_go_with_every_call_beside_the_key(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-tenant: not-for-this-server\nX-Other: not-for-this-server")
    provider = make_provider(server.base_url, headers={"X-Tenant": VALUE, "accept-language": "it"})

    provider.complete(make_request())
    provider.models()
    provider.describe()

    assert len(server.received) == 4
    for received in server.received:
        assert received.headers["x-tenant"] == VALUE
        assert received.headers["accept-language"] == "it"
        assert received.headers["authorization"] == f"Bearer {KEY}"
        assert "not-for-this-server" not in str(received)


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_a_header_of_authorization_wins_over_the_key(server: FakeOpenAI, name: str) -> None:
    make_provider(server.base_url, headers={name: f"Basic {VALUE}"}).complete(make_request())

    assert server.received[0].headers["authorization"] == f"Basic {VALUE}"
    assert KEY not in str(server.received[0])


@pytest.mark.parametrize("model", ["echo-400", "echo-401", "echo-429", "echo-500", "echo-in-stream"])
def test_no_error_holds_the_value_of_a_header(server: FakeOpenAI, model: str) -> None:
    headers = {"X-Tenant": VALUE, "Authorization": "Basic dXNlcjpwYXNz", "X-Try": "1"}

    said = str(fault_in(make_provider(server.base_url, model, headers=headers)))

    assert "[...]" in said
    assert not [text for text in (VALUE, "dXNlcjpwYXNz") if text in said]


@pytest.mark.parametrize(
    ("key", "headers"),
    [(f"{VALUE}\n", {}), (f"{VALUE}è", {}), (KEY, {"X-Tenant": f"{VALUE}\r\nX-Other: 1"}), (KEY, {"X-Tenant": "è"})],
)
def test_a_key_or_header_that_cannot_be_sent_is_a_matter_of_settings(
    server: FakeOpenAI, key: str, headers: dict[str, str]
) -> None:
    with pytest.raises(MisconfiguredError, match="cannot send") as caught:
        make_provider(server.base_url, key=key, headers=headers)

    assert caught.value.credential
    assert VALUE not in str(caught.value)


def test_without_logprobs_in_the_sampling_none_are_asked_for(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url).complete(make_request())

    assert not {"logprobs", "top_logprobs"} & set(server.received[0].body)
    assert completion.logprobs is None


def test_logprobs_are_asked_for_as_the_sampling_says(server: FakeOpenAI) -> None:
    provider_at(server.base_url, "logprobs").complete(make_request(sampling=Sampling(logprobs=5)))

    body = server.received[0].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)


@pytest.mark.parametrize(
    ("model", "candidates"),
    [
        pytest.param("logprobs", {"B": -0.25, "A": -1.5}, id="of the first of two tokens"),
        pytest.param(
            "logprobs-without-the-chosen", {"A": -0.5, "B": -1.0, " C": -7.0}, id="with the chosen one, best first"
        ),
        pytest.param("logprobs-of-nothing", {"\n": -2.5}, id="that are finite numbers"),
        pytest.param("thinks-newly", {"B": -0.25, "A": -1.5}, id="of the text, not of the reasoning before it"),
        pytest.param("thinks-and-says-at-once", None, id="none where reasoning shares the chunk"),
        pytest.param("logprobs-of-the-end", None, id="none where there is no text"),
        pytest.param("logprobs-of-another-kind", None, id="none where they are of another kind"),
        pytest.param("good", None, id="none where the server tells none"),
    ],
)
def test_the_candidates_for_the_first_token_are_kept(
    server: FakeOpenAI, model: str, candidates: dict[str, float] | None
) -> None:
    completion = provider_at(server.base_url, model).complete(make_request(sampling=Sampling(logprobs=5)))

    assert completion.logprobs == candidates
    assert list(completion.logprobs or ()) == list(candidates or ())


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["A", "B"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("way", "fields"),
    [
        ("structured_outputs", {"structured_outputs": {"choice": ["A", "B"]}}),
        ("guided_choice", {"guided_choice": ["A", "B"]}),
        ("grammar", {"grammar": 'root ::= "A" | "B"'}),
        (
            "json_schema",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
                }
            },
        ),
    ],
)
def test_a_limit_on_the_answer_is_sent_as_the_server_takes_it(
    server: FakeOpenAI, way: str, fields: dict[str, Any]
) -> None:
    provider = make_provider(server.base_url, constrains_by=way)

    provider.complete(make_request())
    provider.complete(make_request(allowed=LETTERS))

    free, limited = (received.body for received in server.received)
    assert limited == free | fields
    assert not set(free) & set(fields)


def test_a_limit_on_the_answer_that_the_server_has_no_known_word_for_is_not_dropped(server: FakeOpenAI) -> None:
    fault = fault_in(provider_at(server.base_url), make_request(allowed=LETTERS))

    assert isinstance(fault, MisconfiguredError)
    assert "constrains_by" in str(fault)
    assert not fault.credential
    assert not server.received


@pytest.mark.parametrize("said", ['{"answer": "A"}', '"A"', '{\n  "answer": "A"\n   ', '{"answer":"A"}'])
def test_an_answer_by_schema_is_read_as_its_letter(server: FakeOpenAI, said: str) -> None:
    server.answer = lambda _prompt: said

    completion = make_provider(server.base_url, "says", constrains_by="json_schema").complete(
        make_request(allowed=LETTERS)
    )

    assert read_letter(completion.text, letters=LETTERS, cut_off=True).letter == "A"


def test_a_server_that_knows_the_budget_by_its_newer_name_is_asked_by_that_one_from_then_on(
    server: FakeOpenAI,
) -> None:
    provider = make_provider(server.base_url, "knows-the-newer-name")

    fault = fault_in(provider)
    texts = [provider.complete(make_request()).text for _ in range(2)]

    assert isinstance(fault, TransientError)
    assert "max_completion_tokens" in str(fault)
    assert texts == ["B", "B"]
    names = [{"max_tokens", "max_completion_tokens"} & set(received.body) for received in server.received]
    assert names == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]
    assert server.received[-1].body["max_completion_tokens"] == 8


def test_threads_that_learn_the_newer_name_at_once_all_get_their_answer(server: FakeOpenAI) -> None:
    server.latency_s = 0.2
    provider = make_provider(server.base_url, "knows-the-newer-name")
    texts: list[str] = []

    def ask() -> None:
        try:
            provider.complete(make_request(timeout_s=10))
        except BudgetNameError:
            texts.append(provider.complete(make_request(timeout_s=10)).text)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == ["B"] * 8


def test_another_model_of_the_same_server_goes_on_under_the_older_name(server: FakeOpenAI) -> None:
    fault_in(make_provider(server.base_url, "knows-the-newer-name"))

    make_provider(server.base_url, "good").complete(make_request())

    assert server.received[-1].body["max_tokens"] == 8


LLAMA_CPP = {
    "default_generation_settings": {"n_ctx": 2048},
    "total_slots": 4,
    "model_ftype": "Q4_1",
    "chat_template": "{{ messages }}",
    "build_info": "b7000-abc",
}
TEMPLATE_DIGEST = "f24189f08c85a1eb19a737306c3a13e85462ee33d964f28108d64a2485fa2171"


def test_llama_cpp_tells_context_slots_template_and_version(server: FakeOpenAI) -> None:
    server.told = {"meta": {"n_ctx_train": 8192, "n_ctx": 512, "ftype": "other"}}
    server.props = LLAMA_CPP

    description = provider_at(server.base_url).describe()

    assert description == Description(
        quantisation="Q4_1",
        context_length=2048,
        server_version="b7000-abc",
        template_digest=TEMPLATE_DIGEST,
        slots=4,
    )
    assert [received.path for received in server.received] == ["/v1/models", "/props"]


@pytest.mark.parametrize(
    ("told", "description"),
    [
        pytest.param({"max_model_len": 4096}, Description(context_length=4096), id="vLLM"),
        pytest.param(
            {"meta": {"n_ctx_train": 8192, "n_ctx": 512, "ftype": "Q4_1"}},
            Description(context_length=512, quantisation="Q4_1"),
            id="llama.cpp",
        ),
        pytest.param({"meta": {"n_ctx_train": 8192}}, Description(), id="only what it was trained with"),
        pytest.param({}, Description(), id="nothing"),
        pytest.param({"max_model_len": "4k", "meta": "none"}, Description(), id="what is of another kind"),
        pytest.param({"id": "another", "max_model_len": 4096}, Description(), id="another model only"),
    ],
)
@pytest.mark.parametrize("props", [None, 403, 501, "<html>Log in</html>", [1], {"total_slots": True, "n_ctx": 1}])
def test_a_server_without_props_is_described_by_its_list(
    server: FakeOpenAI, told: dict[str, Any], description: Description, props: object
) -> None:
    server.told, server.props = told, props

    assert provider_at(server.base_url).describe() == description


def test_a_server_without_a_list_is_not_described(server: FakeOpenAI) -> None:
    assert provider_at(f"{server.base_url}/models/nowhere").describe() == Description()


def test_a_server_that_is_only_starting_is_asked_again_for_its_description(server: FakeOpenAI) -> None:
    server.props = 503

    with pytest.raises(TransientError, match="Not now"):
        provider_at(server.base_url).describe()


def test_props_lie_beside_the_version_of_the_protocol(server: FakeOpenAI) -> None:
    for base_url in (f"{server.base_url}/", f"http://127.0.0.1:{server.server_port}/llm/v1"):
        provider_at(base_url).describe()

    pages = [received.path for received in server.received if received.path.endswith("/props")]
    assert pages == ["/props", "/llm/props"]


def test_a_description_is_given_up_when_both_pages_together_take_too_long(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.providers.openai._LIST_TIMEOUT_S", 1.5)
    server.latency_s = 1.0  # the list is in time, the other page is not

    with pytest.raises(TransientError, match="within the time"):
        provider_at(server.base_url).describe()

    assert [received.path for received in server.received] == ["/v1/models", "/props"]
