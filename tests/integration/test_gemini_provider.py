"""The Gemini provider against a server that speaks the real API, well and badly."""

import pickle
import socket
import time
import traceback
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from contract.completion import Completion
from contract.forms import Sampling
from contract.models import GeminiModel, GeminiOptions
from tests.fake_gemini import BEHAVIOURS, FakeGemini, fake_gemini
from worker.providers.base import (
    Description,
    Endpoint,
    ExhaustedError,
    MisconfiguredError,
    ProviderError,
    RefusedError,
    RejectedError,
    Request,
    ThrottledError,
    TooLongError,
    TransientError,
)
from worker.providers.gemini import GeminiProvider

KEY = "AIzaTest-0123456789abcdef"
PROMPT = "What nobody else may read: perché?"
TIMEOUT_S = 1.0
FLASH = "gemini-2.5-flash-good"


@pytest.fixture(scope="module")
def running_server() -> Iterator[FakeGemini]:
    """The server that all tests of this page ask."""
    with fake_gemini() as server:
        yield server


@pytest.fixture
def server(running_server: FakeGemini) -> FakeGemini:
    """The server, with nothing received yet."""
    running_server.received.clear()
    running_server.latency_s = 0.0
    return running_server


@cache
def provider_at(base_url: str, model: str = "good", options: GeminiOptions | None = None) -> GeminiProvider:
    """A provider of `model` at an address: one a process, as in a worker."""
    spec = GeminiModel(provider="gemini", name="m", model=model, base_url=base_url, options=options or GeminiOptions())
    return GeminiProvider(spec, api_key=KEY)


def make_request(
    timeout_s: float = TIMEOUT_S, sampling: Sampling | None = None, allowed: tuple[str, ...] | None = None
) -> Request:
    """One call."""
    sampling = sampling or Sampling(max_tokens=8)
    return Request(
        call=uuid.uuid4(), number=1, prompt=PROMPT, sampling=sampling, seed=77, timeout_s=timeout_s, allowed=allowed
    )


def completion_of(server: FakeGemini, model: str) -> Completion:
    """What a call of `model` ends with."""
    return provider_at(server.base_url, model).complete(make_request(timeout_s=10.0))


def fault_of(base_url: str, model: str, timeout_s: float = 10.0) -> ProviderError:
    """The error that a call of `model` ends with."""
    with pytest.raises(ProviderError) as caught:
        provider_at(base_url, model).complete(make_request(timeout_s))
    return caught.value


def test_an_answer_comes_with_its_usage_and_who_gave_it(server: FakeGemini) -> None:
    assert completion_of(server, "good") == Completion(
        text="A", finish_reason="stop", tokens_in=42, tokens_out=1, model_reported="good"
    )


def test_thoughts_are_kept_apart_from_the_answer_and_counted_with_it(server: FakeGemini) -> None:
    completion = completion_of(server, "thinks")

    assert (completion.text, completion.thinking) == ("B)", "A? No, B.")
    assert (completion.tokens_in, completion.tokens_out, completion.tokens_cached) == (42, 18, 40)


@pytest.mark.parametrize(
    ("model", "reported"), [("gemini-3-flash-pro", "gemini-3-flash-pro-001"), ("rerouted", "gemini-other-flash")]
)
def test_the_model_that_really_answered_is_reported(server: FakeGemini, model: str, reported: str) -> None:
    assert completion_of(server, model).model_reported == reported


def test_token_counts_that_are_not_told_are_absent(server: FakeGemini) -> None:
    completion = completion_of(server, "tells-no-usage")

    assert (completion.text, completion.tokens_in, completion.tokens_out, completion.tokens_cached) == (
        "A",
        None,
        None,
        None,
    )


def test_the_first_token_comes_with_its_candidates_best_first(server: FakeGemini) -> None:
    logprobs = completion_of(server, "logprobs").logprobs

    assert logprobs is not None
    assert list(logprobs.items()) == [("A", -0.25), ("B", -1.5)]


def test_the_text_of_a_constrained_answer_stays_as_it_is(server: FakeGemini) -> None:
    provider = provider_at(server.base_url, "spaced")

    assert provider.complete(make_request(allowed=("A", "B"))).text == " A\n"


