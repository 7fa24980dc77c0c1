"""What is said where a library is not installed: which one it is, and how to get it."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec

import pytest

from contract.errors import UsageError
from ops.cli.needs import needing
from tests.unit.test_open_provider import gemini, openai, problem
from worker.providers import require_libraries


def without(missing: str) -> Callable[[str], ModuleSpec | None]:
    """A search for modules that finds all but one."""
    return lambda name: None if name == missing else ModuleSpec(name, None)


def test_a_command_names_what_it_lacks_and_the_extra_that_brings_it() -> None:
    with pytest.raises(UsageError) as raised, needing("report"):
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401

    assert str(raised.value) == "no_such_library is not installed here: pip install 'bothways[report]'"


@pytest.mark.parametrize(
    ("provider", "library"), [("openai", "openai"), ("gemini", "google.genai"), ("ollama", "ollama")]
)
def test_a_worker_does_not_begin_for_a_provider_whose_library_it_lacks(
    monkeypatch: pytest.MonkeyPatch, provider: str, library: str
) -> None:
    require_libraries([provider])
    monkeypatch.setattr("worker.providers.find_spec", without(library))

    with pytest.raises(UsageError) as raised:
        require_libraries(["simulated", provider])

    assert str(raised.value) == (
        f"the provider {provider} cannot be served here: {library} is not installed; "
        "pip install 'bothways[worker]', or take the image of a worker"
    )


def test_a_library_whose_package_is_not_there_at_all_is_missing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.providers._LIBRARIES", {"gemini": "no_such_package.genai"})
    with pytest.raises(ModuleNotFoundError):
        importlib.util.find_spec("no_such_package.genai")

    with pytest.raises(UsageError, match=r"no_such_package\.genai is not installed"):
        require_libraries(["gemini"])


def test_a_model_whose_library_is_missing_cannot_be_asked_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, library in (("worker.providers.openai", "openai"), ("worker.providers.gemini", "google.genai")):
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setitem(sys.modules, library, None)

    assert problem(openai()).startswith("model m: openai is not installed; pip install 'bothways[worker]'")
    assert problem(gemini(api_key_env="MODEL_KEY")).startswith("model g: google.genai is not installed")
