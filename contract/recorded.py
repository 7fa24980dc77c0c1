"""Answers that somebody else has recorded: a model that is never asked, and how its file is to be understood."""

from typing import Annotated, Literal

from pydantic import Field

from contract.spec import Name, Spec

RECORDED = "recorded"
"""The reading of an answer that a file gives and no completion shows; also the provider of such models."""
RECORDED_VERSION = 1

IMPORTER = "import"
"""Who stands in the place of the worker in attempts that were imported."""

Column = Annotated[str, Field(min_length=1)]
FormatName = Literal["closed", "likert", "open"]


class RecordedColumns(Spec):
    """What the file calls our fields; a field that is left out goes by its own name, where the file has it.

    `dataset` tells items apart whose ids stand in several datasets. Of rows with a `model`, only this model's count.
    """

    item: Column | None = None
    dataset: Column | None = None
    format: Column | None = None
    variant: Column | None = None
    part: Column | None = None
    repeat: Column | None = None
    answer: Column | None = None
    completion: Column | None = None
    model: Column | None = None


class RecordedConstants(Spec):
    """What holds for all rows of a file that has no column for it, in the file's codes or in ours."""

    dataset: Column | None = None
    format: Column | None = None
    variant: Column | None = None
    part: Annotated[int, Field(ge=0)] | None = None
    repeat: Annotated[int, Field(ge=1)] | None = None


class RecordedModel(Spec):
    """A model whose answers are imported from a file (`bothways import`) and that no worker asks.

    `model` is what the file's column of that name holds. `formats`, `variants` and `answers` map the file's codes to
    ours: a variant as it is printed ("213", 4-negative, reasoning); an answer as the number of a choice from 1, its
    text, a rating, or null where there is none.
    """

    provider: Literal["recorded"]
    name: Name
    model: Annotated[str, Field(min_length=1)]
    columns: RecordedColumns = RecordedColumns()
    constants: RecordedConstants = RecordedConstants()
    formats: dict[str, FormatName] = Field(default_factory=dict)
    variants: dict[str, str] = Field(default_factory=dict)
    answers: dict[str, int | str | None] = Field(default_factory=dict)

    @property
    def can_constrain(self) -> bool:
        """What was said before cannot be limited."""
        return False

    @property
    def timeout_s(self) -> float:
        """No call is made."""
        return 0.0
