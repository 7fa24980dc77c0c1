"""The forms in which models are asked: closed, Likert and open formats, annotations of open answers, steps of recipes.

What a form does stands in `contract.formats`; here is what a study file says of it.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from contract.orders import known_orders
from contract.reading import STRICT, known_reading
from contract.spec import Listed, MaybeEmpty, Name, Spec

Prompt = Annotated[str, Field(min_length=1)]
Polarity = Literal["positive", "negative"]
Stage = Literal["answer", "annotate", "generate"]
"""What a form is for: to ask what is measured, to say what an answer of another job means, to make data."""


class Sampling(Spec):
    """What is sent to the model beside the prompt. `seed` is the base of every job's own seed.

    `logprobs`: for the first token of the answer, the log-probabilities of so many candidates, kept with the attempt.
    """

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 16
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    logprobs: Annotated[int, Field(ge=1, le=20)] | None = None


class ClosedFormat(Spec):
    """Closed answers: one letter out of those offered.

    `orders`: both (of two choices), all, cyclic, paper (the six of the answer-format paper), or a list such as
    ["123", "321"]. `prompt` is asked of every dataset that names none. `reading` names the rules by which answers are
    read. `constrain`: the server lets the model say nothing else.
    """

    stage: ClassVar[Stage] = "answer"
    format: Literal["closed"]
    prompt: Prompt | None = None
    orders: Annotated[str | tuple[str, ...], BeforeValidator(known_orders)] = "both"
    reading: Annotated[str, BeforeValidator(known_reading)] = STRICT
    constrain: bool = False
    sampling: Sampling = Sampling()


class LikertFormat(Spec):
    """Likert answers: one whole number of a scale, for each statement about a choice; a job for each statement.

    Scales have `points` of 2 and more, in both forms or one: positive (the highest number agrees strongly) and negative
    (the highest disagrees).
    """

    stage: ClassVar[Stage] = "answer"
    constrain: ClassVar[bool] = False
    format: Literal["likert"]
    prompt: Prompt
    points: Annotated[tuple[Annotated[int, Field(ge=2, le=100)], ...], Listed]
    polarity: Annotated[tuple[Polarity, ...], Listed] = ("positive", "negative")
    sampling: Sampling = Sampling()


class Annotation(Spec):
    """Another model's look at open answers: which of the choices does each give? See `Study.annotator`."""

    format: ClassVar[str] = "open"
    stage: ClassVar[Stage] = "annotate"
    constrain: ClassVar[bool] = False
    prompt: Prompt
    sampling: Sampling = Sampling(max_tokens=64)


class OpenFormat(Spec):
    """Open answers: any text, with and without the request to reason; `annotate` maps each to a choice."""

    stage: ClassVar[Stage] = "answer"
    constrain: ClassVar[bool] = False
    format: Literal["open"]
    prompt: Prompt
    reasoning: Annotated[tuple[bool, ...], Listed] = (False,)
    annotate: Annotation | None = None
    sampling: Sampling = Sampling(max_tokens=256)


Check = Literal["bare", "not_right", "not_earlier", "not_in_context", "not_question"]


class Step(Spec):
    """One prompt of a recipe: it makes a text for each item or, with `each: choice`, each choice that says something.

    `after` names the step whose text this one is shown, as {earlier}. `checks` says what is looked at, beside that
    there is a text at all: `bare` (one line, no label like "Answer:" before it, no refusal in words), `not_right`
    (equal to none of the right answers), `not_earlier` (not equal to the text that it was shown), `not_in_context` (the
    paragraph does not contain it), `not_question` (it asks nothing). What a check finds is invalid and is asked for
    again as the retry rules say.
    """

    format: ClassVar[str] = "open"
    stage: ClassVar[Stage] = "generate"
    constrain: ClassVar[bool] = False
    step: Name
    prompt: Prompt
    after: Name | None = None
    each: Literal["choice"] | None = None
    checks: Annotated[tuple[Check, ...], MaybeEmpty] = ()
    sampling: Sampling = Sampling(max_tokens=64)


AnyFormat = Annotated[ClosedFormat | LikertFormat | OpenFormat, Field(discriminator="format")]
Form = ClosedFormat | LikertFormat | OpenFormat | Annotation | Step
"""How a condition asks: in a format, as an annotation of open answers, or by a step of a recipe."""

_FORMATS: dict[str, type[ClosedFormat | LikertFormat | OpenFormat]] = {
    "closed": ClosedFormat,
    "likert": LikertFormat,
    "open": OpenFormat,
}


def parse_form(stored: dict[str, Any]) -> Form:
    """A form from the JSON that a row holds."""
    if "step" in stored:
        return Step.model_validate(stored)
    return (_FORMATS[stored["format"]] if "format" in stored else Annotation).model_validate(stored)


def prompts_of(form: Form) -> Iterator[str]:
    """The prompts that a form itself names, its annotation's too."""
    if form.prompt is not None:
        yield form.prompt
    if isinstance(form, OpenFormat) and form.annotate is not None:
        yield form.annotate.prompt
