"""Reading stored completions again, without asking anybody: what another reading, or a newer version of one, changes.

Raw completions never change. What was read in them is written anew, some jobs at a time, and the results of all these
jobs are derived from their attempts again. It may be broken off and done again; twice is as good as once.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.conditions import Rules
from contract.database import postgres_errors
from contract.errors import ErrorKind
from contract.formats import Variant, asking
from contract.forms import ClosedFormat, Form, LikertFormat
from contract.items import Item
from contract.recorded import RECORDED
from contract.results import CHILD_ROUNDS, children_follow, counted_attempt
from contract.storable import storable
from producer.studies import find_study

BATCH = 100
EXAMPLES = 3
EXCERPT = 80

_CONDITIONS = text("SELECT id, model, dataset, variant, spec, rules FROM condition WHERE study = :study ORDER BY id")
_JOBS = text("SELECT id FROM job WHERE study = :study ORDER BY condition, position")
_EARLIER = counted_attempt("parent.id", since="CASE WHEN parent.parent IS NULL THEN 1 ELSE parent.round END")
_ATTEMPTS = text(f"""
    SELECT attempt.id, attempt.job, attempt.completion, attempt.completion_length, attempt.finish_reason,
           attempt.outcome, attempt.answer, attempt.text, attempt.tier, attempt.reason, attempt.reading,
           attempt.reading_version,
           item.dataset, item.source_id, item.payload, job.cluster, job.condition, earlier.text AS earlier
    FROM job JOIN attempt ON attempt.job = job.id JOIN item ON item.id = job.item
    LEFT JOIN job AS parent ON parent.id = job.parent LEFT JOIN LATERAL ({_EARLIER}) AS earlier ON true
    WHERE job.id = ANY(:jobs) AND attempt.outcome IN ('answered', 'invalid') AND attempt.completion IS NOT NULL
      AND attempt.reading IS DISTINCT FROM '{RECORDED}'
    ORDER BY job.condition, job.position, attempt.claim, attempt.started_at
""")  # noqa: S608 - only a constant
_WRITE = text("""
    UPDATE attempt SET outcome = anew.outcome, answer = anew.answer, text = anew.text, tier = anew.tier,
        reason = anew.reason, reading = anew.reading, reading_version = anew.reading_version,
        error_kind = CASE WHEN anew.fault IS NOT NULL THEN 'bug' WHEN error_kind <> 'bug' THEN error_kind END,
        error_message = CASE WHEN anew.fault IS NOT NULL THEN anew.fault WHEN error_kind <> 'bug' THEN error_message END
    FROM json_to_recordset(CAST(:anew AS json)) AS anew (
        id uuid, outcome text, answer int, text text, tier text, reason text, reading text, reading_version int,
        fault text)
    WHERE attempt.id = anew.id
""")
_LOCK = text("SELECT FROM job WHERE id = ANY(:jobs) ORDER BY id FOR NO KEY UPDATE")
# For all jobs of the batch: what a worker stored meanwhile may have been derived from what was there before. Children
# that wait for one that has no answer any more end with it; others are left as they are: to ask them again is not for
# who only reads.
_DERIVE = text(f"""
    WITH derived AS (
        UPDATE job SET state = counted.outcome, answer = counted.answer, text = counted.text,
            counted_attempt = counted.id
        FROM (SELECT id, {CHILD_ROUNDS} AS since FROM job WHERE id = ANY(:jobs)) AS changed CROSS JOIN LATERAL (
            {counted_attempt("changed.id", since="changed.since")}) AS counted
        WHERE job.id = changed.id AND job.finished_at IS NOT NULL
          AND (job.state, job.answer, job.text, job.counted_attempt)
              IS DISTINCT FROM (counted.outcome, counted.answer, counted.text, counted.id)
        RETURNING job.id, job.state
    ), followed AS (
        {children_follow("(SELECT id, state FROM derived WHERE state <> 'answered')")}
    ) SELECT count(*) FROM derived
""")  # noqa: S608 - only constants
_ADOPT = text("""
    UPDATE condition SET rules = jsonb_set(rules, '{format,reading}', to_jsonb(CAST(:reading AS text)))
    WHERE study = :study AND rules -> 'format' ->> 'reading' <> :reading
""")
_REVISE = text("""
    WITH newest AS (
        SELECT study, revision, spec FROM study_revision WHERE study = :study ORDER BY revision DESC LIMIT 1
    ), revised AS (
        INSERT INTO study_revision (study, revision, spec, created_at)
        SELECT study, revision + 1, jsonb_set(spec, '{formats}', (
                   SELECT jsonb_agg(form || jsonb_build_object('reading', CAST(:reading AS text)))
                   FROM jsonb_array_elements(spec -> 'formats') AS form)), now()
        FROM newest RETURNING revision
    ) UPDATE study SET revision = (SELECT revision FROM revised) WHERE id = :study
