"""Wrong answers from a companion file: rows with `id` and `wrong_answer`; other fields are passed over.

A row may also have `second_wrong_answer`, which a question needs that has no right answer in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from producer.datasets.layouts import read_rows
from producer.datasets.rows import Row
from producer.datasets.stand_ins import Question, folded

_FIELDS = ("wrong_answer", "second_wrong_answer")


@dataclass(frozen=True, kw_only=True)
class WrongAnswers:
    """The rows of a companion file by the question's id."""

    path: Path
    rows: Mapping[str, Row]

    @classmethod
    def read(cls, path: Path) -> "WrongAnswers":
        """The file's rows; an id that stands twice is refused."""
        rows: dict[str, Row] = {}
        for row in read_rows(path):
            source_id = row.text("id")
            if source_id in rows:
                raise row.refuse("id", f"{source_id!r} is also the id of {rows[source_id].place}; ids must differ")
            row.text(_FIELDS[0])
            rows[source_id] = row
        return cls(path=path, rows=rows)

    def to(self, question: Question, count: int) -> tuple[str, ...]:
        """The first `count` wrong answers to `question`; LookupError if the file has not as many."""
        row = self.rows.get(question.id)
        if row is None:
            raise LookupError(f"{self.path} has no row with this id; add one with id and wrong_answer")
        if _FIELDS[count - 1] not in row.values:
            raise LookupError(
                "all its gold answers are blank, so both choices are wrong answers; "
                f"add {_FIELDS[count - 1]} to {row.place} of {self.path}"
            )
        texts = tuple(row.text(field) for field in _FIELDS[:count])
        for field, text in zip(_FIELDS, texts, strict=False):
            if folded(text) in map(folded, question.answers[:1]):
                raise row.refuse(field, f"is the right answer to question {question.id}; write a wrong one")
        return texts
