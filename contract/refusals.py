"""What pydantic finds wrong with a file that a person wrote, as one line that says what would be right."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic_core import ErrorDetails

from contract.errors import InputError
from contract.spec import Spec
from contract.study import Study
from contract.yaml_lines import FieldPath, YamlDocument, print_path


def refusal(path: Path, document: YamlDocument, errors: list[ErrorDetails], root: type[Spec] = Study) -> InputError:
    """The first error as one message, a misspelt field before what is missing for it; the others are counted.

    `root` is the spec of the whole file.
    """
    errors = [error for error in errors if not _follows_from_another(error, errors)]
    errors.sort(key=lambda error: error["type"] != "extra_forbidden")
    error = errors[0]
    field = _without_tags(error["loc"])
    problem = _problem(error, field, root)
    if len(errors) > 1:
        problem += f" (and {len(errors) - 1} more to mend)"
    return InputError(path, problem, line=document.line_of(field), field=print_path(field) or None)


def _follows_from_another(error: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """Whether a list only counts as too short, or a default as unknown, because something else is wrong."""
    place = error["loc"]
    if error["type"] == "default_factory_not_called":
        return True
    inside = (other["loc"][: len(place)] == place for other in errors if other is not error)
    return error["type"] == "too_short" and any(inside)


def _problem(error: ErrorDetails, field: FieldPath, root: type[Spec]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"unknown field{_hint(str(field[-1]), _fields_around(error['loc'], root))}"
        case "missing":
            return "is missing"
        case "literal_error":
            return f"must be {error['ctx']['expected']}, not {error['input']!r}"
        case "union_tag_invalid" | "union_tag_not_found":
            return _tag_problem(error, "format" if field[0] == "formats" else "provider")
        case "tuple_type":
            return f"must be a list, not {error['input']!r:.80}"
        case "model_type" | "model_attributes_type":
            return f"must be a mapping of fields, not {error['input']!r:.80}"
        case _:
            return _value_problem(error, field)


def _tag_problem(error: ErrorDetails, kind: str) -> str:
    """What is wrong with the field that says of which kind an entry is."""
    if error["type"] == "union_tag_not_found":
        known = "closed, likert or open" if kind == "format" else "openai, ollama, gemini or simulated"
        return f"{kind} is missing: {known}"
    known_tags = [tag.strip().strip("'") for tag in error["ctx"]["expected_tags"].split(",")]
    return f"unknown {kind} {error['ctx']['tag']!r}{_hint(error['ctx']['tag'], known_tags)}"


def _value_problem(error: ErrorDetails, field: FieldPath) -> str:
    """What is wrong with a value, with the value, except where it may be a key that does not belong there."""
    if error["type"] == "string_pattern_mismatch":
        if field[-1] == "api_key_env":
            return "must be the name of a variable (capitals, digits, _), never the key itself"
        if field[-1] == "digest":
            return "must be the first 12 to 64 hexadecimal digits of the model's digest"
        return f"must be a name of letters, digits and . _ : - without spaces, at most 80; found '{error['input']}'"
    message = error["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    hidden = error["type"] == "entry" or (field and field[-1] in ("base_url", "api_key_env", "headers"))
    quotes = "; put it in quotes" if error["type"] == "string_type" and _is_scalar(error["input"]) else ""
    return message if hidden else f"{message}; found {str(error['input'])[:80]!r}{quotes}"


def _is_scalar(value: object) -> bool:
    """Whether YAML took what may have been meant as text for something else: no, 1.0, 2026-01-01."""
    return value is not None and not isinstance(value, list | dict)


def _hint(found: str, known: list[str]) -> str:
    near = get_close_matches(found, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known here: {', '.join(known)}"


def _without_tags(place: tuple[int | str, ...]) -> FieldPath:
    """The field's path as it stands in the file: pydantic puts a provider or format after the number of its entry."""
    if len(place) > 1 and place[0] == "annotator":
        return place[:1] + place[2:]
    return place[:2] + place[3:] if len(place) > 2 and place[0] in ("models", "formats") else place


def _fields_around(place: tuple[int | str, ...], root: type[Spec]) -> list[str]:
    """The fields that are known where an unknown one was found."""
    spec = root
    for part in place[:-1]:
        if isinstance(part, int):
            continue
        if part in spec.model_fields:
            inner = _specs_in(spec.model_fields[part].annotation)
            spec = inner[0] if inner else spec
            options = inner
        else:
            spec = next(option for option in options if _is_tagged(option, part))
    return list(spec.model_fields)


def _is_tagged(option: type[Spec], tag: str) -> bool:
    """Whether `option` is the one that this provider or format chooses."""
    tagged = option.model_fields.get("provider") or option.model_fields.get("format")
    return tagged is not None and tag in str(tagged.annotation)


def _specs_in(annotation: Any) -> list[type[Spec]]:  # noqa: ANN401 - typing's own annotations
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _specs_in(inner)]
