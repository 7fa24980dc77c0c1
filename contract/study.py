"""The study file as a typed value: what is asked of whom, in which forms, and how often.

Everything here is checked when the file is read (`producer.study_file`); the resolved study is stored as it stands with
every `bothways run`.
"""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,79}$")]
"""A name that is safe in file names, queue names and tables."""

MAX_CALL_S = 3600
MAX_BUDGET_S = 600

Rate = Annotated[float, Field(ge=0, le=1)]


def _address(url: str) -> str:
    """An address that a client can use; user names and passwords do not belong into a study file."""
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


class Spec(BaseModel):
    """A part of the study file: frozen, no unknown fields, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Listed = Field(strict=False, min_length=1)
"""For tuple fields: a YAML list fills them, an empty one does not."""


class Sampling(Spec):
    """What is sent to the model beside the prompt. `seed` is the base of every job's own seed."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 16
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class ClosedFormat(Spec):
    """Closed answers: one letter out of those offered."""

    format: Literal["closed"]
    orders: Literal["both"] = "both"
    reading: Literal["strict"] = "strict"
    sampling: Sampling = Sampling()


class Expect(Spec):
    """What a dataset states about itself; a mismatch is refused."""

    items: Annotated[int, Field(ge=1)]


def _names(choices: object) -> object:
    """One column that holds a list, or a column for each of the two choices; as a tuple either way."""
    names = (choices,) if isinstance(choices, str) else tuple(choices) if isinstance(choices, list) else ()
    if not all(isinstance(name, str) for name in names) or not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ValueError("must be the column that holds the list of choices, or two columns: [NAME, NAME]")
    return names


Column = Annotated[str, Field(min_length=1)]
"""The name of a column (or of a field of each row) as the data file spells it."""


class Columns(Spec):
    """What a data file calls our fields; a field that is left out goes by its own name."""

    id: Column | None = None
    question: Column | None = None
    choices: Annotated[tuple[Column, ...] | None, BeforeValidator(_names)] = None
    target: Column | None = None
    context: Column | None = None
    cluster: Column | None = None
    language: Column | None = None


class StandIns(Spec):
    """Wrong answers for want of better ones: right answers of other questions, chosen by `seed`."""

    seed: Annotated[int, Field(ge=0, lt=2**31)]


class Dataset(Spec):
    """Where the items come from and the prompt that they are asked with.

    `loader` names how the file is read: `items` (rows with id, question, choices, target; `columns` if the file calls
    them otherwise), `uncertainty` (one file for low, medium and high, chosen by `setting`) or `squad_it` (SQuAD 1.1,
    its wrong answers from the file `wrong_answers` or made by `stand_ins`). `prompt` is the name of an instrument that
    comes with Bothways, or a .txt file beside the study file. `language` is that of the items that name none.
    `${NAME}` in a path is filled from the environment.
    """

    name: Name
    loader: Literal["items", "uncertainty", "squad_it"]
    path: Annotated[str, Field(min_length=1)]
    prompt: Annotated[str, Field(min_length=1)]
    setting: Literal["low", "medium", "high"] | None = None
    columns: Columns | None = None
    wrong_answers: Annotated[str, Field(min_length=1)] | None = None
    stand_ins: StandIns | None = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")] | None = None
    expect: Expect | None = None


class OpenAIModel(Spec):
    """A model behind any OpenAI-compatible server.

    Without `base_url` it is the embedded server. `api_key_env` is the name of the variable that holds the key where the
    worker runs; the key itself never stands in a study file.
    """

    provider: Literal["openai"]
    name: Name
    model: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, AfterValidator(_address)] | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$"), AfterValidator(_not_ours)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=MAX_CALL_S)] = 120.0


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
    timeout_s: Annotated[float, Field(gt=0, le=MAX_CALL_S)] = 120.0


Model = Annotated[OpenAIModel | SimulatedModel, Field(discriminator="provider")]


class Retry(Spec):
    """When a job is asked again within one round.

    `invalid`: how often after a completion that could not be read; every attempt is kept and figures are given for
    first and final. `faults`: how many calls without a completion end the job as failed.
    """

    invalid: Annotated[int, Field(ge=0, le=100)] = 0
    strategy: Literal["resample"] = "resample"
    faults: Annotated[int, Field(ge=1, le=100)] = 5


class Bundles(Spec):
    """How jobs travel: at most `size` in one message, no new call after `budget_s` seconds."""

    size: Annotated[int, Field(ge=1, le=64)] = 16
    budget_s: Annotated[float, Field(gt=0, le=MAX_BUDGET_S)] = 60.0


class Study(Spec):
    """One study file. `weight` is its share of a queue beside other studies: 2 gets twice what 1 gets."""

    study: Name
    description: str = ""
    datasets: Annotated[tuple[Dataset, ...], Listed]
    models: Annotated[tuple[Model, ...], Listed]
    formats: Annotated[tuple[ClosedFormat, ...], Listed]
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    limit: Annotated[int, Field(ge=1)] | None = None
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    retry: Retry = Retry()
    bundles: Bundles = Bundles()

    @property
    def title_note(self) -> str | None:
        """What every table of this study says in its title, None if nothing."""
        return "stand-in distractors" if any(dataset.stand_ins for dataset in self.datasets) else None


_MODEL: TypeAdapter[Model] = TypeAdapter(Model)


def parse_model(stored: dict[str, Any]) -> Model:
    """A model from the JSON that a row holds."""
    return _MODEL.validate_python(stored)
