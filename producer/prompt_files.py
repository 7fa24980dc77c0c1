"""The instrument of a dataset, a format or a step: one that comes along, or a text file beside the study file."""

from pathlib import Path

from contract.forms import Annotation, ClosedFormat, Form, LikertFormat, OpenFormat, Step
from contract.prompts import ANY_LANGUAGE, PromptSet, body_of, load_prompt
from contract.storable import is_storable
from contract.study import Study
from contract.yaml_lines import FieldPath, read_text
from producer.data_paths import unusable

_FILE = ".txt"
_QUESTION = ({"question"}, {"full_question"})
_FREE = {"context"}


def read_prompt(name: str, folder: Path, form: Form) -> PromptSet:
    """The instrument `name`, or the file of that name in `folder`.

    ValueError or InputError where there is none, or where it does not place what `form` needs in it.
    """
    prompt = _own_prompt(folder / name) if name.endswith(_FILE) else load_prompt(name)
    needed, told = _needed(form)
    for body in prompt.bodies.values():
        placed = PromptSet(name=name, bodies={ANY_LANGUAGE: body}).placeholders - _may_place(form)
        if not any(placed == places for places in needed):
            raise ValueError(f"a prompt for {told}, and {{context}} if it wants, and nothing else in braces")
    return prompt


def _needed(form: Form) -> tuple[list[set[str]], str]:
    """What a prompt places for `form`, one of these ways, and how that is said."""
    match form:
        case ClosedFormat():
            listed = [question | {choices} for question in _QUESTION for choices in ("choices", "options")]
            placed = [places | {"first", "second"} for places in (set[str](), *_QUESTION)]
            return [*listed, *placed], (
                "closed answers places {question} and {choices}, or {first} and {second} with words of its own"
            )
        case LikertFormat():
            return [{"scale", "rating_question"}], "Likert answers places {scale} and {rating_question}"
        case OpenFormat():
            instruction = {"reasoning_instruction"} if len(form.reasoning) > 1 else set[str]()
            return [question | instruction for question in _QUESTION], (
                "open answers places {question} or {full_question}, {reasoning_instruction} where it varies"
            )
        case Annotation():
            return [question | {"numbered_options", "model_answer"} for question in _QUESTION], (
                "annotations places {question} or {full_question}, {numbered_options} and {model_answer}"
            )
        case Step(each="choice"):
            return [{"question", "choice"}], "a text for each choice places {question} and {choice}"
        case Step():
            return [{"question", "earlier"} if form.after else {"question"}], (
                f"this step places {{question}}{' and {earlier}' if form.after else ''}, {{right_answer}} if it wants"
                f"{'' if form.after else '; {earlier} is for a step that comes after another'}"
            )


def _may_place(form: Form) -> set[str]:
    """What a prompt may place beyond what it must."""
    match form:
        case ClosedFormat():
            return _FREE | {"letters"}
        case OpenFormat() if len(form.reasoning) == 1:
            return _FREE | {"reasoning_instruction"}
        case Step(each=None):
            return _FREE | {"right_answer"}
        case _:
            return _FREE


def lists_letters(prompt: PromptSet) -> bool:
    """Whether the choices are shown behind letters; otherwise the words of the prompt name them."""
    return bool(prompt.placeholders & {"choices", "options"})


def needs_letters(study: Study) -> tuple[FieldPath, str] | None:
    """The field of `study` that speaks of letters, and what to do where a prompt has none; None if no field does."""
    for number, form in enumerate(study.formats):
        if form.constrain:
            return ("formats", number, "constrain"), "leave constrain out"
    rules = study.retry
    if rules.strategy == "constrain":
        return ("retry", "strategy"), "take resample or remind"
    if rules.strategy == "remind" and (rules.reminder is None or "{letters}" in rules.reminder):
        return ("retry", "reminder" if rules.reminder else "strategy"), "give a reminder without {letters}"
    return None


def _own_prompt(path: Path) -> PromptSet:
    problem = unusable(path)
    if problem:
        raise ValueError(problem)
    text = read_text(path)
    if not is_storable(text):
        raise ValueError(f"{path} holds a NUL character, which no database can store")
    body = body_of(text) if "\n---\n" in text else text.rstrip("\n")
    return PromptSet(name=path.stem, bodies={ANY_LANGUAGE: body})
