"""The instrument of a dataset or a step: one that comes along, or a text file beside the study file."""

from pathlib import Path

from contract.prompts import ANY_LANGUAGE, PromptSet, body_of, load_prompt
from contract.storable import is_storable
from contract.study import Step, Study
from contract.yaml_lines import FieldPath, read_text
from producer.data_paths import unusable

_FILE = ".txt"
_LISTED = frozenset({"question", "choices"})
_PLACED = frozenset({"first", "second"})


def read_prompt(name: str, folder: Path) -> PromptSet:
    """The instrument `name`, or the file of that name in `folder`.

    ValueError or InputError where there is none, or where it does not place what a closed question needs.
    """
    prompt = _named(name, folder)
    for body in prompt.bodies.values():
        placed = PromptSet(name=name, bodies={ANY_LANGUAGE: body}).placeholders - {"context"}
        if placed != _LISTED and not _PLACED <= placed <= _PLACED | {"question"}:
            raise ValueError(
                "a prompt places {question} and {choices}, or {first} and {second} with words of its own, "
                "and {context} if it wants, and nothing else in braces"
            )
    return prompt


def read_step_prompt(step: Step, folder: Path) -> PromptSet:
    """The instrument of a step; ValueError or InputError where there is none, or where it does not place what it
    must: the question, and the earlier text where the step comes after another.
    """
    prompt = _named(step.prompt, folder)
    needed = {"question", "earlier"} if step.after else {"question"}
    if not needed <= prompt.placeholders <= needed | {"context", "right_answer"}:
        shown = "{question} and {earlier}" if step.after else "{question}"
        more = "" if step.after else "; {earlier} is for a step that comes after another"
        raise ValueError(
            f"the prompt of this step places {shown}, {{context}} and {{right_answer}} if it wants, and nothing else "
            f"in braces{more}"
        )
    return prompt


def lists_letters(prompt: PromptSet) -> bool:
    """Whether the choices are shown behind letters; otherwise the words of the prompt name them."""
    return "choices" in prompt.placeholders


def needs_letters(study: Study) -> tuple[FieldPath, str] | None:
    """The field of `study` that speaks of letters, and what to do where a prompt has none; None if no field does."""
    if study.forms[0].constrain:
        return ("formats", 0, "constrain"), "leave constrain out"
    rules = study.retry
    if rules.strategy == "constrain":
        return ("retry", "strategy"), "take resample or remind"
    if rules.strategy == "remind" and (rules.reminder is None or "{letters}" in rules.reminder):
        return ("retry", "reminder" if rules.reminder else "strategy"), "give a reminder without {letters}"
    return None


def _named(name: str, folder: Path) -> PromptSet:
    return _own_prompt(folder / name) if name.endswith(_FILE) else load_prompt(name)


def _own_prompt(path: Path) -> PromptSet:
    problem = unusable(path)
    if problem:
        raise ValueError(problem)
    text = read_text(path)
    if not is_storable(text):
        raise ValueError(f"{path} holds a NUL character, which no database can store")
    body = body_of(text) if "\n---\n" in text else text.rstrip("\n")
    return PromptSet(name=path.stem, bodies={ANY_LANGUAGE: body})
