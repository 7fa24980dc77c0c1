"""Reading stored completions again, without asking anybody: what another reading, or a newer version of one, changes.

Raw completions never change. What was read in them is written anew, attempt by attempt, and every job's result follows
from its attempts as it always does. Doing it twice changes nothing the second time.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from contract.answers import Answer
from contract.completion import Completion
from contract.conditions import Rules
from contract.database import postgres_errors
from contract.formats import Variant, closed
from contract.items import Item
from contract.reading import READINGS
from contract.results import children_follow, counted_attempt
from contract.study import ClosedFormat
from producer.studies import find_study

BATCH = 2_000
EXAMPLES = 3
EXCERPT = 80

_CONDITIONS = text("SELECT id, model, dataset, variant, spec, rules FROM condition WHERE study = :study ORDER BY id")
_ATTEMPTS = text("""
    SELECT attempt.id, attempt.job, attempt.completion, attempt.completion_length, attempt.finish_reason,
           attempt.outcome, attempt.answer, attempt.tier, attempt.reason, attempt.reading, attempt.reading_version,
           item.dataset, item.source_id, item.payload, job.cluster
    FROM job JOIN attempt ON attempt.job = job.id JOIN item ON item.id = job.item
    WHERE job.condition = :condition AND attempt.outcome IN ('answered', 'invalid') AND attempt.completion IS NOT NULL
    ORDER BY job.position, attempt.claim, attempt.started_at
""")
_WRITE = text("""
    UPDATE attempt SET outcome = anew.outcome, answer = anew.answer, tier = anew.tier, reason = anew.reason,
        reading = anew.reading, reading_version = anew.reading_version
    FROM json_to_recordset(CAST(:anew AS json)) AS anew (
        id uuid, outcome text, answer int, tier text, reason text, reading text, reading_version int)
    WHERE attempt.id = anew.id
""")
_LOCK = text("SELECT FROM job WHERE id = ANY(:jobs) ORDER BY id FOR NO KEY UPDATE")
_DERIVE = text(f"""
    WITH derived AS (
        UPDATE job SET state = counted.outcome, answer = counted.answer, counted_attempt = counted.id
        FROM unnest(CAST(:jobs AS bigint[])) AS changed (id) CROSS JOIN LATERAL (
            {counted_attempt("changed.id")}) AS counted
        WHERE job.id = changed.id AND job.finished_at IS NOT NULL
          AND (job.state, job.answer, job.counted_attempt)
              IS DISTINCT FROM (counted.outcome, counted.answer, counted.id)
        RETURNING job.id, job.state
    ), followed AS ({children_follow("derived")}) SELECT count(*) FROM derived
""")  # noqa: S608 - only constants
_SET_READING = text("""
    UPDATE condition SET rules = jsonb_set(rules, '{format,reading}', to_jsonb(CAST(:reading AS text)))
    WHERE study = :study
""")
_REVISE = text("""
    INSERT INTO study_revision (study, revision, spec, created_at)
    SELECT study, revision + 1, jsonb_set(spec, '{formats}', (
               SELECT jsonb_agg(form || jsonb_build_object('reading', CAST(:reading AS text)))
               FROM jsonb_array_elements(spec -> 'formats') AS form)), now()
    FROM study_revision WHERE study = :study ORDER BY revision DESC LIMIT 1 RETURNING revision
