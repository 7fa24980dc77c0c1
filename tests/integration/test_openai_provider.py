"""The OpenAI-compatible provider against a server that speaks the real protocol, well and badly."""

import pickle
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from contract.completion import Completion
from contract.forms import Sampling
from tests.fake_openai import FakeOpenAI, fake_openai
from tests.openai_calls import KEY, PROMPT, TIMEOUT_S, fault_in, fault_of, make_request, provider_at
from worker.providers.base import (
    Endpoint,
    ExhaustedError,
    MisconfiguredError,
    ProviderError,
    RefusedError,
    RejectedError,
    ThrottledError,
    TooLongError,
    TransientError,
)

ECHOES = ("echo-400", "echo-429")


@pytest.fixture(scope="module")
def running_server() -> Iterator[FakeOpenAI]:
    """The server that all tests of this page ask."""
    with fake_openai() as server:
        yield server


@pytest.fixture
def server(running_server: FakeOpenAI) -> FakeOpenAI:
    """The server, with nothing received yet."""
    running_server.received.clear()
    return running_server


def test_an_answer_comes_with_its_usage_and_who_gave_it(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url, "good").complete(make_request())

    assert completion == Completion(
        text="The answer is B",
        finish_reason="stop",
        tokens_in=42,
        tokens_out=3,
        tokens_cached=40,
        model_reported="fake-1-0613",
        server_version="fp-7",
    )


def test_reasoning_is_kept_apart_from_the_answer(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url, "thinks").complete(make_request())

    assert (completion.text, completion.thinking) == ("B", "A? No, B.")


def test_reasoning_under_its_newer_name_is_kept_apart_too(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url, "thinks-newly").complete(make_request())

    assert (completion.text, completion.thinking) == ("B", "A? No, B.")


def test_token_counts_that_are_not_told_are_absent(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url, "tells-no-usage").complete(make_request())

    assert (completion.tokens_in, completion.tokens_out, completion.tokens_cached) == (None, None, None)


def test_an_answer_at_its_budget_says_so(server: FakeOpenAI) -> None:
    completion = provider_at(server.base_url, "cut-off").complete(make_request())

    assert (completion.text, completion.stopped_by_length) == ("The answer", True)


def test_an_empty_answer_is_an_answer(server: FakeOpenAI) -> None:
    assert provider_at(server.base_url, "says-nothing").complete(make_request()).text == ""


