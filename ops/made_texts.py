"""What a recipe has made: its texts by item, as rows of data files, and what is left out of them and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, text

from contract.database import postgres_errors
from contract.reading.same import same
from contract.results import CHILD_ROUNDS, counted_attempt
from contract.study import Output
from producer.studies import find_study

_TEXTS = text(f"""
    SELECT item.source_id, item.payload, condition.variant AS step, job.part, job.state, job.text, counted.reason,
           counted.completion, last.error_kind, last.error_message, parent.state AS parent_state
    FROM job JOIN condition ON condition.id = job.condition JOIN item ON item.id = job.item
    LEFT JOIN job AS parent ON parent.id = job.parent
    LEFT JOIN LATERAL ({counted_attempt("job.id", since=CHILD_ROUNDS)}) AS found ON true
    LEFT JOIN attempt AS counted ON counted.id = found.id
    LEFT JOIN LATERAL (
        SELECT error_kind, error_message FROM attempt WHERE attempt.job = job.id
        ORDER BY claim DESC, started_at DESC LIMIT 1) AS last ON true
    WHERE job.study = :study AND job.planned AND condition.stage = 'generate' ORDER BY job.position
""")  # noqa: S608 - only a constant
_ANSWERED_BY = text("""
    SELECT deployment.provider, deployment.model, deployment.endpoint, deployment.digest, deployment.quantisation,
           deployment.server_version, count(*) AS texts
    FROM job JOIN attempt ON attempt.id = job.counted_attempt JOIN deployment ON deployment.id = attempt.deployment
    WHERE job.study = :study AND job.planned AND job.state = 'answered'
    GROUP BY deployment.id ORDER BY texts DESC, deployment.id
""")


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An item that is not in some file: a step without a text, or (`file`) two texts that say the same.

    `choice` is the number of the choice that has no text, None where the text was to be of the whole item.
    `state` is that of the step's job, "waits" for one that needs another step's text, None for a file; `said` is what
    came last, None if nothing did.
    """

    id: str
    why: str
    state: str | None = None
    step: str | None = None
    file: str | None = None
    said: str | None = None
    choice: int | None = None


@dataclass(frozen=True, kw_only=True)
class MadeItem:
    """An item with the texts that its steps made, by step and number of the choice: 0 where it is of the whole item."""

    id: str
    payload: dict[str, Any]
    texts: dict[tuple[str, int], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Made:
    """All items of a recipe in plan order, the jobs that left no text, and what exactly answered."""

    items: tuple[MadeItem, ...]
    left_out: tuple[LeftOut, ...]
    answered_by: tuple[dict[str, Any], ...]


def read_made(engine: Engine, study: str) -> Made:
    """The texts that the planned jobs of `study` have made so far."""
    with postgres_errors(engine), engine.connect() as connection:
        found = find_study(connection, study)
        rows = connection.execute(_TEXTS, {"study": found.id}).all()
        answered_by = connection.execute(_ANSWERED_BY, {"study": found.id}).mappings().all()
    items: dict[str, MadeItem] = {}
    left_out = []
    for row in rows:
        item = items.setdefault(row.source_id, MadeItem(id=row.source_id, payload=row.payload))
        if row.state == "answered" and row.text is not None:
            item.texts[row.step, row.part] = row.text
        else:
            left_out.append(_left_out(row))
    return Made(items=tuple(items.values()), left_out=tuple(left_out), answered_by=tuple(map(dict, answered_by)))


def rows_of(output: Output, items: Sequence[MadeItem]) -> tuple[list[dict[str, str]], list[LeftOut]]:
    """The rows of one file, and the items that have both texts and cannot be in it; those that lack one are no news.

    The fields are those of SQuAD-it-2: id, context, question, then correct_answer and wrong_answer, or wrong_answer and
    second_wrong_answer. Of statements a row is a choice: id, context, question, choice, statement.
    """
    if output.statements is not None:
        return [row for item in items for row in _statements(item, output.statements)], []
    rows, left_out = [], []
    for item in items:
        texts = [item.texts.get((step, 0)) for step in output.steps]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            continue
        if len(known) == 2 and same(known[0]) == same(known[1]):
            left_out.append(LeftOut(id=item.id, file=output.file, why="both wrong answers say the same", said=known[1]))
            continue
        rows.append(_row(item, known))
    return rows, left_out


def _statements(item: MadeItem, step: str) -> Iterator[dict[str, str]]:
    for number, choice in enumerate(item.payload["choices"], start=1):
        if (step, number) in item.texts:
            shown = {"id": item.id, "context": item.payload["context"] or "", "question": item.payload["question"]}
            shown["choice"] = choice
            yield shown | {"statement": item.texts[step, number]}


def _row(item: MadeItem, texts: list[str]) -> dict[str, str]:
    names = ("wrong_answer", "second_wrong_answer")
    right = {"correct_answer": item.payload["choices"][0]} if len(texts) == 1 else {}
    shared = {"id": item.id, "context": item.payload["context"] or "", "question": item.payload["question"]}
    return shared | right | dict(zip(names, texts, strict=False))


def _left_out(row: Any) -> LeftOut:  # noqa: ANN401 - a database row
    where: dict[str, Any] = {"id": row.source_id, "step": row.step, "choice": row.part or None}
    if row.parent_state not in (None, "answered"):
        # It is asked again by itself once its parent is answered.
        return LeftOut(**where, why="the step before it has no text", state="waits")
    why = f"invalid: {row.reason}" if row.state == "invalid" else row.state
    if row.state in ("failed", "refused") and row.error_kind:
        why = f"{row.state}: {row.error_kind}: {row.error_message}"
    return LeftOut(**where, why=why, state=row.state, said=row.completion)
