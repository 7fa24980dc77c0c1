"""What holds for a recipe: a study file with steps, which make texts, in the place of formats."""

from collections.abc import Iterator

from contract.forms import OpenFormat, Step
from contract.study import Dataset, Output, Study
from contract.yaml_lines import FieldPath

OUTPUT_FIELDS = ("wrong_answer", "second_wrong_answer", "statements")

Fault = tuple[FieldPath, str]
"""A field, and what is wrong with it."""


def kind_faults(study: Study) -> Iterator[Fault]:
    """What keeps a study from being one that asks, or a recipe."""
    if study.formats and study.steps:
        yield ("steps",), "a study has formats, which ask, or steps, which make data; take one of them out"
    if not study.formats and not study.steps:
        yield ("formats",), "is missing"
    for number, dataset in enumerate(study.datasets):
        if dataset.prompt is None and any(form.prompt is None for form in study.formats):
            yield ("datasets", number, "prompt"), "is missing"
    if study.formats and study.writes:
        yield ("writes",), "only a recipe, a study with steps, writes data files; take this field out"
    yield from _format_faults(study)
    if study.steps:
        yield from _recipe_faults(study)


def _format_faults(study: Study) -> Iterator[Fault]:
    """What keeps several formats from standing side by side."""
    seen: dict[str, int] = {}
    for number, form in enumerate(study.formats):
        if form.format in seen:
            problem = f"formats[{seen[form.format]}] is {form.format} as well; give one entry of each format"
            yield ("formats", number), problem
        seen[form.format] = number
        if isinstance(form, OpenFormat) and form.annotate is not None and study.annotator is None:
            yield ("formats", number, "annotate"), "needs a model: name it in `annotator`, as an entry of `models` is"
        if form.format != "closed":
            yield from _retry_faults(study, form.format)
    if study.annotator is not None and study.annotator.name in [model.name for model in study.models]:
        yield ("annotator", "name"), f"{study.annotator.name} is also the name of a model; names must differ"


def _retry_faults(study: Study, what: str) -> Iterator[Fault]:
    """What of the retry rules is for letters alone."""
    if study.retry.strategy == "constrain":
        yield ("retry", "strategy"), f"{what} answers cannot be constrained; take resample or remind"
    if study.retry.strategy == "remind" and study.retry.reminder is None:
        yield ("retry", "strategy"), "ours speaks of letters; give a sentence of your own in retry.reminder"


def _recipe_faults(study: Study) -> Iterator[Fault]:
    yield from _step_faults(study)
    yield from _output_faults(study)
    for number, dataset in enumerate(study.datasets):
        yield from _dataset_faults(study, number, dataset)
    if len(study.models) > 1:
        yield ("models", 1), "a recipe asks one model, whose texts make the files; give one"
    if study.repeats > 1:
        yield ("repeats",), "a recipe makes one text for each item and step; take this field out"
    yield from _retry_faults(study, "open")


def of_choices(study: Study) -> bool:
    """Whether a recipe makes a text for each choice, as statements are, and none for each item."""
    return any(step.each == "choice" for step in study.steps)


def _step_faults(study: Study) -> Iterator[Fault]:
    seen: list[str] = []
    for number, step in enumerate(study.steps):
        place: FieldPath = ("steps", number)
        if step.step in seen:
            yield (*place, "step"), f"{step.step} is also the name of steps[{seen.index(step.step)}]; names must differ"
        if step.after is not None and step.after not in seen:
            yield (*place, "after"), f"there is no step {step.after} before this one"
        if "not_earlier" in step.checks and step.after is None:
            yield (*place, "checks"), "not_earlier is for a step that comes after another; name that in `after`"
        if of_choices(study):
            yield from _choice_faults(step, place)
        seen.append(step.step)


def _choice_faults(step: Step, place: FieldPath) -> Iterator[Fault]:
    if step.each is None:
        yield (*place, "each"), "other steps make a text for each choice; so must this one: each: choice"
    if step.after is not None:
        yield (*place, "after"), "a text for each choice comes after no other; take this field out"
    for check in step.checks:
        if check not in ("bare", "not_question"):
            yield (*place, "checks"), f"{check} is for wrong answers; a text for each choice has bare and not_question"


def _output_faults(study: Study) -> Iterator[Fault]:
    if not study.writes:
        yield ("writes",), "is missing; name the files, each with the steps that are its wrong answers"
    known = [step.step for step in study.steps]
    files: list[str] = []
    for number, output in enumerate(study.writes):
        yield from _field_faults(study, output, ("writes", number))
        for field in OUTPUT_FIELDS:
            name = getattr(output, field)
            if name is not None and name not in known:
                yield ("writes", number, field), f"there is no step {name}; there are {', '.join(known)}"
        if output.file in files:
            yield ("writes", number, "file"), f"writes[{files.index(output.file)}] has the same file; names must differ"
        files.append(output.file)


def _field_faults(study: Study, output: Output, place: FieldPath) -> Iterator[Fault]:
    """What keeps a file from having the rows that the steps make texts for."""
    fields, made = (("statements",), "choice") if of_choices(study) else (OUTPUT_FIELDS[:2], "item")
    if getattr(output, fields[0]) is None:
        yield (*place, fields[0]), "is missing; name the step that makes them"
    for field in OUTPUT_FIELDS:
        if field not in fields and getattr(output, field) is not None:
            yield (*place, field), f"the steps make a text for each {made}; name one as {fields[0]}"


def _dataset_faults(study: Study, number: int, dataset: Dataset) -> Iterator[Fault]:
    place: FieldPath = ("datasets", number)
    if number:
        yield place, "a recipe makes its files of one dataset; give one"
    if dataset.prompt is not None:
        yield (*place, "prompt"), "the steps of a recipe name their prompts; take this field out"
    if not of_choices(study) and dataset.loader not in ("squad_it", "items"):
        yield (*place, "loader"), "a recipe takes the loader squad_it, or items with the right answers as choices"
    for field in ("wrong_answers", "stand_ins"):
        if getattr(dataset, field) is not None:
            yield (*place, field), "a recipe makes the wrong answers; take this field out"