""")


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
    variant: Variant
    form: Form
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

    A reading that is given becomes the study's own, in a new revision, so that answers to come are read alike. It is
    for closed answers; texts that make data are held against their checks again.
    """
    with postgres_errors(engine):
        with engine.begin() as connection:
            found = find_study(connection, study, lock=not dry_run)
            rows = connection.execute(_CONDITIONS, {"study": found.id}).all()
            conditions = {row.id: _reread(row, reading) for row in rows}
            if reading is not None and not dry_run:
                _adopt(connection, found.id, reading)
            jobs = array("q", connection.execute(_JOBS, {"study": found.id}).scalars())
        results = sum(
            _read_batch(engine, jobs[start : start + BATCH].tolist(), conditions, dry_run=dry_run)
            for start in range(0, len(jobs), BATCH)
        )
    return Reparsed(conditions=tuple(conditions.values()), results=results)


def _reread(row: Row[Any], reading: str | None) -> Reread:
    form = Rules.from_stored(row.rules).format
    if reading is not None and isinstance(form, ClosedFormat):
        form = form.model_copy(update={"reading": reading})
    return Reread(model=row.model, dataset=row.dataset, variant=Variant.from_spec(row.spec["variant"]), form=form)


def _adopt(connection: Connection, study: int, reading: str) -> None:
    """Make `reading` the study's own, if it is not. Workers see the new revision with their next claim."""
    scope = {"study": study, "reading": reading}
    if connection.execute(_ADOPT, scope).rowcount:
        connection.execute(_REVISE, scope)


def _read_batch(engine: Engine, jobs: Sequence[int], conditions: dict[int, Reread], *, dry_run: bool) -> int:
    """Read the attempts of some jobs; returns how many results changed. No transaction is open while it reads."""
    with engine.begin() as connection:
        rows = connection.execute(_ATTEMPTS, {"jobs": jobs}).all()
    anew = list(_anew(rows, conditions))
    if dry_run:
        return 0
    with engine.begin() as connection:
        connection.execute(_LOCK, {"jobs": jobs})
        if anew:
            connection.execute(_WRITE, {"anew": json.dumps(anew)})
        changed: int = connection.execute(_DERIVE, {"jobs": jobs}).scalar_one()
        return changed


def _anew(rows: Sequence[Row[Any]], conditions: dict[int, Reread]) -> Iterator[dict[str, Any]]:
    """What the attempts say by the new readings, where anything of that differs from what their rows hold."""
    for row in rows:
        told = conditions[row.condition]
        answer, fault = _read(row, told)
        told.read += 1
        _note(told, row, answer)
        reading, version = asking.reading_of(told.form)
        anew = {
            "outcome": "answered" if answer.valid else "invalid",
            "answer": answer.number,
            "text": answer.text,
            "tier": answer.tier,
            "reason": answer.reason,
            "reading": reading,
            "reading_version": version,
        }
        if any(getattr(row, name) != value for name, value in anew.items()):
            yield anew | {"id": str(row.id), "fault": fault}


def _read(row: Row[Any], told: Reread) -> tuple[Answer, str | None]:
    """The answer read; if reading itself fails, that is the answer's fault and not the others'."""
    item = Item.from_payload(dataset=row.dataset, source_id=row.source_id, cluster=row.cluster, payload=row.payload)
    cut = row.completion_length is not None and row.completion_length > len(row.completion)
    length = row.completion_length if cut else None
    completion = Completion(text=row.completion, finish_reason=row.finish_reason, truncated_from=length)
    try:
        return asking.read(told.form, completion, item, told.variant, earlier=row.earlier), None
    except Exception as error:  # noqa: BLE001 - one text on which a reading breaks must not keep the rest from it
        invalid = Answer(choice=None, tier=ErrorKind.BUG, reason=InvalidReason.UNREADABLE)
        return invalid, storable(f"reading failed: {error!r}").text


def _note(told: Reread, row: Row[Any], answer: Answer) -> None:
    unit = "rating" if isinstance(told.form, LikertFormat) else "choice"
    before = _shown(unit, row.answer, row.text, row.reason)
    move = (before, _shown(unit, answer.number, answer.text, answer.reason))
    if move[0] == move[1]:
        return
    told.moves[move] += 1
    examples = told.examples.setdefault(move, [])
    if len(examples) < EXAMPLES:
        examples.append(Example(source_id=row.source_id, completion=row.completion[:EXCERPT]))


def _shown(unit: str, number: int | None, said: str | None, reason: str | None) -> str:
    if said is not None:
        return "a text"
    if number is None:
        return f"invalid ({reason})"
    return f"{unit} {number if unit == 'rating' else number + 1}"
