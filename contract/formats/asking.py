"""The functions of whatever form a condition asks in.

`earlier` is the text of the job's parent, None where it has none; `part` the number of the choice whose statement is
rated or made, 0 otherwise.
"""

from contract.answers import Answer
from contract.completion import Completion
from contract.formats import Variant, closed, generated, likert, open_answers
from contract.forms import Annotation, ClosedFormat, Form, LikertFormat, OpenFormat, Step
from contract.items import Item
from contract.prompts import PromptSet
from contract.reading import READINGS
from contract.reading.first_number import FIRST_NUMBER, FIRST_NUMBER_VERSION


def variants(form: Form, item: Item) -> tuple[Variant, ...]:
    """The variants in which `item` is asked; those of an annotation are those of what it annotates."""
    match form:
        case ClosedFormat():
            return closed.variants(item, form)
        case LikertFormat():
            return likert.variants(form)
        case OpenFormat():
            return open_answers.variants(form)
        case Step():
            return generated.variants(form)
        case Annotation():
            return ()


def parts(form: Form, item: Item) -> tuple[int, ...]:
    """The parts that `item` is asked in."""
    match form:
        case LikertFormat():
            return likert.parts(item)
        case Step():
            return generated.parts(form, item)
        case _:
            return (0,)


def render(
    form: Form, item: Item, variant: Variant, prompt: PromptSet, *, earlier: str | None = None, part: int = 0
) -> str:
    """The exact text that is sent. ValueError where the prompt places something that there is not."""
    match form:
        case ClosedFormat():
            return closed.render(item, variant, prompt)
        case LikertFormat():
            return likert.render(item, variant, prompt, part)
        case OpenFormat():
            return open_answers.render(item, variant, prompt)
        case Annotation():
            return open_answers.render_annotation(item, prompt, earlier or "")
        case Step():
            return generated.render(item, prompt, earlier, part)


def read(form: Form, completion: Completion, item: Item, variant: Variant, *, earlier: str | None = None) -> Answer:
    """What `completion` says by the rules of the form; never a guess."""
    match form:
        case ClosedFormat():
            return closed.read(completion, item, variant, READINGS[form.reading])
        case LikertFormat():
            return likert.read(completion, variant)
        case OpenFormat():
            return open_answers.read(completion)
        case Annotation():
            return open_answers.read_annotation(completion, item)
        case Step():
            return generated.read(completion, item, form, earlier)


def prefix(item: Item) -> str:
    """The text at the head of the prompt that other jobs share: jobs with one prefix follow each other."""
    return item.context or item.question


def reading_of(form: Form) -> tuple[str, int]:
    """The name and version of the rules by which its completions are read."""
    match form:
        case ClosedFormat():
            return form.reading, READINGS[form.reading].version
        case LikertFormat():
            return FIRST_NUMBER, FIRST_NUMBER_VERSION
        case OpenFormat():
            return open_answers.OPEN_TEXT, open_answers.OPEN_TEXT_VERSION
        case Annotation():
            return open_answers.OPTION_TEXT, open_answers.OPTION_TEXT_VERSION
        case Step():
            return generated.TEXT, generated.TEXT_VERSION