@pytest.mark.parametrize(
    ("model", "text", "finish_reason"),
    [
        ("cut-off", "The answer", "length"),
        ("max-tokens-empty", "", "length"),
        ("no-candidates", "", None),
        ("recitation", "", "recitation"),
        ("recitation-partly", "It was the best", "recitation"),
        ("other", "", "other"),
        ("language", "", "language"),
        ("malformed", "", "malformed_response"),
        ("continues", "A", "continuation"),
        pytest.param("new-reason", "A", "brand_new", marks=pytest.mark.filterwarnings("ignore:BRAND_NEW")),
        pytest.param("new-reason-empty", "", "brand_new", marks=pytest.mark.filterwarnings("ignore:BRAND_NEW")),
    ],
)
def test_an_answer_that_ended_otherwise_is_a_completion_after_one_request(
    server: FakeGemini, model: str, text: str, finish_reason: str | None
) -> None:
    completion = completion_of(server, model)

    assert (completion.text, completion.finish_reason) == (text, finish_reason)
    assert len(server.received) == 1


def test_an_answer_that_thinking_ate_tells_its_tokens(server: FakeGemini) -> None:
    completion = completion_of(server, "max-tokens-empty")

    assert (completion.stopped_by_length, completion.tokens_in, completion.tokens_out) == (True, 5, 15)


def test_what_is_sent_is_the_prompt_and_the_sampling(server: FakeGemini) -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=8, logprobs=5)
    provider = provider_at(server.base_url, FLASH, GeminiOptions(safety="none"))

    provider.complete(make_request(sampling=sampling, allowed=("A", "B")))

    (received,) = server.received
    assert received.path == f"/v1/models/{FLASH}:generateContent"
    assert received.headers["x-goog-api-key"] == KEY
    assert received.body == {
        "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
        "generationConfig": {
            "temperature": 0.7,
            "topP": 0.9,
            "seed": 77,
            "maxOutputTokens": 8,
            "responseLogprobs": True,
            "logprobs": 5,
            "responseMimeType": "text/x.enum",
            "responseSchema": {"type": "STRING", "enum": ["A", "B"]},
            "thinkingConfig": {"thinking_budget": 0},
        },
        "safetySettings": [
            {"category": f"HARM_CATEGORY_{harm}", "threshold": "BLOCK_NONE"}
            for harm in ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
        ],
    }


def test_what_the_study_leaves_open_is_not_sent(server: FakeGemini) -> None:
    provider_at(server.base_url, FLASH).complete(make_request())

    assert server.received[0].body == {
        "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
        "generationConfig": {
            "temperature": 0.0,
            "seed": 77,
            "maxOutputTokens": 8,
            "thinkingConfig": {"thinking_budget": 0},
        },
    }


@pytest.mark.parametrize(
    ("model", "thinking", "sent", "most"),
    [
        ("gemini-2.5-flash-good", "off", {"thinking_budget": 0}, 8),
        ("gemini-2.5-flash-good", "low", {"thinking_budget": 1024}, 308),
        ("gemini-2.5-pro-good", "off", {"thinking_budget": 128}, 308),
        ("gemini-3-flash-good", "off", {"thinking_level": "MINIMAL"}, 308),
    ],
)
def test_a_model_that_may_think_gets_room_on_top_of_the_answers_own(
    server: FakeGemini, model: str, thinking: str, sent: dict[str, object], most: int
) -> None:
    options = GeminiOptions.model_validate({"thinking": thinking, "room": 300})

    provider_at(server.base_url, model, options).complete(make_request())

    config = server.received[0].body["generationConfig"]
    assert (config["thinkingConfig"], config["maxOutputTokens"]) == (sent, most)


