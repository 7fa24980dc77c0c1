"""The Ollama provider against a server that speaks the real protocol, well and badly."""

import pickle
import socket
import time
import traceback
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from contract.completion import Completion
from contract.forms import Sampling
from contract.models import OllamaModel, OllamaOptions
from tests.fake_ollama import FakeOllama, fake_ollama
from worker.providers.base import (
    Endpoint,
    HostError,
    MisconfiguredError,
    ProviderError,
    RejectedError,
    Request,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.ollama import OllamaProvider
from worker.providers.ollama_host import OllamaHost

KEY = "not-for-this-server"
PROMPT = "What nobody else may read: perché?"
TIMEOUT_S = 1.0


@pytest.fixture(scope="module")
def running_server() -> Iterator[FakeOllama]:
    """The server that all tests of this page ask."""
    with fake_ollama() as server:
        yield server


@pytest.fixture
def server(running_server: FakeOllama) -> FakeOllama:
    """The server, with nothing received yet."""
    running_server.received.clear()
    running_server.answer = lambda _: "The answer is B"
    return running_server


@pytest.fixture(scope="module")
def host(running_server: FakeOllama) -> Iterator[OllamaHost]:
    """The host as one process knows it."""
    host = OllamaHost(running_server.base_url)
    yield host
    host.close()


def provider_of(host: OllamaHost, model: str = "good", **options: Any) -> OllamaProvider:  # noqa: ANN401
    """A provider of `model` on the host."""
    spec = OllamaModel(provider="ollama", name="m", model=model, options=OllamaOptions(**options))
    return OllamaProvider(spec, host)


def make_request(
    timeout_s: float = TIMEOUT_S, sampling: Sampling | None = None, allowed: tuple[str, ...] | None = None
) -> Request:
    """One call."""
    return Request(
        call=uuid.uuid4(),
        number=1,
        prompt=PROMPT,
        sampling=sampling or Sampling(max_tokens=8),
        seed=77,
        timeout_s=timeout_s,
        allowed=allowed,
    )


def fault_of(host: OllamaHost, model: str) -> ProviderError:
    """The error that a call of `model` ends with."""
    with pytest.raises(ProviderError) as caught:
        provider_of(host, model).complete(make_request())
    return caught.value


@pytest.mark.usefixtures("server")
def test_an_answer_comes_with_its_token_counts_and_who_gave_it(host: OllamaHost) -> None:
    completion = provider_of(host, "good").complete(make_request())

    assert completion == Completion(
        text="The answer is B", finish_reason="stop", tokens_in=42, tokens_out=5, model_reported="good"
    )


@pytest.mark.usefixtures("server")
def test_thoughts_are_kept_apart_from_the_answer(host: OllamaHost) -> None:
    completion = provider_of(host, "thinks").complete(make_request())

    assert (completion.text, completion.thinking) == ("The answer is B", "A? No, B.")


@pytest.mark.usefixtures("server")
def test_an_answer_at_its_budget_says_so(host: OllamaHost) -> None:
    assert provider_of(host, "cut-off").complete(make_request()).stopped_by_length


def test_an_empty_answer_is_an_answer(server: FakeOllama, host: OllamaHost) -> None:
    server.answer = lambda _: ""

    completion = provider_of(host).complete(make_request())

    assert (completion.text, completion.finish_reason) == ("", "stop")


def test_an_answer_may_hold_every_character_that_ends_a_line_elsewhere(server: FakeOllama, host: OllamaHost) -> None:
    text = "A\x85B\u2028C\u2029D\x0bE\x1cF\r\nG\n"
    server.answer = lambda _: text

    assert provider_of(host).complete(make_request()).text == text


@pytest.mark.usefixtures("server")
def test_a_limited_answer_is_the_text_that_the_server_gave(host: OllamaHost) -> None:
    allowed = ("A", "B")

    assert provider_of(host, "constrained").complete(make_request(allowed=allowed)).text == '"A"'
    assert provider_of(host, "ignores-format").complete(make_request(allowed=allowed)).text == "The answer is B"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("model", ["good", "thinks"])
def test_the_candidates_for_the_first_token_of_the_text_are_kept_best_first(host: OllamaHost, model: str) -> None:
    sampling = Sampling(max_tokens=8, logprobs=3)

    completion = provider_of(host, model).complete(make_request(sampling=sampling))

    assert completion.logprobs is not None
    assert list(completion.logprobs.items()) == [("A", -0.1), ("B", -2.5), (" A", -4.0)]


def test_a_text_without_tokens_has_no_candidates(server: FakeOllama, host: OllamaHost) -> None:
    server.answer = lambda _: ""

    completion = provider_of(host, "thinks").complete(make_request(sampling=Sampling(logprobs=3)))

    assert completion.logprobs is None


def test_what_is_sent_is_the_prompt_the_sampling_and_how_the_model_is_run(server: FakeOllama, host: OllamaHost) -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=8, logprobs=5)

    provider_of(host, context=2048, think=False).complete(make_request(sampling=sampling, allowed=("A", "B")))

    (received,) = server.received
    assert received.path == "/api/chat"
    assert received.body == {
        "model": "good",
        "messages": [{"role": "user", "content": PROMPT}],
        "stream": True,
        "options": {"num_ctx": 2048, "num_predict": 8, "seed": 77, "temperature": 0.7, "top_p": 0.9},
        "truncate": False,
        "shift": False,
        "keep_alive": "30m",
        "think": False,
        "format": {"type": "string", "enum": ["A", "B"]},
        "logprobs": True,
        "top_logprobs": 5,
    }


