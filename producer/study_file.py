"""Reads a study file. What is wrong is refused with file, line, the field's path and what would be right."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from contract.errors import InputError, UsageError
from contract.items import Item
from contract.recorded import RecordedModel
from contract.refusals import refusal
from contract.study import Dataset, Study
from contract.yaml_lines import FieldPath, YamlDocument, print_path, read_text
from producer.data_files import DataFiles, Fetch, FoundFiles, from_cache
from producer.data_paths import filled
from producer.dataset_fields import field_faults
from producer.datasets import load_dataset
from producer.datasets.faults import DatasetFieldError
from producer.datasets.statements import with_statements
from producer.format_faults import check_form_fits, countable
from producer.loaded_study import LoadedStudy
from producer.recipe_file import kind_faults, of_choices
from producer.study_prompts import check_prompt_fits, check_reminder, read_prompts


def read_study(
    path: Path,
    *,
    limit: int | None = None,
    data: Mapping[str, str | Path] = {},
    may_lack_data: bool = False,
    fetch: Fetch | None = None,
    changes: Mapping[str, object] = {},
) -> LoadedStudy:
    """The study in `path` with its items and prompts.

    `limit` keeps the first items of each dataset; `data` names a file or an address for a dataset, whatever its `path`
    says. `may_lack_data`: a dataset that says what to expect may do without its file. `fetch` is asked for files that
    live at an address; without it they are taken from the cache, and nothing is fetched. `changes` stand in the place
    of fields of the file.
    """
    loaded = open_study(path, changes={**changes, **({} if limit is None else {"limit": limit})})
    _refuse_mixtures(loaded)
    _refuse_twins(loaded)
    _refuse_unconstrained(loaded)
    _refuse_strangers(loaded.study, data)
    files = DataFiles(study=path, given=data, fetch=fetch or from_cache)
    read_prompts(loaded)
    for number, dataset in enumerate(loaded.study.datasets):
        place: FieldPath = ("datasets", number)
        _refuse_combination(loaded, dataset, place)
        found = loaded.files[dataset.name] = _find(loaded, dataset, place, files)
        if may_lack_data and dataset.expect is not None and found.may_lack and countable(loaded.study):
            loaded.expected[dataset.name] = min(dataset.expect.items, loaded.study.limit or dataset.expect.items)
        expected = dataset.name in loaded.expected
        loaded.items[dataset.name] = [] if expected else _items(loaded, dataset, place, found)
    return loaded


def find_data(
    path: Path, data: Mapping[str, str | Path], fetch: Fetch
) -> Iterator[tuple[Dataset, FoundFiles | UsageError]]:
    """The files of each dataset of the study in `path`, or why they cannot be used; no item is read of them."""
    loaded = open_study(path, names_models=False)
    _refuse_mixtures(loaded)
    _refuse_twins(loaded)
    _refuse_strangers(loaded.study, data)
    files = DataFiles(study=path, given=data, fetch=fetch)
    for number, dataset in enumerate(loaded.study.datasets):
        try:
            yield dataset, _find(loaded, dataset, ("datasets", number), files)
        except UsageError as error:
            yield dataset, error


def open_study(path: Path, *, changes: Mapping[str, object] = {}, names_models: bool = True) -> LoadedStudy:
    """The study in `path` by what stands in it, without what it refers to; its models as the environment names them."""
    document = YamlDocument(path, read_text(path))
    if not isinstance(document.values, dict):
        raise InputError(path, "a study file is a mapping that begins with `study: NAME`", line=1)
    for name, value in changes.items():
        document.put(name, value)
    if names_models:
        _fill_models(path, document)
    try:
        study = Study.model_validate(document.values)
    except ValidationError as error:
        raise refusal(path, document, error.errors(include_url=False)) from None
    return LoadedStudy(path=path, study=study, items={}, prompts={}, document=document)


def _fill_models(path: Path, document: YamlDocument) -> None:
    """Fill the variables in the names that servers know models by, for what a study cannot know: a tag of one's own."""
    models = document.values.get("models")
    for number, model in enumerate(models if isinstance(models, list) else ()):
        if not isinstance(model, dict) or not isinstance(model.get("model"), str):
            continue
        field: FieldPath = ("models", number, "model")
        try:
            model["model"] = filled(model["model"], os.environ)
        except KeyError as error:
            problem = f"the variable {error.args[0]} is not set; set it to the name that the server knows the model by"
            raise InputError(path, problem, line=document.line_of(field), field=print_path(field)) from None
        except ValueError as error:
            raise InputError(path, str(error), line=document.line_of(field), field=print_path(field)) from None


