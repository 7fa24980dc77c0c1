"""The models of a study file: who serves each of them, under which name, with which options.

Only what can change an answer stands in a model's `options`: they belong to the condition's digest. Addresses, names of
key variables, headers, pools and time-outs may change without new jobs.
"""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, TypeAdapter

from contract.recorded import RecordedModel
from contract.spec import Listed, Name, Rate, Spec

MAX_CALL_S = 3600

_WHOLLY_A_VARIABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*\}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}")
_SECRET_HEADER = re.compile(r"auth|key|token|cookie|secret", re.IGNORECASE)


def usable_address(url: str) -> str:
    """An address that a client can use; user names and passwords do not belong into a file."""
    try:
        parts = urlsplit(url)
        plain = not parts.query and not parts.fragment and "@" not in parts.netloc
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and plain
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in url):
        raise ValueError(
            "must be an address like http://host:port/v1 or https://host/v1, without user name, key or query"
        )
    return url


def _not_ours(variable: str) -> str:
    """The variables of Bothways itself hold passwords that no model server should be sent."""
    if variable.startswith("BOTHWAYS_"):
        raise ValueError("must not be one of Bothways' own variables")
    return variable


def _usable_headers(headers: object) -> object:
    """Headers whose values are text, or `${VARIABLE}` as a whole; what may hold a secret must be the latter."""
    if not isinstance(headers, dict):
        raise ValueError("must be a mapping of header names to values")
    for name, value in headers.items():
        if not (isinstance(name, str) and _HEADER.fullmatch(name) and isinstance(value, str) and value.isprintable()):
            raise ValueError("must be names of letters, digits and hyphens, each with one line of text as its value")
        if _WHOLLY_A_VARIABLE.fullmatch(value):
            _not_ours(value[2:-1])
        elif _SECRET_HEADER.search(name):
            raise ValueError(
                f"the header {name} may hold a secret: write it as ${{VARIABLE}}, set where the worker runs"
            )
    return tuple(headers.items())


Address = Annotated[str, AfterValidator(usable_address)]
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$"), AfterValidator(_not_ours)]
"""The name of an environment variable, which holds a key where the worker runs."""

Headers = Annotated[
    tuple[tuple[str, str], ...], BeforeValidator(_usable_headers), PlainSerializer(dict, return_type=dict[str, str])
]
"""More headers for every call; a mapping in the file."""

CallTime = Annotated[float, Field(gt=0, le=MAX_CALL_S)]
"""Seconds that one call may take in all."""

Pools = Annotated[tuple[Name, ...], Listed]
"""Names of pools of the pools file; the one that can go first is taken."""


class OpenAIModel(Spec):
    """A model behind any OpenAI-compatible server.

    Without `base_url` it is the embedded server. `api_key_env` is the name of the variable that holds the key where the
    worker runs; the key itself never stands in a study file. `constrains_by` is how the server takes a limit on the
    answer: vLLM `structured_outputs` (older: `guided_choice`), llama.cpp `grammar`, hosted ones `json_schema`.
    """

    provider: Literal["openai"]
    name: Name
    model: Annotated[str, Field(min_length=1)]
    base_url: Address | None = None
    api_key_env: Variable | None = None
    headers: Headers = ()
    constrains_by: Literal["structured_outputs", "guided_choice", "grammar", "json_schema"] | None = None
    pools: Pools | None = None
    timeout_s: CallTime = 120.0

    @property
    def can_constrain(self) -> bool:
        """Whether answers can be limited to the letters that were offered."""
        return self.constrains_by is not None


class OllamaOptions(Spec):
    """How Ollama runs the model.

    `context` is its context length in tokens, sent with every call because each host has another default; `think`
    what the model is told about thinking, nothing if left out; `digest` the beginning of the digest that it must have.
    """

    context: Annotated[int, Field(ge=256)] = 4096
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{12,64}$")] | None = None


class OllamaModel(Spec):
    """A model that GPU hosts serve with Ollama. `model` is its tag; workers know the hosts."""

    provider: Literal["ollama"]
    name: Name
    model: Annotated[str, Field(min_length=1)]
    options: OllamaOptions = OllamaOptions()
    timeout_s: CallTime = 300.0

    @property
    def can_constrain(self) -> bool:
        """Ollama takes a JSON schema."""
        return True


class GeminiOptions(Spec):
    """How Gemini is asked.

    `thinking`: off where the model can be told so, else as little as it takes. `room`: tokens for thinking on top of
    the answer's own, because both share one budget. `safety`: the API's default thresholds, or none.
    """

    thinking: Literal["off", "minimal", "low", "medium", "high"] = "off"
    room: Annotated[int, Field(ge=0, le=65_536)] = 2048
    safety: Literal["default", "none"] = "default"


class GeminiModel(Spec):
    """A model of the Gemini API. The key is that of its pool, or of `api_key_env` where it has no pools."""

    provider: Literal["gemini"]
    name: Name
    model: Annotated[str, Field(min_length=1)]
    base_url: Address | None = None
    api_key_env: Variable = "GEMINI_API_KEY"
    options: GeminiOptions = GeminiOptions()
    pools: Pools | None = None
    timeout_s: CallTime = 120.0

    @property
    def can_constrain(self) -> bool:
        """Gemini takes an enumeration."""
        return True


class Simulated(Spec):
    """What a simulated model is like; see `worker.providers.simulated` for the figures that follow from it.

    `kills`: a text; a prompt that holds it kills the worker that asks it, as a fault in a native library would.
    """

    knows: Rate = 0.5
    prefers_first: Rate = 0.5
    invalid_rate: Rate = 0.0
    fault_rate: Rate = 0.0
    latency_s: Annotated[float, Field(ge=0)] = 0.0
    seed: int = 0
    kills: Annotated[str, Field(min_length=1)] | None = None


class SimulatedModel(Spec):
    """A model that answers by known rules, for trials without a server."""

    provider: Literal["simulated"]
    name: Name
    model: Annotated[str, Field(min_length=1)] = "simulated"
    options: Simulated = Simulated()
    pools: Pools | None = None
    timeout_s: CallTime = 120.0

    @property
    def can_constrain(self) -> bool:
        """It answers with a letter anyway."""
        return True


Model = Annotated[
    OpenAIModel | OllamaModel | GeminiModel | SimulatedModel | RecordedModel, Field(discriminator="provider")
]

_MODEL: TypeAdapter[Model] = TypeAdapter(Model)


def whole_tag(model: str) -> str:
    """The tag of an Ollama model as a server lists it: one that names no variant means the latest."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def parse_model(stored: dict[str, Any]) -> Model:
    """A model from the JSON that a row holds."""
    return _MODEL.validate_python(stored)


def pools_of(model: Model) -> tuple[str, ...]:
    """The names of the pools that `model` may use; empty where no quota is shared."""
    return () if isinstance(model, OllamaModel | RecordedModel) else model.pools or ()
