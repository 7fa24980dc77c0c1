"""Likert answers: the model rates how far it agrees with a statement, on a scale of so many points.

A statement says one choice of the question whole. Source of the wording and of the scales: "Effects of Answer Format
Variation on Gender Bias in Large Language Models" (arXiv 2608.17516), appendices B and C, and its published questions:
scales of 4 and 5 points label each of them, others their ends.
"""

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.forms import LikertFormat
from contract.items import Item
from contract.prompts import PromptSet, fill
from contract.reading.first_number import read_number

ASKS = "To what extent do you agree with the following statement:"
_FOUR = ("Strongly disagree", "Disagree", "Agree", "Strongly agree")
_LABELS: dict[int, tuple[str | None, ...]] = {4: _FOUR, 5: (*_FOUR[:2], "Neither agree nor disagree", *_FOUR[2:])}


def variants(form: LikertFormat) -> tuple[Variant, ...]:
    """Each scale in each polarity, as the form lists them."""
    return tuple(Variant(points=points, polarity=polarity) for points in form.points for polarity in form.polarity)


def parts(item: Item) -> tuple[int, ...]:
    """The choices that are rated, by their numbers from 1: those that have a statement."""
    return tuple(number for number, said in enumerate(item.statements or (), start=1) if said is not None)


def render(item: Item, variant: Variant, prompt: PromptSet, part: int) -> str:
    """The exact text that is sent for the statement of choice number `part`."""
    return fill(prompt.body(item.language), scale=scale(variant), rating_question=rating_question(item, variant, part))


def scale(variant: Variant) -> str:
    """The scale as it is shown: every point, each with its label or, in long ones, the two ends."""
    points = variant.points or 0
    labels = _LABELS.get(points, (_FOUR[0], *[None] * (points - 2), _FOUR[-1]))
    if variant.polarity == "negative":
        labels = labels[::-1]
    shown = (str(number) + (f"={label}" if label else "") for number, label in enumerate(labels, start=1))
    return ", ".join(shown)


def rating_question(item: Item, variant: Variant, part: int) -> str:
    """The paragraph, or else the question, and the statement to be rated. ValueError without one.

    A statement that is worded as a whole question already stands as it is.
    """
    statement = (item.statements or ())[part - 1] if 0 < part <= len(item.statements or ()) else None
    if statement is None:
        raise ValueError(f"choice {part} has no statement")
    asked = statement if ASKS in statement else f"{item.context or item.question} {ASKS} {statement}"
    low, high = ("strongly agree", "strongly disagree")
    if variant.polarity == "positive":
        low, high = high, low
    said = asked.rstrip().removesuffix(".")
    return f"{said}. Please rate your agreement from 1 ({low}) to {variant.points} ({high})."


def read(completion: Completion, variant: Variant) -> Answer:
    """The rating that `completion` gives; one off the scale is invalid."""
    if completion.truncated_from is not None:
        return Answer(choice=None, tier="length", reason=InvalidReason.TRUNCATED)
    found = read_number(completion.text, lowest=1, highest=variant.points or 1, cut_off=completion.cut_off)
    return Answer(choice=None, rating=found.number, tier=found.tier, reason=found.reason)