""")
_SET_REVISION = text("UPDATE study SET revision = :revision WHERE id = :study")


@dataclass(frozen=True, kw_only=True)
class Example:
    """An attempt that is read otherwise now: the item and the beginning of what was said."""

    source_id: str
    completion: str


@dataclass
class Reread:
    """What became of one condition's attempts: how many were read, and what changed from what into what.

    `moves` counts (before, after), each a choice by its number from 1 or the reason why there is none.
    """

    model: str
    dataset: str
    variant: str
    read: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[Example]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reparsed:
    """All conditions, and how many jobs have another result now; in a dry run none has."""

    conditions: tuple[Reread, ...]
    results: int


def reparse(engine: Engine, study: str, *, reading: str | None = None, dry_run: bool = False) -> Reparsed:
    """Read every stored completion of a study again, by `reading` or by the one that the study names.

    A reading that is given becomes the study's own, in a new revision, so that answers to come are read alike.
    """
    with postgres_errors(engine):
        with engine.begin() as connection:
            found = find_study(connection, study, lock=not dry_run)
            conditions = connection.execute(_CONDITIONS, {"study": found.id}).all()
            if reading is not None and not dry_run:
                _adopt(connection, found.id, reading)
        results, rereads = 0, []
        for condition in conditions:
            reread, changed = _reread(engine, condition, reading, dry_run=dry_run)
            rereads.append(reread)
            results += changed
    return Reparsed(conditions=tuple(rereads), results=results)


def _adopt(connection: Connection, study: int, reading: str) -> None:
    """Make `reading` the study's own. Workers see the new revision with their next claim."""
    scope = {"study": study, "reading": reading}
    connection.execute(_SET_READING, scope)
    revision = connection.execute(_REVISE, scope).scalar_one()
    connection.execute(_SET_REVISION, {"study": study, "revision": revision})


def _reread(engine: Engine, condition: Row[Any], reading: str | None, *, dry_run: bool) -> tuple[Reread, int]:
    """Read one condition's attempts, some thousand at a time; returns also how many results changed."""
    rules = Rules.from_stored(condition.rules)
    form = rules.format if reading is None else rules.format.model_copy(update={"reading": reading})
    variant = Variant(order=tuple(condition.spec["variant"]["order"]))
    told = Reread(model=condition.model, dataset=condition.dataset, variant=condition.variant)
    results = 0
    with engine.connect() as connection:
        rows = iter(connection.execution_options(yield_per=BATCH).execute(_ATTEMPTS, {"condition": condition.id}))
        while batch := list(islice(rows, BATCH)):
            anew = [changed for row in batch if (changed := _anew(row, variant, form, told)) is not None]
            if anew and not dry_run:
                results += _write(engine, anew)
    return told, results


def _anew(row: Row[Any], variant: Variant, form: ClosedFormat, told: Reread) -> dict[str, Any] | None:
    """What the attempt says by the new reading, if anything of that differs from what its row holds."""
    item = Item.from_payload(dataset=row.dataset, source_id=row.source_id, cluster=row.cluster, payload=row.payload)
    cut = row.completion_length is not None and row.completion_length > len(row.completion)
    completion = Completion(
        text=row.completion,
        finish_reason=row.finish_reason,
        truncated_from=row.completion_length if cut else None,
    )
    named = READINGS[form.reading]
    answer = closed.read(completion, item, variant, named)
    anew = {
        "outcome": "answered" if answer.valid else "invalid",
        "answer": answer.choice,
        "tier": answer.tier,
        "reason": answer.reason,
        "reading": named.name,
        "reading_version": named.version,
    }
    told.read += 1
    _note(told, row, answer)
    if all(getattr(row, name) == value for name, value in anew.items()):
        return None
    return anew | {"id": str(row.id), "job": row.job}


def _note(told: Reread, row: Row[Any], answer: Answer) -> None:
    move = (_shown(row.answer, row.reason), _shown(answer.choice, answer.reason))
    if move[0] == move[1]:
        return
    told.moves[move] += 1
    examples = told.examples.setdefault(move, [])
    if len(examples) < EXAMPLES:
        examples.append(Example(source_id=row.source_id, completion=row.completion[:EXCERPT]))


def _shown(choice: int | None, reason: str | None) -> str:
    return f"choice {choice + 1}" if choice is not None else f"invalid ({reason})"


def _write(engine: Engine, anew: Sequence[dict[str, Any]]) -> int:
    """Write a batch and derive its jobs' results; returns how many results changed."""
    jobs = sorted({changed["job"] for changed in anew})
    with engine.begin() as connection:
        connection.execute(_LOCK, {"jobs": jobs})
        connection.execute(_WRITE, {"anew": json.dumps(anew)})
        results: int = connection.execute(_DERIVE, {"jobs": jobs}).scalar_one()
    return results
