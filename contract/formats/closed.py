"""Closed answers: the choices stand behind letters and the model must name one letter."""

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant
from contract.forms import ClosedFormat
from contract.items import Item
from contract.orders import choice_behind, letters_for, orders_for
from contract.prompts import PromptSet, fill
from contract.reading import READINGS, STRICT, Reading


def variants(item: Item, form: ClosedFormat | None = None) -> tuple[Variant, ...]:
    """The orders in which `item` is asked, canonical order first; both of two choices where no form says otherwise."""
    return tuple(Variant(order=order) for order in orders_for(form.orders if form else "both", len(item.choices)))


def render(item: Item, variant: Variant, prompt: PromptSet) -> str:
    """The exact text that is sent: orders of one item differ in nothing but the choices' places."""
    letters = letters_for(len(item.choices))
    shown = [item.choices[choice] for choice in variant.order]
    *first, last = letters
    places = {
        "choices": _listed(letters, shown, "{}) {}"),
        "options": _listed(letters, shown, "{}. {}"),
        "letters": f"{', '.join(first)}, or {last}" if len(first) > 1 else f"{first[0]} or {last}",
        "first": shown[0],
        "second": shown[1],
    }
    return fill(prompt.body(item.language), **question_places(item), **places)


def question_places(item: Item) -> dict[str, str]:
    """What every prompt may place of the question itself."""
    whole = f"{item.context} {item.question}" if item.context else item.question
    return {"context": item.context or "", "question": item.question, "full_question": whole}


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


def _listed(letters: tuple[str, ...], shown: list[str], line: str) -> str:
    return "\n".join(line.format(letter, text) for letter, text in zip(letters, shown, strict=True))