def test_what_is_sent_is_the_prompt_and_the_sampling(server: FakeOpenAI) -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=8)

    provider_at(server.base_url).complete(make_request(sampling=sampling))

    (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body == {
        "model": "good",
        "messages": [{"role": "user", "content": PROMPT}],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 8,
        "seed": 77,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_sampling_that_the_study_leaves_open_is_not_sent(server: FakeOpenAI) -> None:
    provider_at(server.base_url).complete(make_request())

    assert "top_p" not in server.received[0].body


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        pytest.param("401", MisconfiguredError, "Incorrect API key", id="401"),
        pytest.param("402", MisconfiguredError, "Insufficient credits", id="402"),
        pytest.param("403", MisconfiguredError, "Country not supported", id="403"),
        pytest.param("403-flagged", RefusedError, "flagged", id="403 of a content filter"),
        pytest.param("404", MisconfiguredError, "The model does not exist", id="404"),
        pytest.param("redirect", MisconfiguredError, "redirects", id="redirect"),
        pytest.param("400", RejectedError, "Unknown parameter", id="400"),
        pytest.param("400-filtered", RefusedError, "content policy", id="400 of a content filter"),
        pytest.param("400-key", MisconfiguredError, "API key not valid", id="400 for the key, in a list"),
        pytest.param("422", RejectedError, "less than 2", id="422"),
        pytest.param("422-detail", RejectedError, "Extra inputs", id="422 with a detail"),
        pytest.param("too-long-openai", TooLongError, "maximum context length", id="too long for OpenAI"),
        pytest.param("too-long-vllm", TooLongError, "maximum context length", id="too long for vLLM"),
        pytest.param("too-long-vllm-newer", TooLongError, "maximum model length", id="too long for newer vLLM"),
        pytest.param("too-long-llama.cpp", TooLongError, "context size", id="too long for llama.cpp"),
        pytest.param("413", TooLongError, "too large", id="413"),
        pytest.param("429", ThrottledError, "Rate limit", id="429"),
        pytest.param("429-quota-and-wait", ThrottledError, "current quota", id="429 with billing and a wait"),
        pytest.param("429-in-stream", ThrottledError, "Rate limit", id="429 in mid-stream"),
        pytest.param("429-unpaid", MisconfiguredError, "current quota", id="429 for want of money"),
        pytest.param("429-billing-limit", MisconfiguredError, "Hard limit", id="429 at a limit of spending"),
        pytest.param("429-quota-and-billing", MisconfiguredError, "billing", id="429 with billing"),
        pytest.param("429-rpd", ThrottledError, "requests per day", id="429 for a rolling day's requests"),
        pytest.param("429-tpd", ExhaustedError, "tokens per day", id="429 for the day's tokens"),
        pytest.param("429-free-per-day", ExhaustedError, "per-day", id="429 for the day's free requests"),
        pytest.param("500", TransientError, "The server had an error", id="500"),
        pytest.param("500-cuda-vllm", TransientError, "CUDA out of memory", id="500 of vLLM out of memory"),
        pytest.param("500-cuda-llama.cpp", TransientError, "CUDA error", id="500 of llama.cpp out of memory"),
        pytest.param("503", TransientError, "503", id="503 with HTML"),
        pytest.param("503-loading", TransientError, "Loading model", id="503 while loading"),
        pytest.param("html", TransientError, "", id="200 with HTML"),
        pytest.param("content-filter", RefusedError, "content filter", id="content filter"),
        pytest.param("no-finish", TransientError, "ended before", id="no finish reason"),
        pytest.param("error-in-stream", TransientError, "broke off: CUDA error", id="error in mid-stream"),
        pytest.param("other-json", TransientError, "", id="JSON that is no chunk"),
        pytest.param("no-json", TransientError, "", id="a chunk that is no JSON"),
        pytest.param("resets", TransientError, "", id="reset before the answer"),
        pytest.param("resets-in-the-middle", TransientError, "", id="reset in mid-stream"),
        pytest.param("is-silent", TransientError, "time", id="slow first byte"),
    ],
)
def test_every_signal_has_its_kind_after_one_request(
    server: FakeOpenAI, model: str, kind: type[ProviderError], said: str
) -> None:
    fault = fault_of(server.base_url, model)

    assert type(fault) is kind
    assert said in str(fault)
    assert len(str(fault)) <= 500
    assert [received.path for received in server.received] == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    "model", ["401", "402", "403", "400-key", "429-unpaid", "429-billing-limit", "429-quota-and-billing"]
)
def test_a_key_that_is_not_accepted_is_told_from_a_wrong_address(server: FakeOpenAI, model: str) -> None:
    fault = fault_of(server.base_url, model)

    assert isinstance(fault, MisconfiguredError)
    assert fault.credential


@pytest.mark.parametrize("model", ["404", "redirect"])
def test_a_wrong_model_or_address_blames_no_key(server: FakeOpenAI, model: str) -> None:
    fault = fault_of(server.base_url, model)

    assert isinstance(fault, MisconfiguredError)
    assert not fault.credential


def test_a_prompt_that_is_quoted_back_does_not_decide_what_went_wrong(server: FakeOpenAI) -> None:
    prompt = "Is the context length exceeded, by content_policy or by requests per day?"

    faults = [fault_in(provider_at(server.base_url, model), make_request(prompt=prompt)) for model in ECHOES]

    assert [type(fault) for fault in faults] == [RejectedError, ThrottledError]


def test_a_server_that_does_not_run_is_a_fault_that_may_pass_and_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        fault = fault_of(f"http://127.0.0.1:{port}/v1", "good")

    assert type(fault) is TransientError
    assert str(fault).startswith(f"connection: 127.0.0.1:{port} cannot be reached: ")
    assert "refused" in str(fault)


def test_a_server_that_accepts_no_connection_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)

        fault = fault_of(f"http://127.0.0.1:{address[1]}/v1", "good")

    assert type(fault) is TransientError
    assert str(fault) == f"connection: 127.0.0.1:{address[1]} cannot be reached in time"


