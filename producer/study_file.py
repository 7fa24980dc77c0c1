"""Reads a study file. What is wrong is refused with file, line, the field's path and what would be right."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from contract.errors import InputError
from contract.items import Item
from contract.prompts import ANY_LANGUAGE, PromptSet, body_of, load_prompt
from contract.storable import is_storable
from contract.study import Dataset, Spec, Study
from producer.datasets import load_dataset
from producer.yaml_lines import FieldPath, YamlDocument, print_path


@dataclass(frozen=True, kw_only=True)
class LoadedStudy:
    """A study with everything it refers to: its items by dataset and its prompts by the name the file gives them."""

    path: Path
    study: Study
    items: dict[str, list[Item]]
    prompts: dict[str, PromptSet]
    document: YamlDocument

    def refuse(self, field: FieldPath, problem: str) -> InputError:
        """The error that says what is wrong with `field`, with its line."""
        return InputError(self.path, problem, line=self.document.line_of(field), field=print_path(field))


def read_study(path: Path, *, limit: int | None = None) -> LoadedStudy:
    """The study in `path` with its items and prompts; `limit` keeps the first items of each dataset."""
    document = YamlDocument(path, read_text(path))
    if not isinstance(document.values, dict):
        raise InputError(path, "a study file is a mapping that begins with `study: NAME`", line=1)
    if limit is not None:
        document.values["limit"] = limit
    try:
        study = Study.model_validate(document.values)
    except ValidationError as error:
        raise _refusal(path, document, error.errors(include_url=False)) from None
    loaded = LoadedStudy(path=path, study=study, items={}, prompts={}, document=document)
    _refuse_twins(loaded)
    for number, dataset in enumerate(study.datasets):
        loaded.prompts[dataset.prompt] = _prompt(loaded, dataset, ("datasets", number, "prompt"))
        loaded.items[dataset.name] = _items(loaded, dataset, ("datasets", number))
    return loaded


def study_name(path: Path) -> str:
    """The name that the study file `path` gives its study; nothing else in it is looked at."""
    document = YamlDocument(path, read_text(path))
    name = document.values.get("study") if isinstance(document.values, dict) else None
    if not isinstance(name, str):
        raise InputError(path, "is missing", line=1, field="study")
    return name


def read_text(path: Path) -> str:
    """The text of a file that a person wrote: UTF-8, with or without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(path, "there is no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None


def _refuse_twins(loaded: LoadedStudy) -> None:
    if len(loaded.study.formats) > 1:
        raise loaded.refuse(("formats", 1), "there is one format, closed; give one entry")
    for part, entries in (("datasets", loaded.study.datasets), ("models", loaded.study.models)):
        seen: dict[str, int] = {}
        for number, entry in enumerate(entries):
            if entry.name in seen:
                problem = f"{entry.name} is also the name of {part}[{seen[entry.name]}]; names must differ"
                raise loaded.refuse((part, number, "name"), problem)
            seen[entry.name] = number


def _prompt(loaded: LoadedStudy, dataset: Dataset, field: FieldPath) -> PromptSet:
    """The instrument by its name, or the text file beside the study file; both must place question and choices."""
    try:
        prompt = _own_prompt(loaded.path.parent / dataset.prompt) if _is_file(dataset) else load_prompt(dataset.prompt)
    except (ValueError, InputError) as error:
        raise loaded.refuse(field, str(error)) from None
    for body in prompt.bodies.values():
        placed = PromptSet(name=prompt.name, bodies={ANY_LANGUAGE: body}).placeholders
        if not {"question", "choices"} <= placed <= {"context", "question", "choices"}:
            problem = "a prompt places {question} and {choices}, and {context} if it wants, and nothing else in braces"
            raise loaded.refuse(field, problem)
    return prompt


def _is_file(dataset: Dataset) -> bool:
    return dataset.prompt.endswith(".txt")


def _own_prompt(path: Path) -> PromptSet:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    text = read_text(path)
    if not is_storable(text):
        raise ValueError(f"{path} holds a NUL character, which no database can store")
    body = body_of(text) if "\n---\n" in text else text.rstrip("\n")
    return PromptSet(name=path.stem, bodies={ANY_LANGUAGE: body})


def _items(loaded: LoadedStudy, dataset: Dataset, field: FieldPath) -> list[Item]:
    if (dataset.loader == "uncertainty") != (dataset.setting is not None):
        problem = "loader uncertainty needs setting: low, medium or high; no other loader takes one"
        raise loaded.refuse((*field, "setting"), problem)
    path = loaded.path.parent / dataset.path
    if not path.is_file():
        raise loaded.refuse((*field, "path"), f"there is no file {path}")
    items = load_dataset(dataset, path)
    _check_expectation(loaded, dataset, len(items), field)
    _check_prompt_fits(loaded, dataset, items, field)
    return items[: loaded.study.limit]


def _check_expectation(loaded: LoadedStudy, dataset: Dataset, found: int, field: FieldPath) -> None:
    if dataset.expect is not None and dataset.expect.items != found:
        problem = f"the file holds {found:,} items, the study expects {dataset.expect.items:,}"
        raise loaded.refuse((*field, "expect", "items"), problem)


def _check_prompt_fits(loaded: LoadedStudy, dataset: Dataset, items: list[Item], field: FieldPath) -> None:
    """Every item must find a body in its language, and a context where the body places one."""
    prompt = loaded.prompts[dataset.prompt]
    for item in items:
        try:
            body = prompt.body(item.language)
        except ValueError as error:
            raise loaded.refuse((*field, "prompt"), f"{error} (item {item.source_id})") from None
        if "{context}" in body and item.context is None:
            problem = f"{dataset.prompt} places {{context}}, and item {item.source_id} has no context"
            raise loaded.refuse((*field, "prompt"), problem)


def _refusal(path: Path, document: YamlDocument, errors: list[ErrorDetails]) -> InputError:
    """The first error as one message, a misspelt field before what is missing for it; the others are counted."""
    errors = [error for error in errors if not _follows_from_another(error, errors)]
    errors.sort(key=lambda error: error["type"] != "extra_forbidden")
    error = errors[0]
    field = _without_tags(error["loc"])
    problem = _problem(error, field)
    if len(errors) > 1:
        problem += f" (and {len(errors) - 1} more to mend)"
    return InputError(path, problem, line=document.line_of(field), field=print_path(field) or None)


def _follows_from_another(error: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """Whether a list only counts as too short because an entry in it is wrong."""
    place = error["loc"]
    inside = (other["loc"][: len(place)] == place for other in errors if other is not error)
    return error["type"] == "too_short" and any(inside)


def _problem(error: ErrorDetails, field: FieldPath) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"unknown field{_hint(str(field[-1]), _fields_around(error['loc']))}"
        case "missing":
            return "is missing"
        case "literal_error":
            return f"must be {error['ctx']['expected']}, not {error['input']!r}"
        case "union_tag_invalid":
            known = [tag.strip().strip("'") for tag in error["ctx"]["expected_tags"].split(",")]
            return f"unknown provider {error['ctx']['tag']!r}{_hint(error['ctx']['tag'], known)}"
        case "union_tag_not_found":
            return "provider is missing: openai or simulated"
        case "tuple_type":
            return f"must be a list, not {error['input']!r:.80}"
        case "model_type" | "model_attributes_type":
            return f"must be a mapping of fields, not {error['input']!r:.80}"
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            # What stands in these may be a key that does not belong there.
            hidden = field and field[-1] in ("base_url", "api_key_env")
            return message if hidden else f"{message}; found {str(error['input'])[:80]!r}"


def _hint(found: str, known: list[str]) -> str:
    near = get_close_matches(found, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known here: {', '.join(known)}"


def _without_tags(place: tuple[int | str, ...]) -> FieldPath:
    """The field's path as it stands in the file: pydantic puts the provider after the number of a model."""
    return place[:2] + place[3:] if len(place) > 2 and place[0] == "models" else place


def _fields_around(place: tuple[int | str, ...]) -> list[str]:
    """The fields that are known where an unknown one was found."""
    spec: type[Spec] = Study
    for part in place[:-1]:
        if isinstance(part, int):
            continue
        if part in spec.model_fields:
            inner = _specs_in(spec.model_fields[part].annotation)
            spec = inner[0] if inner else spec
            options = inner
        else:
            spec = next(option for option in options if part in str(option.model_fields["provider"].annotation))
    return list(spec.model_fields)


def _specs_in(annotation: Any) -> list[type[Spec]]:  # noqa: ANN401 - typing's own annotations
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _specs_in(inner)]
