"""The instruments of a study: read, and held against the items that they are to serve."""

from contract.errors import InputError
from contract.forms import ClosedFormat, Form, OpenFormat, Step
from contract.items import Item
from contract.reminders import reminder
from contract.study import Dataset
from contract.yaml_lines import FieldPath, print_path
from producer.loaded_study import LoadedStudy
from producer.prompt_files import lists_letters, needs_letters, read_prompt


def read_prompts(loaded: LoadedStudy) -> None:
    """Read every instrument that the study names; InputError where there is none or it does not serve its form."""
    study = loaded.study
    for number, step in enumerate(study.steps):
        _read(loaded, step, step.prompt, ("steps", number, "prompt"))
    for number, form in enumerate(study.formats):
        if form.prompt is not None:
            _read(loaded, form, form.prompt, ("formats", number, "prompt"))
        if isinstance(form, OpenFormat) and form.annotate is not None:
            _read(loaded, form.annotate, form.annotate.prompt, ("formats", number, "annotate", "prompt"))
    closed = next((form for form in study.formats if isinstance(form, ClosedFormat)), None)
    for number, dataset in enumerate(study.datasets):
        if dataset.prompt is not None and closed is not None:
            _read(loaded, closed, dataset.prompt, ("datasets", number, "prompt"))


def _read(loaded: LoadedStudy, form: Form, name: str, field: FieldPath) -> None:
    try:
        prompt = loaded.prompts[name] = read_prompt(name, loaded.path.parent, form)
    except (ValueError, InputError) as error:
        raise loaded.refuse(field, str(error)) from None
    letters = needs_letters(loaded.study) if isinstance(form, ClosedFormat) and not lists_letters(prompt) else None
    if letters is not None:
        wanting, remedy = letters
        datasets = loaded.study.datasets
        whose = datasets[int(field[1])].name if field[0] == "datasets" else print_path(field[:-1])
        raise loaded.refuse(wanting, f"speaks of letters, and {name} of {whose} shows none; {remedy}")


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
    if form.prompt is not None:
        field = _place_of(loaded, form)
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


def _place_of(loaded: LoadedStudy, form: Form) -> FieldPath:
    """Where the study file speaks of a form that names its own prompt."""
    for part in ("steps", "formats"):
        for number, known in enumerate(getattr(loaded.study, part)):
            if known is form:
                return (part, number)
            if isinstance(known, OpenFormat) and known.annotate is form:
                return (part, number, "annotate")
    raise LookupError("the form is none of this study")