def test_a_host_without_an_address_is_named() -> None:
    fault = fault_of("http://no-such-host.invalid:8000/v1", "good")

    assert type(fault) is TransientError
    assert str(fault).startswith("connection: no-such-host.invalid:8000 cannot be reached: ")


@pytest.mark.parametrize(
    ("model", "wait_s"),
    [
        pytest.param("429", None, id="not named"),
        pytest.param("429-wait", 7.5, id="in seconds"),
        pytest.param("429-milliseconds", 1.25, id="in milliseconds"),
        pytest.param("429-past", 0.0, id="as a date that is over"),
        pytest.param("429-in-words", 62.5, id="in words"),
        pytest.param("429-quota-and-wait", 47.17, id="in other words"),
        pytest.param("429-for-ever", None, id="without end"),
    ],
)
def test_a_throttled_call_tells_the_wait_that_the_server_named(
    server: FakeOpenAI, model: str, wait_s: float | None
) -> None:
    fault = fault_of(server.base_url, model)

    assert isinstance(fault, ThrottledError)
    assert fault.wait_s == wait_s


def test_a_wait_that_is_named_as_a_date_ends_then(server: FakeOpenAI) -> None:
    fault = fault_of(server.base_url, "429-date")

    assert isinstance(fault, ThrottledError)
    assert fault.wait_s is not None
    assert time.time() + fault.wait_s == pytest.approx(datetime(2037, 10, 21, 7, 28, tzinfo=UTC).timestamp(), abs=5)


@pytest.mark.parametrize(
    "model", ["drips-chunks", "drips-bytes", "drips-comments", "drips-headers", "falls-silent", "is-silent"]
)
def test_a_call_ends_at_its_deadline_however_the_server_drips(server: FakeOpenAI, model: str) -> None:
    start = time.monotonic()

    fault = fault_of(server.base_url, model)

    assert type(fault) is TransientError
    assert TIMEOUT_S * 0.9 < time.monotonic() - start < TIMEOUT_S * 1.5


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_API_KEY", "not-for-this-server"),
        ("OPENAI_ADMIN_KEY", "not-for-this-server"),
        ("OPENAI_ORG_ID", "not-for-this-server"),
        ("OPENAI_PROJECT_ID", "not-for-this-server"),
        ("OPENAI_CUSTOM_HEADERS", "X-Custom: not-for-this-server"),
        ("OPENAI_CUSTOM_HEADERS", "Authorization: not-for-this-server"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/not-for-this-server"),
    ],
)
def test_credentials_of_the_environment_never_reach_the_server(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    provider_at(f"{server.base_url}/{variable}", key=None).complete(make_request())

    (received,) = server.received
    assert "not-for-this-server" not in str(received)
    assert not {"openai-organization", "openai-project"} & set(received.headers)


@pytest.mark.parametrize(
    "model",
    [
        "401",
        "400",
        "500",
        "no-finish",
        "resets-in-the-middle",
        "is-silent",
        "echo-400",
        "echo-401",
        "echo-429",
        "echo-500",
        "echo-in-stream",
    ],
)
def test_no_error_holds_the_key_or_the_prompt(server: FakeOpenAI, model: str) -> None:
    fault = fault_of(server.base_url, model)

    shown = [str(fault), repr(fault), "".join(traceback.format_exception(fault)), repr(pickle.dumps(fault))]
    assert not [text for text in shown if KEY in text or PROMPT in text or "What nobody else may read" in text]
    assert fault.__cause__ is None
    assert fault.__suppress_context__ or fault.__context__ is None


@pytest.mark.parametrize("model", ["401", "429-wait", "500", "too-long-openai"])
def test_an_error_survives_pickling(server: FakeOpenAI, model: str) -> None:
    fault = fault_of(server.base_url, model)

    again = pickle.loads(pickle.dumps(fault))  # noqa: S301 - our own bytes

    assert (type(again), str(again), vars(again)) == (type(fault), str(fault), vars(fault))


def test_an_endpoint_is_shown_without_path_or_credentials(server: FakeOpenAI) -> None:
    provider = provider_at(server.base_url)

    assert provider.endpoint == Endpoint(provider="openai", model="good", label=f"127.0.0.1:{server.server_port}")


def test_the_models_of_a_server_can_be_listed(server: FakeOpenAI) -> None:
    listed = provider_at(server.base_url).models()

    assert listed is not None
    assert "good" in listed
