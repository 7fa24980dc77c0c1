"""Rows of recorded answers in our words: what a file calls our fields, and its codes for formats and variants. Pure."""

import re
from dataclasses import dataclass
from typing import Any

from contract.errors import InputError
from contract.recorded import RecordedModel
from producer.datasets.rows import Row, near_miss

_WHOLE = re.compile(r"(-?[0-9]{1,9})(?:\.0+)?")


@dataclass(frozen=True, kw_only=True)
class RecordedRow:
    """One row, in our words. What the file does not say is None; then the study tells, where there is but one.

    `says_answer` and `says_completion`: whether there is such a field at all. An empty answer is an answer too where no
    completion stands beside it; beside one it says nothing.
    """

    row: Row
    model: RecordedModel
    source_id: str
    dataset: str | None
    format: str | None
    variant: str | None
    part: int
    repeat: int | None
    answer: int | str | None
    says_answer: bool
    completion: str | None
    says_completion: bool

    def refuse(self, field: str, problem: str) -> InputError:
        """The error that says what is wrong with a field of the row, by the file's name for it."""
        return _refuse(self.row, self.model, field, problem)


def recorded_row(row: Row, model: RecordedModel) -> RecordedRow | None:
    """The row in our words, None where it is one of another model; what it cannot mean is refused."""
    if _has(row, model, "model") and _code(row, model, "model") != model.model:
        return None
    source_id = _code(row, model, "item")
    if source_id is None:
        raise _refuse(row, model, "item", "is empty; it is the id of an item")
    completion = _value(row, model, "completion")
    if completion is not None and not isinstance(completion, str):
        raise _refuse(row, model, "completion", f"must be text, not {completion!r:.80}")
    return RecordedRow(
        row=row,
        model=model,
        source_id=source_id,
        dataset=_code(row, model, "dataset"),
        format=_mapped(_code(row, model, "format"), model.formats),
        variant=_mapped(_code(row, model, "variant"), model.variants),
        part=_number(row, model, "part", lowest=0) or 0,
        repeat=_number(row, model, "repeat", lowest=1),
        answer=_answer(row, model),
        says_answer=_says_answer(row, model, completion),
        completion=completion,
        says_completion=_has(row, model, "completion"),
    )


def whole_number(value: object) -> int | None:
    """The whole number that a value is or spells, None if it is none; spreadsheets write 1 as 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _column(model: RecordedModel, field: str) -> str:
    name: str | None = getattr(model.columns, field)
    return name or field


def _has(row: Row, model: RecordedModel, field: str) -> bool:
    """Whether the row has the field; one that the study file names must be there."""
    name = _column(model, field)
    if name in row.values:
        return True
    if getattr(model.columns, field) is not None or field == "item":
        raise _refuse(row, model, field, f"is missing{near_miss(name, row.values)}; {row.has}")
    return False


def _value(row: Row, model: RecordedModel, field: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """What the row says, or else what the study file says of all rows."""
    value = row.values[_column(model, field)] if _has(row, model, field) else None
    return getattr(model.constants, field, None) if value is None else value


def _code(row: Row, model: RecordedModel, field: str) -> str | None:
    """A field that holds a name or a code, as text."""
    value = _value(row, model, field)
    if value is None or isinstance(value, str):
        return value or None
    number = whole_number(value)
    if number is None:
        raise _refuse(row, model, field, f"must be text, not {value!r:.80}")
    return str(number)


def _number(row: Row, model: RecordedModel, field: str, *, lowest: int) -> int | None:
    value = _value(row, model, field)
    number = whole_number(value)
    if value is not None and (number is None or number < lowest):
        raise _refuse(row, model, field, f"must be a whole number from {lowest} on, not {value!r:.80}")
    return number


def _answer(row: Row, model: RecordedModel) -> int | str | None:
    """The answer, a code of the file's turned into what it stands for."""
    value = _value(row, model, "answer")
    number = whole_number(value)
    code = value.strip() if isinstance(value, str) else str(number)
    if value is not None and code in model.answers:
        return model.answers[code]
    if isinstance(value, str):
        return code or None
    if value is not None and number is None:
        raise _refuse(row, model, "answer", f"must be text or a whole number, not {value!r:.80}")
    return number


def _says_answer(row: Row, model: RecordedModel, completion: str | None) -> bool:
    if not _has(row, model, "answer"):
        return False
    value = _value(row, model, "answer")
    return not completion or (value is not None and str(value).strip() != "")


def _mapped(code: str | None, codes: dict[str, Any]) -> str | None:
    return None if code is None else codes.get(code.strip(), code.strip())


def _refuse(row: Row, model: RecordedModel, field: str, problem: str) -> InputError:
    return row.refuse(_column(model, field), problem)
