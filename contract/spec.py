"""What every part of a file that a person writes has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,79}$")]
"""A name that is safe in file names, queue names and tables."""

Rate = Annotated[float, Field(ge=0, le=1)]


class Spec(BaseModel):
    """A part of a file: frozen, no unknown fields, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Listed = Field(strict=False, min_length=1)
"""For tuple fields: a YAML list fills them, an empty one does not."""

MaybeEmpty = Field(strict=False)
"""For tuple fields that a YAML list fills, or that are left out."""


def refuse_entry(problem: str) -> PydanticCustomError:
    """The error of a validator that finds an entry wrong as a whole: `problem` alone is printed, not the entry."""
    return PydanticCustomError("entry", "{problem}", {"problem": problem})