def test_nothing_is_sent_that_the_api_does_not_need(server: FakeGemini) -> None:
    provider_at(server.base_url).complete(make_request())

    (received,) = server.received
    assert set(received.headers) == {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-goog-api-key",
    }
    assert KEY not in received.path + str(received.body)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_an_address_may_name_the_version_of_the_api(server: FakeGemini, version: str) -> None:
    provider_at(f"{server.base_url}/{version}").complete(make_request())

    assert server.received[0].path == f"/{version}/models/good:generateContent"


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        pytest.param("429-minute", ThrottledError, "current quota", id="429 of the minute"),
        pytest.param("429-day", ExhaustedError, "current quota", id="429 of the day"),
        pytest.param("429-both", ExhaustedError, "current quota", id="429 of minute and day"),
        pytest.param("429-zero", MisconfiguredError, "current quota", id="429 of a quota of zero"),
        pytest.param("429-zero-said", MisconfiguredError, "limit: 0", id="429 that says limit 0"),
        pytest.param("429-limit-said", ThrottledError, "limit: 0.5", id="429 that says another limit"),
        pytest.param("429-bare", ThrottledError, "exhausted", id="429 without details"),
        pytest.param("429-help", ThrottledError, "current quota", id="429 with nothing but help"),
        pytest.param("429-html", ThrottledError, "Too many", id="429 with HTML"),
        pytest.param("400", RejectedError, "Thinking level", id="400"),
        pytest.param("413", RejectedError, "too large", id="413"),
        pytest.param("key-invalid", MisconfiguredError, "API key", id="400 of an invalid key"),
        pytest.param("key-invalid-said", MisconfiguredError, "API key", id="400 that only says so"),
        pytest.param("key-expired", MisconfiguredError, "Renew", id="400 of an expired key"),
        pytest.param("location", MisconfiguredError, "location", id="400 of a place"),
        pytest.param("too-long", TooLongError, "1100000", id="too long"),
        pytest.param("401", MisconfiguredError, "credentials", id="401"),
        pytest.param("403", MisconfiguredError, "leaked", id="403"),
        pytest.param("gemini-1.0-404", MisconfiguredError, "gemini-1.0-404 here, it is retired", id="404"),
        pytest.param("redirect", MisconfiguredError, "redirects", id="redirect"),
        pytest.param("408", TransientError, "too long", id="408"),
        pytest.param("500", TransientError, "internal error", id="500"),
        pytest.param("500-list", TransientError, "in a list", id="500 in a list"),
        pytest.param("500-odd", TransientError, "HTTP 500", id="500 with odd JSON"),
        pytest.param("502-html", TransientError, "Bad Gateway", id="502 with HTML"),
        pytest.param("503", TransientError, "overloaded", id="503"),
        pytest.param("504", TransientError, "Deadline", id="504"),
        pytest.param("202", TransientError, "HTTP 202", id="202"),
        pytest.param("html", TransientError, "protocol", id="200 with HTML"),
        pytest.param("empty", TransientError, "protocol", id="200 with nothing"),
        pytest.param("other-json", TransientError, "protocol", id="200 with other JSON"),
        pytest.param("no-object", TransientError, "protocol", id="200 with a list"),
        pytest.param("wrong-types", TransientError, "protocol", id="200 with wrong types"),
        pytest.param("reset", TransientError, "connection", id="reset before the answer"),
        pytest.param("resets-in-the-middle", TransientError, "connection", id="reset in the answer"),
        pytest.param("ends-early", TransientError, "connection", id="end in the answer"),
        pytest.param("blocked-prompt", RefusedError, "prompt was blocked: PROHIBITED", id="blocked prompt"),
        pytest.param("safety", RefusedError, "SAFETY", id="blocked answer"),
        pytest.param("safety-partly", RefusedError, "SAFETY", id="answer blocked half way"),
        pytest.param("prohibited", RefusedError, "PROHIBITED_CONTENT", id="prohibited answer"),
        pytest.param("blocklist", RefusedError, "BLOCKLIST", id="blocked words"),
        pytest.param("spii", RefusedError, "SPII", id="blocked personal data"),
        pytest.param("image-safety", RefusedError, "IMAGE_SAFETY", id="blocked image"),
    ],
)
def test_every_signal_has_its_kind_after_one_request(
    server: FakeGemini, model: str, kind: type[ProviderError], said: str
) -> None:
    fault = fault_of(server.base_url, model)

    assert type(fault) is kind
    assert said in str(fault)
    assert len(str(fault)) <= 500
    assert [received.path for received in server.received] == [f"/v1/models/{model}:generateContent"]