def study_name(path: Path) -> str:
    """The name that the study file `path` gives its study; nothing else in it is looked at."""
    document = YamlDocument(path, read_text(path))
    name = document.values.get("study") if isinstance(document.values, dict) else None
    if not isinstance(name, str):
        raise InputError(path, "is missing", line=1, field="study")
    return name


def _refuse_mixtures(loaded: LoadedStudy) -> None:
    """A study asks, or it is a recipe and makes data."""
    for field, problem in kind_faults(loaded.study):
        raise loaded.refuse(field, problem)


def _refuse_twins(loaded: LoadedStudy) -> None:
    for part, entries in (("datasets", loaded.study.datasets), ("models", loaded.study.models)):
        seen: dict[str, int] = {}
        for number, entry in enumerate(entries):
            if entry.name in seen:
                problem = f"{entry.name} is also the name of {part}[{seen[entry.name]}]; names must differ"
                raise loaded.refuse((part, number, "name"), problem)
            seen[entry.name] = number


def _refuse_unconstrained(loaded: LoadedStudy) -> None:
    """A format that limits the answers needs servers that can be told so."""
    forms = loaded.study.formats
    limiting = [f"formats[{number}]" for number, form in enumerate(forms) if form.constrain]
    limited = next(iter(limiting), "retry" if loaded.study.retry.strategy == "constrain" else None)
    for number, model in enumerate(loaded.study.models):
        if limited is not None and not model.can_constrain:
            problem = (
                f"{limited} constrains the answers: add constrains_by with the way that this server takes "
                "(structured_outputs, guided_choice, grammar or json_schema), or take constrain out"
            )
            if isinstance(model, RecordedModel):
                problem = f"{limited} constrains the answers, and recorded ones are there already; take constrain out"
            raise loaded.refuse(("models", number), problem)


def _refuse_strangers(study: Study, data: Mapping[str, object]) -> None:
    known = [dataset.name for dataset in study.datasets]
    for name in data:
        if name not in known:
            raise UsageError(f"--data {name}: study {study.study} has no such dataset; it has {', '.join(known)}")


def _find(loaded: LoadedStudy, dataset: Dataset, place: FieldPath, files: DataFiles) -> FoundFiles:
    """The dataset's files, where they are at hand."""
    return files.find(dataset, lambda name, problem: loaded.refuse((*place, name), problem))


def _items(loaded: LoadedStudy, dataset: Dataset, field: FieldPath, found: FoundFiles) -> list[Item]:
    try:
        whole = bool(loaded.study.formats) or of_choices(loaded.study)
        items = load_dataset(dataset, *found.paths(), to_be_answered=whole)
    except DatasetFieldError as error:
        raise loaded.refuse((*field, *error.field), error.problem) from None
    _check_expectation(loaded, dataset, len(items), field)
    check_reminder(loaded, dataset, items)
    asked = items[: loaded.study.limit]
    if found.statements is not None:
        asked = with_statements(asked, found.statements.at_hand())
    for form in loaded.study.all_forms:
        check_prompt_fits(loaded, dataset, form, items, field)
        check_form_fits(loaded, dataset, form, asked, field)
    return asked


def _refuse_combination(loaded: LoadedStudy, dataset: Dataset, field: FieldPath) -> None:
    """Some fields belong to one loader, and that loader cannot do without them."""
    for name, problem in field_faults(dataset):
        raise loaded.refuse((*field, name), problem)
    if (dataset.loader in ("uncertainty", "squad_it_2")) != (dataset.setting is not None):
        problem = "loaders uncertainty and squad_it_2 need setting: low, medium or high; no other loader takes one"
        raise loaded.refuse((*field, "setting"), problem)
    if dataset.columns is not None and dataset.loader != "items":
        raise loaded.refuse((*field, "columns"), "only loader items takes columns; take this field out")
    sources = [name for name in ("wrong_answers", "stand_ins") if getattr(dataset, name) is not None]
    if dataset.loader != "squad_it" and sources:
        raise loaded.refuse((*field, sources[0]), "only loader squad_it takes this field; take it out")
    if dataset.loader == "squad_it" and len(sources) != 1 and loaded.study.formats:
        problem = "loader squad_it needs one of the two: wrong_answers: FILE, or stand_ins: {seed: 1}"
        raise loaded.refuse((*field, sources[-1] if sources else "loader"), problem)


def _check_expectation(loaded: LoadedStudy, dataset: Dataset, found: int, field: FieldPath) -> None:
    if dataset.expect is not None and dataset.expect.items != found:
        problem = f"the file holds {found:,} items, the study expects {dataset.expect.items:,}"
        raise loaded.refuse((*field, "expect", "items"), problem)
