"""Generated texts: a step of a recipe makes one text for each item, and its checks say whether that may be kept.

An item that gets texts has its right answers as choices; the first one is shown. Texts are compared as a reader would:
without case, punctuation and the width of blanks.
"""

import re
from collections.abc import Callable
from functools import cache

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.items import Item
from contract.prompts import PromptSet, fill
from contract.reading.languages import LANGUAGES
from contract.reading.markup import after_reasoning, normal
from contract.study import Check, Step

TEXT = "text"
"""The name of the reading that takes a whole completion, without reasoning, as the answer."""
TEXT_VERSION = 1

_APART = re.compile(r"[\W_]+")


def variants(step: Step) -> tuple[Variant, ...]:
    """The one variant of a step: itself."""
    return (Variant(step=step.step),)


def render(item: Item, prompt: PromptSet, earlier: str | None) -> str:
    """The exact text that is sent; `earlier` is the text of the step that this one comes after."""
    values = {"context": item.context or "", "question": item.question, "right_answer": item.choices[0]}
    if earlier is not None:
        values["earlier"] = earlier
    return fill(prompt.body(item.language), **values)


def read(completion: Completion, item: Item, step: Step, earlier: str | None) -> Answer:
    """The text that `completion` gives, as it stands but for blanks around it, or the first check that it fails."""
    if completion.truncated_from is not None or completion.cut_off:
        return Answer(choice=None, tier="length", reason=InvalidReason.TRUNCATED)
    # Characters are made plain only where reasoning has to be found and taken away: a text is kept as it was said.
    told = completion.text if _plain(completion.text) else after_reasoning(normal(completion.text))
    if told is None:
        return Answer(choice=None, tier="reasoning", reason=InvalidReason.TRUNCATED)
    text = told.strip()
    if not same(text):
        return Answer(choice=None, tier="blank", reason=InvalidReason.EMPTY)
    for check in step.checks:
        reason = _CHECKS[check](text, item, earlier)
        if reason is not None:
            return Answer(choice=None, tier=check, reason=reason)
    return Answer(choice=None, text=text, tier=TEXT)


def prefix(item: Item) -> str:
    """The text at the head of the prompt that other jobs share."""
    return item.context or item.question


def same(text: str) -> str:
    """What texts have in common that say the same: their words in lower case, parted by single blanks."""
    return _APART.sub(" ", normal(text).casefold()).strip()


def _plain(text: str) -> bool:
    return after_reasoning(normal(text)) == normal(text)


def _not_right(text: str, item: Item, _: str | None) -> InvalidReason | None:
    return InvalidReason.EQUALS_RIGHT if same(text) in map(same, item.choices) else None


def _not_earlier(text: str, _: Item, earlier: str | None) -> InvalidReason | None:
    return InvalidReason.EQUALS_EARLIER if earlier is not None and same(text) == same(earlier) else None


def _not_in_context(text: str, item: Item, _: str | None) -> InvalidReason | None:
    return InvalidReason.IN_CONTEXT if f" {same(text)} " in f" {same(item.context or '')} " else None


def _bare(text: str, _: Item, __: str | None) -> InvalidReason | None:
    if _refusal().match(text):
        return InvalidReason.REFUSAL
    return InvalidReason.NOT_BARE if "\n" in text or _label().match(text) else None


_CHECKS: dict[Check, Callable[[str, Item, str | None], InvalidReason | None]] = {
    "bare": _bare,
    "not_right": _not_right,
    "not_earlier": _not_earlier,
    "not_in_context": _not_in_context,
}


@cache
def _label() -> re.Pattern[str]:
    """What tells the text that follows what it is: "Answer:", "La risposta sbagliata è:"."""
    words = "|".join(filter(None, (part for known in LANGUAGES for part in (known.replies, known.headings))))
    articles = "|".join(filter(None, (known.articles for known in LANGUAGES)))
    return re.compile(rf"(?i)[*_#\s]*(?:(?:{articles})\s*)?(?:{words})\b[^:\n]{{0,60}}:")


@cache
def _refusal() -> re.Pattern[str]:
    """The beginning of a sentence that declines; one word alone may be an answer."""
    words = "|".join(filter(None, (known.refusals for known in LANGUAGES)))
    return re.compile(rf"(?i)(?:(?:i|we|am|are|sorry|io|purtroppo|scusa|però)\W+){{0,3}}(?:{words})\b\W+\w+")