def test_a_server_that_is_not_there_is_a_fault_that_may_pass() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    assert type(fault_of(f"http://127.0.0.1:{port}", "good")) is TransientError


@pytest.mark.parametrize(
    ("model", "credential"),
    [
        ("429-zero", True),
        ("429-zero-said", True),
        ("key-invalid", True),
        ("key-expired", True),
        ("location", True),
        ("401", True),
        ("403", True),
        ("404", False),
        ("redirect", False),
    ],
)
def test_a_fault_of_the_key_is_told_from_one_of_the_model(server: FakeGemini, model: str, credential: bool) -> None:
    fault = fault_of(server.base_url, model)

    assert isinstance(fault, MisconfiguredError)
    assert fault.credential is credential


@pytest.mark.parametrize(
    ("model", "wait_s"),
    [
        pytest.param("429-minute", 47.0, id="in the details, before the header"),
        pytest.param("429-fraction", 47.5, id="with a fraction"),
        pytest.param("429-sentence", 65.25, id="in the sentence"),
        pytest.param("429-header", 7.5, id="in the header"),
        pytest.param("429-date", None, id="as a date"),
        pytest.param("429-bare", None, id="not named"),
        pytest.param("429-help", None, id="not named in the details"),
    ],
)
def test_a_throttled_call_tells_the_wait_that_the_server_named(
    server: FakeGemini, model: str, wait_s: float | None
) -> None:
    fault = fault_of(server.base_url, model)

    assert isinstance(fault, ThrottledError)
    assert fault.wait_s == wait_s


