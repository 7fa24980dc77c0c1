"""A random sheet of annotated open answers for a person to judge, and what the same answers are held for now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, RowMapping, text

from contract.database import postgres_errors
from producer.studies import find_study

_FROM = """
    FROM job JOIN condition ON condition.id = job.condition
    JOIN condition AS served ON served.id = condition.of_condition
    JOIN item ON item.id = job.item JOIN job AS parent ON parent.id = job.parent
    WHERE job.study = :study AND job.planned AND condition.stage = 'annotate' AND job.state IN ('answered', 'invalid')
      AND parent.text IS NOT NULL
"""
_WHAT = """
    SELECT job.id, item.source_id, served.model, served.dataset, served.variant, item.payload, parent.text, job.answer
"""
# The same seed draws the same jobs, whatever order the rows lie in.
_DRAW = text(f"{_WHAT} {_FROM} ORDER BY md5(CAST(:seed AS text) || '/' || job.id), job.id LIMIT :n")
_FIND = text(f"{_WHAT} {_FROM} AND job.id = ANY(:jobs)")


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """An open answer (`said`) and the choice that its annotation names, None for none; `model` is who said it."""

    job: int
    item: str
    dataset: str
    model: str
    variant: str
    question: str
    choices: tuple[str, ...]
    groups: tuple[str, ...] | None
    said: str
    annotation: int | None

    def category(self, choice: int | None) -> str:
        """What a choice is called beside other items' ones: its group, or else its number; "none" for none."""
        if choice is None:
            return "none"
        return self.groups[choice] if self.groups is not None else str(choice + 1)


def draw(engine: Engine, study: str, *, n: int, seed: int) -> list[Annotated]:
    """So many of the study's annotated answers, drawn at random by `seed`; all of them where there are not as many."""
    return _read(engine, study, _DRAW, {"n": n, "seed": seed})


def find(engine: Engine, study: str, jobs: Sequence[int]) -> dict[int, Annotated]:
    """The annotated answers of these jobs, by job; those that are no longer annotated are missing."""
    return {one.job: one for one in _read(engine, study, _FIND, {"jobs": list(jobs)})}


def _read(engine: Engine, study: str, statement: Any, values: dict[str, Any]) -> list[Annotated]:  # noqa: ANN401
    with postgres_errors(engine), engine.connect() as connection:
        scope = {"study": find_study(connection, study).id}
        return [_annotated(row) for row in connection.execute(statement, scope | values).mappings()]


def _annotated(row: RowMapping) -> Annotated:
    item = row["payload"]
    context = f"{item['context']} " if item["context"] else ""
    return Annotated(
        job=row["id"],
        item=row["source_id"],
        dataset=row["dataset"],
        model=row["model"],
        variant=row["variant"],
        question=f"{context}{item['question']}",
        choices=tuple(item["choices"]),
        groups=tuple(item["groups"]) if "groups" in item else None,
        said=row["text"],
        annotation=row["answer"],
    )
