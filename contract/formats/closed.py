"""Closed answers: the choices stand behind letters and the model must name one letter."""

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.items import Item
from contract.orders import both_orders, choice_behind, letters_for
from contract.prompts import PromptSet, fill
from contract.reading import READINGS, STRICT, Reading


def variants(item: Item) -> tuple[Variant, ...]:
    """The two orders of a two-choice item, canonical order first."""
    return tuple(Variant(order=order) for order in both_orders(len(item.choices)))


def render(item: Item, variant: Variant, prompt: PromptSet) -> str:
    """The exact text that is sent: orders of one item differ in nothing but the choices' places."""
    letters = letters_for(len(item.choices))
    shown = [item.choices[choice] for choice in variant.order]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(letters, shown, strict=True))
    places = {"choices": listed, "first": shown[0], "second": shown[1]}
    return fill(prompt.body(item.language), context=item.context or "", question=item.question, **places)


def read(completion: Completion, item: Item, variant: Variant, reading: Reading = READINGS[STRICT]) -> Answer:
    """What `completion` says by the rules of `reading`, as a choice of `item`; never a guess."""
    if completion.truncated_from is not None:
        return Answer(choice=None, tier="length", reason=InvalidReason.TRUNCATED)
    shown = tuple(item.choices[choice] for choice in variant.order)
    letters = letters_for(len(shown))
    found = reading.read(
        completion.text, letters=letters, choices=shown, cut_off=completion.cut_off, language=item.language
    )
    if found.letter is None:
        return Answer(choice=None, tier=found.tier, reason=found.reason)
    return Answer(choice=choice_behind(found.letter, variant.order), tier=found.tier)


def prefix(item: Item) -> str:
    """The text at the head of the prompt that other jobs share: jobs with one prefix follow each other."""
    return item.context or item.question
