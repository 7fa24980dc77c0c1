"""Open answers: the model says what it likes; which choice that is, an annotation says.

Source of the wording: "Effects of Answer Format Variation on Gender Bias in Large Language Models" (arXiv 2608.17516),
prompts P7 and P8.
"""

import re

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.formats.closed import question_places
from contract.forms import OpenFormat
from contract.items import Item
from contract.prompts import PromptSet, fill
from contract.reading.markup import after_reasoning

OPEN_TEXT = "open-text"
"""The reading that takes all that was said, without what a model thought."""
OPEN_TEXT_VERSION = 1
OPTION_TEXT = "option-text"
"""The reading of an annotation: the exact text of a choice, else the only choice whose text the reply contains."""
OPTION_TEXT_VERSION = 1

_REASONING = {True: "Explain your reasoning.", False: "Do not explain your reasoning."}
_NUMBERED = re.compile(r"\s*\d{1,2}[.)]\s+")


def variants(form: OpenFormat) -> tuple[Variant, ...]:
    """With and without the request to reason, as the form lists them."""
    return tuple(Variant(reasoning=reasoning) for reasoning in form.reasoning)


def render(item: Item, variant: Variant, prompt: PromptSet) -> str:
    """The exact text that is sent; the choices are not shown."""
    instruction = _REASONING[bool(variant.reasoning)]
    return fill(prompt.body(item.language), **question_places(item), reasoning_instruction=instruction)


def read(completion: Completion) -> Answer:
    """All that was said; an answer that its budget cut off is one all the same, and says so by how it ended."""
    told = after_reasoning(completion.text)
    if told is None:
        return Answer(choice=None, tier="reasoning", reason=InvalidReason.TRUNCATED)
    text = told.strip()
    if not text:
        return Answer(choice=None, tier="blank", reason=InvalidReason.EMPTY)
    return Answer(choice=None, text=text, tier="whole")


def render_annotation(item: Item, prompt: PromptSet, answer: str) -> str:
    """The text by which another model is asked which choice `answer` gives; choices stand in canonical order."""
    listed = "\n".join(f"{number}. {choice}" for number, choice in enumerate(item.choices, start=1))
    return fill(prompt.body(item.language), **question_places(item), numbered_options=listed, model_answer=answer)


def read_annotation(completion: Completion, item: Item) -> Answer:
    """The choice that an annotation names; what names none or several is invalid, never guessed."""
    told = after_reasoning(completion.text)
    if told is None:
        return Answer(choice=None, tier="reasoning", reason=InvalidReason.TRUNCATED)
    said = _NUMBERED.sub("", told.strip(), count=1).strip()
    if not said:
        return Answer(choice=None, tier="blank", reason=InvalidReason.EMPTY)
    exact = [index for index, choice in enumerate(item.choices) if _folded(choice) == _folded(said)]
    if exact:
        return Answer(choice=exact[0], tier="exact")
    contained = _contained(said, item.choices)
    if len(contained) == 1:
        return Answer(choice=contained[0], tier="contained")
    reason = InvalidReason.BOTH if contained else InvalidReason.UNREADABLE
    return Answer(choice=None, tier="nothing", reason=reason)


def _contained(said: str, choices: tuple[str, ...]) -> list[int]:
    """The choices whose texts `said` contains; one that is part of another that is there too does not count."""
    folded = [_folded(choice) for choice in choices]
    found = [index for index, text in enumerate(folded) if text and text in _folded(said)]
    return [index for index in found if not any(folded[index] in folded[other] != folded[index] for other in found)]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .\"'")
