"""The study file as a typed value: what is asked of whom, in which forms, and how often.

Everything here is checked when the file is read (`producer.study_file`); the resolved study is stored as it stands with
every `bothways run`.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from contract.corrections import Correction, HumanOptions, Text
from contract.forms import AnyFormat, Form, Step
from contract.models import Model
from contract.spec import Listed, MaybeEmpty, Name, Spec

MAX_BUDGET_S = 600


class Output(Spec):
    """A file that a recipe writes, from the texts of its steps.

    A row for each item with one or two texts as its wrong answers, or for each choice with its text (`statements`).
    """

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}\.(jsonl|csv)$")]
    wrong_answer: Name | None = None
    second_wrong_answer: Name | None = None
    statements: Name | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps whose texts it holds."""
        named = (self.wrong_answer, self.second_wrong_answer, self.statements)
        return tuple(step for step in named if step is not None)


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
    them otherwise), `uncertainty` (one file for low, medium and high, chosen by `setting`), `squad_it` (SQuAD 1.1, its
    wrong answers from the file `wrong_answers` or made by `stand_ins`), `squad_it_2` (its authors' layout; `setting` as
    above), `webgpt` (comparisons with unequal scores), `winning_arguments` (the pair task, or `utterances.jsonl` of a
    ConvoKit corpus), `bbq`, `opinion_qa` (human shares from the file `human`) or `global_opinion_qa` (those of
    `country`). `prompt` is the name of an instrument that comes with Bothways, or a .txt file beside the study file;
    where a study has steps, they name the prompts. `language` is that of the items that name none. `${NAME}` in a path
    is filled from the environment.

    `subset` is a file with the ids of the items that are wanted. `corrections` are made in contexts and questions.
    `human_options` says which option a human answer means that is worded otherwise; the keys `without_human` get no
    human shares. `statements` is a file that says each choice as a statement, for Likert answers.

    A path may be an address: `https://...`, or `hf://datasets/OWNER/NAME@REVISION/PATH` on the Hugging Face hub, with
    `#PATTERN` for one file of an archive. It is fetched once and kept. `sha256` is the hash that the file at `path`, as
    it is published, must have.
    """

    name: Name
    loader: Literal[
        "items",
        "uncertainty",
        "squad_it",
        "squad_it_2",
        "webgpt",
        "winning_arguments",
        "bbq",
        "opinion_qa",
        "global_opinion_qa",
    ]
    path: Annotated[str, Field(min_length=1)]
    prompt: Annotated[str, Field(min_length=1)] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    setting: Literal["low", "medium", "high"] | None = None
    columns: Columns | None = None
    wrong_answers: Annotated[str, Field(min_length=1)] | None = None
    stand_ins: StandIns | None = None
    subset: Text | None = None
    corrections: Annotated[tuple[Correction, ...], MaybeEmpty] = ()
    statements: Text | None = None
    human: Text | None = None
    human_options: HumanOptions | None = None
    without_human: Annotated[tuple[Text, ...], MaybeEmpty] = ()
    country: Text | None = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")] | None = None
    expect: Expect | None = None


class Retry(Spec):
    """When a job is asked again within one round.

    `invalid`: how often after a completion that could not be read; every attempt is kept and figures are given for
    first and final. `strategy` is how: `resample` sends the same with a new seed, `remind` also adds a sentence to the
    prompt (`reminder`, with {letters}; ours in English and Italian if it is left out), `constrain` also lets the server
    take nothing but a letter. `faults`: how many calls without a completion end the job as failed.
    """

    invalid: Annotated[int, Field(ge=0, le=100)] = 0
    strategy: Literal["resample", "remind", "constrain"] = "resample"
    reminder: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    faults: Annotated[int, Field(ge=1, le=100)] = 5


class Bundles(Spec):
    """How jobs travel: at most `size` in one message, no new call after `budget_s` seconds."""

    size: Annotated[int, Field(ge=1, le=64)] = 16
    budget_s: Annotated[float, Field(gt=0, le=MAX_BUDGET_S)] = 60.0


class Study(Spec):
    """One study file. `weight` is its share of a queue beside other studies: 2 gets twice what 1 gets.

    A study either asks in `formats`, or it is a recipe: its `steps` make texts, and `writes` names the files of them.
    `annotator` is the model that says which choice each open answer gives.
    """

    study: Name
    description: str = ""
    datasets: Annotated[tuple[Dataset, ...], Listed]
    models: Annotated[tuple[Model, ...], Listed]
    formats: Annotated[tuple[AnyFormat, ...], MaybeEmpty] = ()
    annotator: Model | None = None
    steps: Annotated[tuple[Step, ...], MaybeEmpty] = ()
    writes: Annotated[tuple[Output, ...], MaybeEmpty] = ()
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    limit: Annotated[int, Field(ge=1)] | None = None
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    retry: Retry = Retry()
    bundles: Bundles = Bundles()

    @property
    def forms(self) -> tuple[Form, ...]:
        """How it asks: its formats, or the steps of a recipe."""
        return self.formats or self.steps

    @property
    def all_forms(self) -> tuple[Form, ...]:
        """The forms, each followed by its annotation if it has one."""
        annotated = ((form, getattr(form, "annotate", None)) for form in self.forms)
        return tuple(form for pair in annotated for form in pair if form is not None)

    @property
    def asked_models(self) -> tuple[Model, ...]:
        """Every model that is asked anything: those that answer, and the one that annotates."""
        annotates = len(self.all_forms) > len(self.forms)
        return (*self.models, self.annotator) if self.annotator is not None and annotates else self.models

    @property
    def title_note(self) -> str | None:
        """What every table of this study says in its title, None if nothing."""
        return "stand-in distractors" if any(dataset.stand_ins for dataset in self.datasets) else None
