"""What a recorded answer is: read in its completion as a worker would, or as the file gives it. Pure."""

from string import ascii_uppercase

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant, asking
from contract.forms import Form, LikertFormat
from contract.items import Item
from contract.orders import choice_behind
from contract.storable import StorableText
from producer.recorded_rows import whole_number

GIVEN = "given"
"""The tier of an answer that the file gives."""
NO_ANSWER = "invalid"
"""What a file says in the place of an answer that could not be read; an empty field says the same."""


def read_completion(said: StorableText, form: Form, item: Item, variant: Variant) -> Answer:
    """What the completion says by the rules of its form."""
    return asking.read(form, Completion(text=said.text, truncated_from=said.cut_from), item, variant)


def given_answer(told: int | str | None, form: Form, item: Item, variant: Variant) -> Answer:
    """The answer that a file gives; ValueError where it can be none."""
    if told is None:
        return Answer(choice=None, tier=GIVEN, reason=InvalidReason.EMPTY)
    if isinstance(told, str) and told.casefold() == NO_ANSWER:
        return Answer(choice=None, tier=GIVEN, reason=InvalidReason.UNREADABLE)
    if isinstance(form, LikertFormat):
        return _rating(told, variant.points or 1)
    return Answer(choice=_choice(told, item, variant), tier=GIVEN)


def _rating(told: int | str, points: int) -> Answer:
    number = whole_number(told)
    if number is None:
        raise ValueError(f"{told!r:.80} is no rating: it is a whole number from 1 to {points}, or empty")
    if not 1 <= number <= points:
        return Answer(choice=None, tier=GIVEN, reason=InvalidReason.OFF_SCALE)
    return Answer(choice=None, rating=number, tier=GIVEN)


def _choice(told: int | str, item: Item, variant: Variant) -> int:
    """The choice that is meant, by its number, the letter before it or its text; never a guess."""
    count = len(item.choices)
    number = whole_number(told)
    found = {number - 1} if number is not None and 1 <= number <= count else set()
    if isinstance(told, str):
        found |= {index for index, choice in enumerate(item.choices) if choice.strip() == told}
        if len(told) == 1 and told in ascii_uppercase[: len(variant.order)]:
            found.add(choice_behind(told, variant.order))
    if len(found) == 1:
        return found.pop()
    letters = f", a letter to {ascii_uppercase[count - 1]}" if variant.order else ""
    known = f"a number from 1 to {count}{letters}, or the exact text of a choice"
    if found:
        raise ValueError(f"{told!r:.80} may mean several choices; map it to a number with answers in the study file")
    raise ValueError(f"{told!r:.80} is no choice of the item: it takes {known}, or is empty")
