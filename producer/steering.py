"""Steering a study that is enqueued: pause, resume, cancel, and asking again what did not end well.

All of it is state in Postgres that workers read when they claim and before every call; nothing is revoked in the
broker. A call in flight ends and is stored.
"""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Engine, text

from contract.database import postgres_errors
from contract.errors import UsageError
from producer.studies import find_study
from producer.window import LOSSES_POISON, REOPENED

RETRIABLE = ("invalid", "refused", "failed")

_VALUES_OF = {
    "model": text("SELECT DISTINCT model FROM condition WHERE study = :study ORDER BY model"),
    "dataset": text("SELECT DISTINCT dataset FROM condition WHERE study = :study ORDER BY dataset"),
}
_SET_STUDY = text("UPDATE study SET state = :state WHERE id = :study")
_SET_MODEL = text("UPDATE condition SET state = :state WHERE study = :study AND model = :model")
_UNQUEUE = text("""
    UPDATE job SET state = 'pending', lease_until = NULL WHERE id IN (
        SELECT job.id FROM job JOIN condition ON condition.id = job.condition
        WHERE job.study = :study AND job.state = 'queued'
          AND (CAST(:model AS text) IS NULL OR condition.model = :model)
        ORDER BY job.id FOR UPDATE OF job)
""")
_CLEAR_STOPS = text("""
    DELETE FROM stop WHERE study = :study AND (CAST(:model AS text) IS NULL OR queue IN (
        SELECT queue FROM condition WHERE condition.study = :study AND condition.model = :model))
""")
_ACCEPT = text("""
    INSERT INTO pin (study, queue, digest, accepted_at)
    SELECT study, queue, digest, now() FROM stop
    WHERE study = :study AND digest IS NOT NULL AND (CAST(:model AS text) IS NULL OR queue IN (
        SELECT queue FROM condition WHERE condition.study = :study AND condition.model = :model))
    ON CONFLICT DO NOTHING RETURNING digest
""")
_STILL_HELD = text("SELECT DISTINCT model FROM condition WHERE study = :study AND state <> 'active' ORDER BY model")

_CHOSEN = """
    SELECT job.id, condition.model, condition.dataset, job.state
    FROM job JOIN condition ON condition.id = job.condition LEFT JOIN LATERAL (
        SELECT error_kind FROM attempt WHERE attempt.job = job.id ORDER BY claim DESC, started_at DESC LIMIT 1
    ) AS last ON true
    WHERE job.study = :study AND job.planned AND job.state = ANY(:outcomes)
      AND NOT EXISTS (SELECT FROM job AS other WHERE other.id = job.parent AND other.state <> 'answered')
      AND (CAST(:models AS text[]) IS NULL OR condition.model = ANY(:models))
      AND (CAST(:datasets AS text[]) IS NULL OR condition.dataset = ANY(:datasets))
      AND (CAST(:kinds AS text[]) IS NULL OR
           CASE WHEN job.losses > :poison THEN 'poison' ELSE last.error_kind END = ANY(:kinds))
"""
_COUNT_CHOSEN = text(f"""
    SELECT model, dataset, state AS outcome, count(*) AS jobs FROM ({_CHOSEN}) AS chosen
    GROUP BY model, dataset, state ORDER BY model, dataset, state
""")  # noqa: S608 - only constants of this module
_REOPEN = text(f"""
    WITH reopened AS (
    UPDATE job SET {REOPENED}, round = round + 1
    FROM ({_CHOSEN}) AS chosen WHERE job.id = chosen.id AND job.state = chosen.state
    RETURNING chosen.model, chosen.dataset, chosen.state)
    SELECT model, dataset, state AS outcome, count(*) AS jobs FROM reopened
    GROUP BY model, dataset, state ORDER BY model, dataset, state
""")  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which finished jobs to ask again; None means any."""

    outcomes: tuple[str, ...]
    kinds: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """How many jobs of one model and dataset with one outcome were chosen."""

    model: str
    dataset: str
    outcome: str
    jobs: int


@dataclass(frozen=True, kw_only=True)
class Steered:
    """What was put into `state`, the study's own state now, and the models that stand still by themselves.

    `accepted`: the digests that may answer from now on beside those that did before.
    """

    state: str
    study_state: str
    still_held: tuple[str, ...]
    accepted: tuple[str, ...] = ()


def retry(engine: Engine, study: str, selection: Selection, *, dry_run: bool) -> list[Chosen]:
    """Put the chosen jobs back to pending in a new round; their attempts stay. A dry run only counts them."""
    with postgres_errors(engine), engine.begin() as connection:
        found = find_study(connection, study, lock=True)
        if found.state == "cancelled":
            raise UsageError(f"the study {study} is cancelled; `bothways resume {study}` takes it up again")
        _check_values(connection, found.id, "model", selection.models)
        _check_values(connection, found.id, "dataset", selection.datasets)
        values = {
            "study": found.id,
            "outcomes": list(selection.outcomes),
            "models": _listed(selection.models),
            "datasets": _listed(selection.datasets),
            "kinds": _listed(selection.kinds),
            "poison": LOSSES_POISON,
        }
        rows = connection.execute(_COUNT_CHOSEN if dry_run else _REOPEN, values).mappings()
        return [Chosen(**row) for row in rows]


def steer(
    engine: Engine,
    study: str,
    state: Literal["active", "paused", "cancelled"],
    *,
    model: str | None = None,
    accept_digest: bool = False,
) -> Steered:
    """Pause, resume or cancel a study or one model of it. What was queued goes back to pending at once.

    `accept_digest`: what answered though it was not pinned may do so from now on.
    """
    with postgres_errors(engine), engine.begin() as connection:
        found = find_study(connection, study, lock=True)
        if found.state == "cancelled" and (state == "paused" or model is not None):
            raise UsageError(f"the study {study} is cancelled; `bothways resume {study}` takes it up again")
        if model is None:
            connection.execute(_SET_STUDY, {"study": found.id, "state": state})
        else:
            _check_values(connection, found.id, "model", (model,))
            connection.execute(_SET_MODEL, {"study": found.id, "state": state, "model": model})
        scope = {"study": found.id, "model": model}
        accepted = tuple(connection.execute(_ACCEPT, scope).scalars()) if accept_digest else ()
        connection.execute(_CLEAR_STOPS if state == "active" else _UNQUEUE, scope)
        held = tuple(connection.execute(_STILL_HELD, {"study": found.id}).scalars())
    own_state = found.state if model is not None else state
    return Steered(state=state, study_state=own_state, still_held=held, accepted=accepted)


def _check_values(connection: Connection, study: int, column: str, values: tuple[str, ...] | None) -> None:
    known = list(connection.execute(_VALUES_OF[column], {"study": study}).scalars())
    for value in values or ():
        if value not in known:
            raise UsageError(f"the study has no {column} {value!r}; it has: {', '.join(known)}")


def _listed(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else list(values)
