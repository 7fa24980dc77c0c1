"""The four functions of whatever form a condition asks in.

`earlier` is the text of the job's parent, None where it has none.
"""

from contract.answers import Answer
from contract.completion import Completion
from contract.formats import Variant, closed, generated
from contract.items import Item
from contract.prompts import PromptSet
from contract.reading import READINGS
from contract.study import ClosedFormat, Form


def variants(form: Form, item: Item) -> tuple[Variant, ...]:
    """The variants in which `item` is asked."""
    return closed.variants(item) if isinstance(form, ClosedFormat) else generated.variants(form)


def render(form: Form, item: Item, variant: Variant, prompt: PromptSet, *, earlier: str | None = None) -> str:
    """The exact text that is sent. ValueError where the prompt places something that there is not."""
    if isinstance(form, ClosedFormat):
        return closed.render(item, variant, prompt)
    return generated.render(item, prompt, earlier)


def read(form: Form, completion: Completion, item: Item, variant: Variant, *, earlier: str | None = None) -> Answer:
    """What `completion` says by the rules of the form; never a guess."""
    if isinstance(form, ClosedFormat):
        return closed.read(completion, item, variant, READINGS[form.reading])
    return generated.read(completion, item, form, earlier)


def prefix(form: Form, item: Item) -> str:
    """The text at the head of the prompt that other jobs share: jobs with one prefix follow each other."""
    return closed.prefix(item) if isinstance(form, ClosedFormat) else generated.prefix(item)


def reading_of(form: Form) -> tuple[str, int]:
    """The name and version of the rules by which its completions are read."""
    if isinstance(form, ClosedFormat):
        return form.reading, READINGS[form.reading].version
    return generated.TEXT, generated.TEXT_VERSION
