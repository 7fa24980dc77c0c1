"""Corrections of a study file, made in the contexts and questions of items."""

from collections.abc import Sequence
from dataclasses import replace

from contract.corrections import Correction
from contract.items import Item
from producer.datasets.faults import DatasetFieldError


def corrected(items: Sequence[Item], corrections: Sequence[Correction]) -> list[Item]:
    """The items with each correction made, one after the other; one that finds nothing is refused."""
    made = list(items)
    for number, correction in enumerate(corrections):
        before = made
        made = [_corrected(item, correction) for item in before]
        if made == before:
            problem = f"no context and no question holds {correction.find!r:.80}, or nothing would change; take it out"
            raise DatasetFieldError(("corrections", number, "find"), problem)
    return made


def _corrected(item: Item, correction: Correction) -> Item:
    texts = [text or "" for text in (item.context, item.question)]
    if not any(correction.find in text for text in texts):
        return item
    context, question = (text.replace(correction.find, correction.replace) for text in texts)
    return replace(item, context=None if item.context is None else context, question=question)
