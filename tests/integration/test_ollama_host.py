"""One Ollama host: what it has and runs, against a server that speaks the real protocol."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from contract.models import OllamaOptions, whole_tag
from tests.fake_ollama import TEMPLATE, VERSION, FakeOllama, digest, fake_ollama
from worker.providers import ollama_host
from worker.providers.base import (
    Description,
    HostError,
    MisconfiguredError,
    ProviderError,
    TransientError,
)
from worker.providers.ollama_host import Loaded, OllamaHost, chat_body

OPTIONS = OllamaOptions(context=2048)


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """A server of its own for each test: what it has loaded is part of the test."""
    with fake_ollama() as server:
        yield server


@pytest.fixture
def host(server: FakeOllama) -> Iterator[OllamaHost]:
    """The host as a worker knows it."""
    host = OllamaHost(server.base_url)
    yield host
    host.close()


QUESTIONS: dict[str, Callable[[OllamaHost], object]] = {
    "tags": OllamaHost.tags,
    "version": OllamaHost.version,
    "describe": lambda host: host.describe("good"),
    "loaded": OllamaHost.loaded,
    "warm_up": lambda host: host.warm_up("good", OPTIONS, 5.0),
    "parallel": lambda host: host.parallel("good", OPTIONS, 2, 5.0),
}


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("http://gpu1:11434", "gpu1:11434"),
        ("http://gpu1:80", "gpu1:80"),
        ("https://gpu1/ollama", "gpu1:443"),
        ("http://10.0.0.7:8080/", "10.0.0.7:8080"),
        ("http://[fd00::7]:11434", "[fd00::7]:11434"),
        ("http://[::1]:11434", f"{socket.gethostname()}:11434"),
        ("http://127.0.0.1:11434", f"{socket.gethostname()}:11434"),
        ("http://localhost:8080", f"{socket.gethostname()}:8080"),
        ("http://somebody:secret@gpu1:11434", "gpu1:11434"),
    ],
)
def test_a_host_is_shown_by_its_name_and_port(address: str, label: str) -> None:
    host = OllamaHost(address)

    assert host.label == label
    host.close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:11434", "http://ollama:11434"])
def test_a_host_may_be_called_as_its_machine_is(address: str) -> None:
    host = OllamaHost(address, "gpu7")

    assert host.label == "gpu7:11434"
    host.close()


def test_the_tags_of_a_host_come_with_their_digests(server: FakeOllama, host: OllamaHost) -> None:
    server.tags = {"qwen3:8b": "ab" * 32, "llama3:latest": "cd" * 32}
    assert host.tags() == server.tags

    server.tags = {"qwen3:8b": "ef" * 32}
    assert host.tags() == {"qwen3:8b": "ef" * 32}


@pytest.mark.parametrize(
    ("model", "tag"),
    [
        ("llama3", "llama3:latest"),
        ("llama3:8b", "llama3:8b"),
        ("registry.example:5000/team/llama3", "registry.example:5000/team/llama3:latest"),
        ("registry.example:5000/team/llama3:8b", "registry.example:5000/team/llama3:8b"),
    ],
)
def test_a_tag_without_variant_means_the_latest(model: str, tag: str) -> None:
    assert whole_tag(model) == tag


@pytest.mark.parametrize("model", ["good", "good:latest"])
def test_a_description_names_weights_template_and_server(host: OllamaHost, model: str) -> None:
    assert host.describe(model) == Description(
        digest=digest("good"),
        quantisation="Q4_K_M",
        context_length=8192,
        server_version=VERSION,
        template_digest=hashlib.sha256(TEMPLATE.encode()).hexdigest(),
    )


def test_a_model_that_is_not_there_cannot_be_described(host: OllamaHost) -> None:
    with pytest.raises(MisconfiguredError, match=f"model missing is not on {host.label}: run `ollama pull missing`"):
        host.describe("missing")


def test_the_version_of_a_server_is_its_own(host: OllamaHost) -> None:
    assert host.version() == VERSION


def test_nothing_is_loaded_at_first(host: OllamaHost) -> None:
    assert host.loaded() == ()


def test_warming_up_loads_the_model_just_as_calls_need_it(server: FakeOllama, host: OllamaHost) -> None:
    host.warm_up("good", OPTIONS, 5.0)
    host.chat(chat_body("good", OPTIONS, prompt="A or B?", num_predict=1), 5.0)
    host.warm_up("good", OPTIONS, 5.0)

    assert server.loads == ["good:latest"]
    assert server.received[0].body == {
        "model": "good",
        "messages": [],
        "stream": True,
        "options": {"num_ctx": 2048},
        "truncate": False,
        "shift": False,
        "keep_alive": "30m",
    }


def test_what_is_loaded_tells_its_context_and_its_share_on_the_cpu(server: FakeOllama, host: OllamaHost) -> None:
    server.size, server.size_vram = 8_000, 6_000

    host.warm_up("good", OPTIONS, 5.0)

    (loaded,) = host.loaded()
    assert loaded == Loaded(
        model="good:latest", digest=digest("good"), context_length=2048, size=8_000, size_in_vram=6_000
    )
    assert loaded.on_cpu == 0.25


@pytest.mark.parametrize(("size", "size_in_vram", "share"), [(10, 10, 0.0), (10, 0, 1.0), (10, 11, 0.0), (0, 0, 0.0)])
def test_a_share_on_the_cpu_is_between_none_and_all(size: int, size_in_vram: int, share: float) -> None:
    loaded = Loaded(model="m", digest="d", context_length=None, size=size, size_in_vram=size_in_vram)

    assert loaded.on_cpu == share


def test_another_model_waits_until_the_loaded_one_is_idle(server: FakeOllama, host: OllamaHost) -> None:
    server.tags = {"one:1b": "1" * 64, "two:2b": "2" * 64}
    server.generation_s = 1.0
    host.warm_up("one:1b", OPTIONS, 5.0)
    call = threading.Thread(target=host.chat, args=(chat_body("one:1b", OPTIONS, prompt="A or B?"), 5.0))
    start = time.monotonic()
    call.start()
    while len(server.received) < 2:
        time.sleep(0.01)

    host.warm_up("two:2b", OPTIONS, 5.0)

    assert time.monotonic() - start >= 1.0
    assert server.loads == ["one:1b", "two:2b"]
    call.join()


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        ("missing", MisconfiguredError, "ollama pull missing"),
        ("no-thinking", MisconfiguredError, "does not support thinking"),
        ("no-memory", HostError, "more system memory"),
        ("busy", TransientError, "server busy"),
        ("html", TransientError, "not an answer of this protocol"),
    ],
)
def test_a_model_that_cannot_be_loaded_says_why(
    host: OllamaHost, model: str, kind: type[ProviderError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        host.warm_up(model, OPTIONS, 5.0)


def test_an_answer_instead_of_a_load_is_no_load(server: FakeOllama, host: OllamaHost) -> None:
    server.behaves = "says-done"

    with pytest.raises(TransientError, match="does not say that it has loaded good"):
        host.warm_up("good", OPTIONS, 5.0)


def test_a_load_that_takes_too_long_ends_at_its_time(server: FakeOllama, host: OllamaHost) -> None:
    server.load_s = 3.0
    start = time.monotonic()

    with pytest.raises(TransientError, match="within the time allowed"):
        host.warm_up("good", OPTIONS, 1.0)

    assert 0.9 < time.monotonic() - start < 1.5


@pytest.mark.parametrize(("slots", "most", "found"), [(1, 2, 1), (2, 4, 2), (8, 3, 3)])
def test_the_calls_that_a_server_runs_at_once_are_found_by_trying(
    server: FakeOllama, host: OllamaHost, slots: int, most: int, found: int
) -> None:
    server.parallel = slots
    host.warm_up("good", OPTIONS, 5.0)
    server.generation_s = 1.2

    assert host.parallel("good", OPTIONS, most, 10.0) == found
    assert server.loads == ["good:latest"]
    assert {received.body["options"]["num_predict"] for received in server.received[1:]} == {16}


def test_a_trial_whose_calls_fail_finds_nothing(host: OllamaHost) -> None:
    with pytest.raises(HostError, match="unexpectedly stopped"):
        host.parallel("runner-crash", OPTIONS, 2, 5.0)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("401", MisconfiguredError),
        ("redirect", MisconfiguredError),
        ("no-page", MisconfiguredError),
        ("other-500", TransientError),
        ("html", TransientError),
        ("html-502", TransientError),
        ("other-json", TransientError),
        ("a-list", TransientError),
        ("reset", TransientError),
    ],
)
def test_every_question_ends_in_our_own_errors(
    server: FakeOllama, host: OllamaHost, question: str, behaviour: str, kind: type[ProviderError]
) -> None:
    server.behaves = behaviour

    with pytest.raises(ProviderError) as caught:
        QUESTIONS[question](host)

    assert type(caught.value) is kind
    assert host.label in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("question", ["tags", "version"])
def test_a_question_ends_at_its_deadline_however_the_server_drips(
    server: FakeOllama, host: OllamaHost, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(ollama_host, "_ASK_TIMEOUT_S", 1.0)
    server.behaves = "drips-bytes"
    start = time.monotonic()

    with pytest.raises(TransientError, match="within the time allowed"):
        QUESTIONS[question](host)

    assert 0.9 < time.monotonic() - start < 1.5


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_host_that_is_not_there_is_a_fault_that_may_pass(question: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = OllamaHost(f"http://127.0.0.1:{unused.getsockname()[1]}")

    with pytest.raises(TransientError, match="connection"):
        QUESTIONS[question](host)
    host.close()
