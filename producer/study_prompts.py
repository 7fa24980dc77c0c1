"""The instruments of a study: read, and held against the items that they are to serve."""

from contract.errors import InputError
from contract.items import Item
from contract.prompts import PromptSet
from contract.reminders import reminder
from contract.study import Dataset, Form, Step
from contract.yaml_lines import FieldPath
from producer.loaded_study import LoadedStudy
from producer.prompt_files import lists_letters, needs_letters, read_prompt, read_step_prompt


def step_prompt(loaded: LoadedStudy, step: Step, field: FieldPath) -> PromptSet:
    """The instrument that `field` names for a step; InputError where there is none or it does not serve."""
    try:
        return read_step_prompt(step, loaded.path.parent)
    except (ValueError, InputError) as error:
        raise loaded.refuse(field, str(error)) from None


def dataset_prompt(loaded: LoadedStudy, dataset: Dataset, name: str, field: FieldPath) -> PromptSet:
    """The instrument `name`, which `field` names for a dataset; InputError where there is none or it does not serve."""
    try:
        prompt = read_prompt(name, loaded.path.parent)
    except (ValueError, InputError) as error:
        raise loaded.refuse(field, str(error)) from None
    letters = None if lists_letters(prompt) else needs_letters(loaded.study)
    if letters is not None:
        wanting, remedy = letters
        problem = f"speaks of letters, and {name} of {dataset.name} shows none; {remedy}"
        raise loaded.refuse(wanting, problem)
    return prompt


def check_reminder(loaded: LoadedStudy, dataset: Dataset, items: list[Item]) -> None:
    """Where the study reminds, every item must find a sentence in its language."""
    rules = loaded.study.retry
    if rules.strategy != "remind":
        if rules.reminder is not None:
            raise loaded.refuse(("retry", "reminder"), "only strategy remind sends it; set the strategy or take it out")
        return
    for item in items:
        try:
            reminder(rules, item.language, len(item.choices) if loaded.study.formats else 0)
        except ValueError as error:
            problem = f"{error} (item {item.source_id} of {dataset.name})"
            raise loaded.refuse(("retry", "strategy" if rules.reminder is None else "reminder"), problem) from None


def check_prompt_fits(loaded: LoadedStudy, dataset: Dataset, form: Form, items: list[Item], field: FieldPath) -> None:
    """Every item must find a body in its language, and a context where the body places one."""
    prompt = loaded.prompt(dataset, form)
    if isinstance(form, Step):
        field = ("steps", loaded.study.steps.index(form))
    for item in items:
        try:
            body = prompt.body(item.language)
        except ValueError as error:
            raise loaded.refuse((*field, "prompt"), f"{error} (item {item.source_id})") from None
        if isinstance(form, Step) and "not_in_context" in form.checks and item.context is None:
            problem = f"not_in_context needs a paragraph, and item {item.source_id} has no context"
            raise loaded.refuse((*field, "checks"), problem)
        if "{context}" in body and item.context is None:
            problem = f"{prompt.name} places {{context}}, and item {item.source_id} has no context"
            raise loaded.refuse((*field, "prompt"), problem)