def test_what_the_study_leaves_open_is_not_sent(server: FakeOllama, host: OllamaHost) -> None:
    provider_of(host).complete(make_request())

    (received,) = server.received
    assert received.body == {
        "model": "good",
        "messages": [{"role": "user", "content": PROMPT}],
        "stream": True,
        "options": {"num_ctx": 4096, "num_predict": 8, "seed": 77, "temperature": 0.0},
        "truncate": False,
        "shift": False,
        "keep_alive": "30m",
    }


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        pytest.param("missing", MisconfiguredError, "`ollama pull missing`", id="404 without the model"),
        pytest.param("pull-first", MisconfiguredError, "`ollama pull pull-first`", id="404 that says to pull"),
        pytest.param("no-page", MisconfiguredError, "is an Ollama server there?", id="404 of another server"),
        pytest.param("401", MisconfiguredError, "unauthorized", id="401"),
        pytest.param("403", MisconfiguredError, "unavailable", id="403"),
        pytest.param("redirect", MisconfiguredError, "redirects", id="redirect"),
        pytest.param("no-thinking", MisconfiguredError, "does not support thinking", id="a model that cannot think"),
        pytest.param("no-chat", MisconfiguredError, "does not support chat", id="a model that cannot chat"),
        pytest.param("top-logprobs", MisconfiguredError, "top_logprobs", id="too many candidates"),
        pytest.param("too-long", TooLongError, "longer than the context", id="too long for Ollama"),
        pytest.param("too-long-object", TooLongError, "exceeds the available", id="too long for llama.cpp"),
        pytest.param("too-long-type", TooLongError, "exceed_context_size", id="too long by its type"),
        pytest.param("other-400", RejectedError, "invalid options", id="400"),
        pytest.param("413", RejectedError, "413", id="413 with HTML"),
        pytest.param("429", ThrottledError, "too many requests", id="429"),
        pytest.param("408", TransientError, "Request Time-out", id="408"),
        pytest.param("499", TransientError, "request canceled", id="499"),
        pytest.param("busy", TransientError, "server busy", id="503"),
        pytest.param("other-500", TransientError, "unexpected EOF", id="500"),
        pytest.param("html-502", TransientError, "Bad Gateway", id="502 with HTML"),
        pytest.param("runner-crash", HostError, "unexpectedly stopped", id="the runner stopped"),
        pytest.param("server-crash", HostError, "no longer running", id="the runner is gone"),
        pytest.param("cuda-error", HostError, "illegal memory access", id="CUDA error"),
        pytest.param("assert", HostError, "GGML_ASSERT", id="a failed assertion"),
        pytest.param("crash-in-stream", HostError, "launch failure", id="CUDA error in mid-stream"),
        pytest.param("out-of-memory", HostError, "out of memory", id="out of memory"),
        pytest.param("no-cuda-memory", HostError, "cudaMalloc", id="out of memory on the GPU"),
        pytest.param("no-buffer", HostError, "failed to allocate", id="no buffer"),
        pytest.param("not-enough-memory", HostError, "not enough memory", id="not enough memory"),
        pytest.param("no-memory", HostError, "more system memory", id="a model that is too large"),
        pytest.param("error-in-stream", TransientError, "error was encountered", id="error in mid-stream"),
        pytest.param("no-done", TransientError, "before the answer was done", id="a stream that is never done"),
        pytest.param("no-line", TransientError, "before the answer was done", id="an empty stream"),
        pytest.param("html", TransientError, "not an answer of this protocol", id="200 with HTML"),
        pytest.param("other-json", TransientError, "not an answer of this protocol", id="JSON that is no answer"),
        pytest.param("a-list", TransientError, "not an answer of this protocol", id="JSON that is no object"),
        pytest.param("no-json", TransientError, "not an answer of this protocol", id="a line that is no JSON"),
        pytest.param("reset", TransientError, "connection", id="reset before the answer"),
        pytest.param("reset-in-the-middle", TransientError, "connection", id="reset in mid-stream"),
        pytest.param("silent", TransientError, "within the time", id="no first byte"),
    ],
)
def test_every_signal_has_its_kind_after_one_request(
    server: FakeOllama, host: OllamaHost, model: str, kind: type[ProviderError], said: str
) -> None:
    fault = fault_of(host, model)

    assert type(fault) is kind
    assert said in str(fault)
    assert len(str(fault)) <= 500
    assert host.label in str(fault)
    assert [received.path for received in server.received] == ["/api/chat"]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("model", "lasting"),
    [
        ("out-of-memory", True),
        ("no-cuda-memory", True),
        ("no-buffer", True),
        ("not-enough-memory", True),
        ("no-memory", True),
        ("runner-crash", False),
        ("server-crash", False),
        ("cuda-error", False),
    ],
)
def test_only_want_of_memory_makes_a_fault_of_the_host_lasting(host: OllamaHost, model: str, lasting: bool) -> None:
    fault = fault_of(host, model)

    assert isinstance(fault, HostError)
    assert fault.lasting is lasting


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("model", "credential"), [("401", True), ("403", True), ("missing", False), ("redirect", False)]
)
def test_a_refused_credential_is_told_apart_from_other_settings(host: OllamaHost, model: str, credential: bool) -> None:
    fault = fault_of(host, model)

    assert isinstance(fault, MisconfiguredError)
    assert fault.credential is credential


