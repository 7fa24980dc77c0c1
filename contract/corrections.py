"""What a study file may put right in the texts of a data file, so that the file itself stays as it is published."""

from typing import Annotated

from pydantic import Field

from contract.spec import Spec

Text = Annotated[str, Field(min_length=1)]


class Correction(Spec):
    """A piece of text that stands in contexts and questions, and what stands there instead."""

    find: Text
    replace: str


HumanOptions = dict[str, dict[str, Text]]
"""By the key of a question: the text of a human answer, and the option of the question that it means."""
