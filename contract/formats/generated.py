"""Generated texts: a step of a recipe makes one text for each item or choice; its checks say whether it may be kept.

An item that gets wrong answers has its right answers as choices; the first one is shown. One whose choices get a text
each (a statement to be rated) shows the choice.
"""

from collections.abc import Callable

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.forms import Check, Step
from contract.items import Item
from contract.prompts import PromptSet, fill
from contract.reading.bare import unwrapped, why_not_bare
from contract.reading.markup import after_reasoning
from contract.reading.same import contains, same

TEXT = "text"
"""The name of the reading that takes a whole completion, without reasoning and what is wrapped around it."""
TEXT_VERSION = 1


def variants(step: Step) -> tuple[Variant, ...]:
    """The one variant of a step: itself."""
    return (Variant(step=step.step),)


def parts(step: Step, item: Item) -> tuple[int, ...]:
    """The choices that get a text, by their numbers from 1; 0 for a text of the whole item."""
    return item.opinions if step.each == "choice" else (0,)


def render(item: Item, prompt: PromptSet, earlier: str | None, part: int) -> str:
    """The exact text that is sent; `earlier` is the text of the step that this one comes after."""
    values = {"context": item.context or "", "question": item.question, "right_answer": item.choices[0]}
    if part:
        values["choice"] = item.choices[part - 1]
    if earlier is not None:
        values["earlier"] = earlier
    return fill(prompt.body(item.language), **values)


def read(completion: Completion, item: Item, step: Step, earlier: str | None) -> Answer:
    """The text that `completion` gives, in its own words, or the first check that it fails."""
    if completion.truncated_from is not None or completion.cut_off:
        return Answer(choice=None, tier="length", reason=InvalidReason.TRUNCATED)
    told = after_reasoning(completion.text)
    if told is None:
        return Answer(choice=None, tier="reasoning", reason=InvalidReason.TRUNCATED)
    text = unwrapped(told)
    if not same(text):
        return Answer(choice=None, tier="blank", reason=InvalidReason.EMPTY)
    for check in step.checks:
        reason = _CHECKS[check](text, item, earlier)
        if reason is not None:
            return Answer(choice=None, tier=check, reason=reason)
    return Answer(choice=None, text=text, tier=TEXT)


def _not_right(text: str, item: Item, _: str | None) -> InvalidReason | None:
    return InvalidReason.EQUALS_RIGHT if same(text) in map(same, item.choices) else None


def _not_earlier(text: str, _: Item, earlier: str | None) -> InvalidReason | None:
    return InvalidReason.EQUALS_EARLIER if earlier is not None and same(text) == same(earlier) else None


def _not_in_context(text: str, item: Item, _: str | None) -> InvalidReason | None:
    return InvalidReason.IN_CONTEXT if contains(item.context or "", text) else None


def _bare(text: str, _: Item, __: str | None) -> InvalidReason | None:
    return why_not_bare(text)


def _not_question(text: str, _: Item, __: str | None) -> InvalidReason | None:
    return InvalidReason.QUESTION if "?" in text else None


_CHECKS: dict[Check, Callable[[str, Item, str | None], InvalidReason | None]] = {
    "bare": _bare,
    "not_right": _not_right,
    "not_earlier": _not_earlier,
    "not_in_context": _not_in_context,
    "not_question": _not_question,
}