def test_a_host_that_is_not_there_is_a_fault_that_may_pass() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = OllamaHost(f"http://127.0.0.1:{unused.getsockname()[1]}")

    assert type(fault_of(host, "good")) is TransientError


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "model",
    [
        "drips-lines",
        "drips-bytes",
        "drips-blank-lines",
        "drips-headers",
        "drips-an-error",
        "falls-silent",
        "silent",
    ],
)
def test_a_call_ends_at_its_deadline_however_the_server_drips(host: OllamaHost, model: str) -> None:
    start = time.monotonic()

    fault = fault_of(host, model)

    assert type(fault) is TransientError
    assert TIMEOUT_S * 0.9 < time.monotonic() - start < TIMEOUT_S * 1.5


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OLLAMA_API_KEY", KEY),
        ("OLLAMA_HOST", f"http://127.0.0.1:1/{KEY}"),
        ("HTTP_PROXY", f"http://{KEY}@127.0.0.1:1"),
        ("http_proxy", f"http://{KEY}@127.0.0.1:1"),
        ("ALL_PROXY", f"http://{KEY}@127.0.0.1:1"),
    ],
)
def test_nothing_of_the_environment_reaches_the_server(
    server: FakeOllama, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    host = OllamaHost(server.base_url)

    provider_of(host).complete(make_request())
    host.tags()

    host.close()
    assert [received.path for received in server.received] == ["/api/chat", "/api/tags"]
    assert KEY not in str(server.received)
    assert not [received for received in server.received if "authorization" in received.headers]


@pytest.mark.parametrize(
    "model",
    [
        "missing",
        "other-400",
        "other-500",
        "too-long",
        "no-done",
        "no-json",
        "other-json",
        "reset-in-the-middle",
        "silent",
        "echo-400",
        "echo-401",
        "echo-404",
        "echo-429",
        "echo-500",
        "echo-in-stream",
    ],
)
def test_no_error_holds_a_key_or_the_prompt(server: FakeOllama, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    host = OllamaHost(server.base_url)

    fault = fault_of(host, model)

    host.close()
    shown = [str(fault), repr(fault), "".join(traceback.format_exception(fault)), repr(pickle.dumps(fault))]
    assert not [text for text in shown if KEY in text or PROMPT in text or "What nobody else may read" in text]
    assert fault.__cause__ is None
    assert fault.__suppress_context__ or fault.__context__ is None


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("model", ["401", "out-of-memory", "429", "missing", "too-long"])
def test_an_error_survives_pickling(host: OllamaHost, model: str) -> None:
    fault = fault_of(host, model)

    again = pickle.loads(pickle.dumps(fault))  # noqa: S301 - our own bytes

    assert (type(again), str(again), vars(again)) == (type(fault), str(fault), vars(fault))


def test_an_endpoint_is_the_model_and_the_host(server: FakeOllama, host: OllamaHost) -> None:
    provider = provider_of(host, "good:latest")

    assert provider.endpoint == Endpoint(
        provider="ollama", model="good:latest", label=f"{socket.gethostname()}:{server.server_port}"
    )


@pytest.mark.usefixtures("server")
def test_the_models_of_a_host_can_be_listed_and_described(host: OllamaHost) -> None:
    provider = provider_of(host)

    listed = provider.models()

    assert listed is not None
    assert "good:latest" in listed
    assert provider.describe() == host.describe("good")