@pytest.mark.parametrize("model", ["drips-bytes", "drips-chunks", "drips-headers", "falls-silent", "silent"])
def test_a_call_ends_at_its_deadline_however_the_server_drips(server: FakeGemini, model: str) -> None:
    provider_at(server.base_url, model)
    start = time.monotonic()

    fault = fault_of(server.base_url, model, TIMEOUT_S)

    assert type(fault) is TransientError
    assert TIMEOUT_S * 0.9 < time.monotonic() - start < TIMEOUT_S + 1.5
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GOOGLE_API_KEY", "not-for-this-server"),
        ("GEMINI_API_KEY", "not-for-this-server"),
        ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1/not-for-this-server"),
        ("GOOGLE_VERTEX_BASE_URL", "http://127.0.0.1:1/not-for-this-server"),
        ("GOOGLE_GENAI_USE_VERTEXAI", "true"),
        ("GOOGLE_GENAI_USE_ENTERPRISE", "true"),
        ("GOOGLE_GENAI_API_VERSION", "not-for-this-server"),
        ("GOOGLE_GENAI_HTTP_CLIENT", "httpx"),
        ("GOOGLE_GENAI_CLIENT_MODE", "replay"),
        ("GOOGLE_GENAI_REPLAYS_DIRECTORY", "not-for-this-server"),
        ("GOOGLE_GENAI_REPLAY_ID", "not-for-this-server"),
        ("GOOGLE_CLOUD_PROJECT", "not-for-this-server"),
        ("GOOGLE_CLOUD_LOCATION", "not-for-this-server"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "not-for-this-server"),
        ("GOOGLE_API_USE_MTLS_ENDPOINT", "always"),
        ("GOOGLE_API_USE_CLIENT_CERTIFICATE", "true"),
        ("HTTP_PROXY", "http://127.0.0.1:1/not-for-this-server"),
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
    ],
)
def test_nothing_of_the_environment_is_used_or_sent(
    server: FakeGemini, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    # With a name of its own, the provider is made under this variable.
    model = f"{variable}-good"

    provider_at(server.base_url, model).complete(make_request(timeout_s=10.0))

    (received,) = server.received
    assert received.path == f"/v1/models/{model}:generateContent"
    assert received.headers["x-goog-api-key"] == KEY
    assert "not-for-this-server" not in str(received)


def test_without_a_base_url_it_is_googles_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    spec = GeminiModel(provider="gemini", name="m", model="gemini-3-flash")

    endpoint = GeminiProvider(spec, api_key=KEY).endpoint

    assert endpoint == Endpoint(provider="gemini", model="gemini-3-flash", label="generativelanguage.googleapis.com")


@pytest.mark.parametrize(
    "model",
    [
        "401",
        "400",
        "404",
        "500",
        "429-day",
        "html",
        "wrong-types",
        "resets-in-the-middle",
        "blocked-prompt",
        "echo-400",
        "echo-401",
        "echo-404",
        "echo-429",
        "echo-500",
        "echo-html",
    ],
)
def test_no_error_holds_the_key_or_the_prompt(server: FakeGemini, model: str) -> None:
    fault = fault_of(server.base_url, model)

    shown = [str(fault), repr(fault), "".join(traceback.format_exception(fault)), repr(pickle.dumps(fault))]
    assert not [text for text in shown if KEY in text or PROMPT in text or "What nobody else may read" in text]
    assert fault.__cause__ is None
    assert fault.__suppress_context__ or fault.__context__ is None


@pytest.mark.parametrize("model", ["401", "429-fraction", "429-day", "500", "too-long", "safety"])
def test_an_error_survives_pickling(server: FakeGemini, model: str) -> None:
    fault = fault_of(server.base_url, model)

    again = pickle.loads(pickle.dumps(fault))  # noqa: S301 - our own bytes

    assert (type(again), str(again), vars(again)) == (type(fault), str(fault), vars(fault))


@pytest.mark.parametrize("key", ["", " ", "two words", "schlüssel", "line\nbreak", "auth_tokens/ephemeral"])
def test_a_key_that_cannot_be_sent_is_refused_before_any_call_and_not_shown(key: str) -> None:
    spec = GeminiModel(provider="gemini", name="m", model="gemini-3-flash")

    with pytest.raises(MisconfiguredError) as caught:
        GeminiProvider(spec, api_key=key)

    assert caught.value.credential
    assert not key.strip() or key not in str(caught.value)


@pytest.mark.parametrize("model", ["gemini?key=1", "gemini 3", "a/../b", "gemini#3", "gemini&x"])
def test_a_name_that_no_model_can_have_is_refused_before_any_call(model: str) -> None:
    spec = GeminiModel(provider="gemini", name="m", model=model)

    with pytest.raises(MisconfiguredError, match="no model of this API"):
        GeminiProvider(spec, api_key=KEY)


def test_one_provider_serves_many_threads_at_once(server: FakeGemini) -> None:
    server.latency_s = 0.5
    provider = provider_at(server.base_url)
    start = time.monotonic()

    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(lambda _: provider.complete(make_request(timeout_s=30.0)).text, range(64)))

    assert answers == ["A"] * 64
    assert len(server.received) == 64
    assert time.monotonic() - start < 16  # half of what they take one after the other


def test_a_slow_call_of_one_thread_does_not_shorten_the_time_of_another(server: FakeGemini) -> None:
    server.latency_s = 1.5
    provider = provider_at(server.base_url)

    def kind_of(timeout_s: float) -> str:
        try:
            return provider.complete(make_request(timeout_s)).text
        except TransientError:
            return "too late"

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(kind_of, [0.5, 30.0, 0.5, 30.0]))

    assert answers == ["too late", "A", "too late", "A"]


def test_the_models_of_the_api_are_listed_page_by_page(server: FakeGemini) -> None:
    assert provider_at(server.base_url).models() == list(BEHAVIOURS)
    assert len(server.received) > 1


def test_a_list_that_is_not_there_is_one_of_our_errors(server: FakeGemini) -> None:
    with pytest.raises(MisconfiguredError):
        provider_at(f"{server.base_url}/nowhere").models()


def test_an_endpoint_is_shown_without_path_or_credentials(server: FakeGemini) -> None:
    provider = provider_at(f"{server.base_url}/v1beta")

    assert provider.endpoint == Endpoint(provider="gemini", model="good", label=f"127.0.0.1:{server.server_port}")
    assert provider.describe() == Description()
