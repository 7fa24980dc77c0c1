"""The only SQL that a worker runs: claim, begin a call, keep an attempt, give back.

Every function is one short transaction; none is open while a model is thinking. Whatever changes a job is guarded by
its claim number, so a worker that lost its lease can finish nothing, while its attempts are kept all the same.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, text

from contract.conditions import Rules
from contract.formats import Variant
from contract.items import Item, canonical_digest
from contract.results import counted_attempt
from worker.records import LEASE_MARGIN_S, Attempt, ClaimedJob, Deployment
from worker.retry import AskAgain, Decision, Done, Later, Stop, Tally

_WANTED = """
    job.planned AND condition.state = 'active' AND study.state = 'active'
    AND NOT EXISTS (SELECT FROM stop WHERE stop.study = job.study AND stop.queue = job.queue)
"""
_PUT_BACK = "state = 'pending', lease_until = NULL, calling = false"

_RELEASE_UNWANTED = text(f"""
    UPDATE job SET {_PUT_BACK} FROM condition, study
    WHERE job.id = ANY(:ids) AND job.state = 'queued'
      AND condition.id = job.condition AND study.id = job.study AND NOT ({_WANTED})
""")  # noqa: S608 - only constants of this module

_CLAIM = text("""
    WITH wanted AS (
        SELECT id FROM job WHERE id = ANY(:ids) AND state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE job SET state = 'running', claim = claim + 1, calling = false, lease_until = now() + make_interval(
            secs => :margin + (rules -> 'bundles' ->> 'budget_s')::float + (rules -> 'model' ->> 'timeout_s')::float)
        FROM wanted, condition WHERE job.id = wanted.id AND condition.id = job.condition
        RETURNING job.*, condition.spec, condition.rules
    )
    SELECT claimed.id, claim, claimed.round, part, repeat, study, queue, condition, spec, rules, claimed.cluster,
           item.dataset, item.source_id, item.payload, calls, invalid, faults, answered
    FROM claimed JOIN item ON item.id = claimed.item CROSS JOIN LATERAL (
        SELECT count(*) AS calls, count(*) FILTER (WHERE outcome = 'invalid') AS invalid,
               count(*) FILTER (WHERE error_kind = 'transient') AS faults,
               count(*) FILTER (WHERE outcome = 'answered') AS answered
        FROM attempt WHERE attempt.job = claimed.id AND attempt.round = claimed.round
    ) AS tally
""")

_BEGIN_CALL = text(f"""
    UPDATE job SET calling = true, lease_until = now() + make_interval(secs => :lease_s) FROM condition, study
    WHERE job.id = :id AND job.claim = :claim AND job.state = 'running'
      AND condition.id = job.condition AND study.id = job.study AND {_WANTED}
    RETURNING job.id
""")  # noqa: S608

_GIVE_BACK = text(f"""
    UPDATE job SET {_PUT_BACK} FROM unnest(CAST(:ids AS bigint[]), CAST(:claims AS int[])) AS held (id, claim)
    WHERE job.id = held.id AND job.claim = held.claim AND job.state = 'running'
""")  # noqa: S608

_KEEP_PROMPT = text("INSERT INTO prompt (digest, text) VALUES (:digest, :text) ON CONFLICT (digest) DO NOTHING")

_KEEP_ATTEMPT = text("""
    INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, prompt, seed, completion, completion_length,
        thinking, finish_reason, tokens_in, tokens_out, tokens_cached, outcome, answer, tier, reason, reading,
        reading_version, error_kind, error_message, deployment, worker)
    VALUES (:id, :job, :round, :claim, :started_at, :latency_ms, :prompt, :seed, :completion, :completion_length,
        :thinking, :finish_reason, :tokens_in, :tokens_out, :tokens_cached, :outcome, :answer, :tier, :reason, :reading,
        :reading_version, :error_kind, :error_message, :deployment, :worker)
    ON CONFLICT (id) DO NOTHING
""")

_HELD = "WHERE job.id = :id AND job.claim = :claim AND job.state = 'running'"

_DERIVED = f"""
    FROM job AS this LEFT JOIN LATERAL ({counted_attempt("this.id")}) AS counted ON true
    WHERE this.id = :id AND job.id = this.id
"""
_FINISH = text(f"""
    UPDATE job SET state = coalesce(counted.outcome, 'failed'), answer = counted.answer, counted_attempt = counted.id,
        finished_at = now(), lease_until = NULL, not_before = NULL, calling = false
    {_DERIVED} AND job.claim = :claim AND job.state = 'running'
""")  # noqa: S608
# For a job that another claim has finished meanwhile: its result must say what all its attempts say.
_CORRECT = text(f"""
    UPDATE job SET state = counted.outcome, answer = counted.answer, counted_attempt = counted.id
    {_DERIVED} AND job.state IN ('invalid', 'refused', 'failed') AND counted.id IS NOT NULL
""")  # noqa: S608

_CALL_OVER = text(f"UPDATE job SET calling = false {_HELD}")  # noqa: S608
_LATER = text(f"UPDATE job SET {_PUT_BACK}, not_before = now() + make_interval(secs => :wait_s) {_HELD}")  # noqa: S608
_BACK = text(f"UPDATE job SET {_PUT_BACK} {_HELD}")  # noqa: S608
# DO UPDATE, so that a row that another worker is just inserting is waited for and returned.
_DEPLOYMENT = text("""
    INSERT INTO deployment (identity, provider, model, endpoint, server_version, first_seen)
    VALUES (:identity, :provider, :model, :endpoint, :server_version, now())
    ON CONFLICT (identity) DO UPDATE SET identity = excluded.identity RETURNING id
""")
_STOP = text("""
    INSERT INTO stop (study, queue, reason, since) VALUES (:study, :queue, :reason, now())
    ON CONFLICT (study, queue) DO NOTHING
""")


class JobStore:
    """Jobs and attempts in Postgres, as one worker process sees them."""

    def __init__(self, engine: Engine, *, worker: str) -> None:
        self._engine = engine
        self._worker = worker
        self._deployments: dict[Deployment, int] = {}

    def claim(self, job_ids: Sequence[int]) -> list[ClaimedJob]:
        """Take those of `job_ids` that are queued and wanted, in the order given; nobody else can hold them now."""
        ids = list(job_ids)
        with self._engine.begin() as connection:
            connection.execute(_RELEASE_UNWANTED, {"ids": ids})
            rows = connection.execute(_CLAIM, {"ids": ids, "margin": LEASE_MARGIN_S}).mappings().all()
            # Before the commit: rules that this version cannot read must not leave jobs in nobody's hands.
            rules = {row["condition"]: row["rules"] for row in rows}
            parsed = {condition: Rules.from_stored(stored) for condition, stored in rules.items()}
        place = {job_id: number for number, job_id in enumerate(ids)}
        return sorted((_claimed(row, parsed[row["condition"]]) for row in rows), key=lambda job: place[job.id])

    def begin_call(self, job: ClaimedJob) -> bool:
        """Renew the lease and note that a call starts; False if the job is no longer held or no longer wanted."""
        values = {"id": job.id, "claim": job.claim, "lease_s": job.lease_s}
        with self._engine.begin() as connection:
            return connection.execute(_BEGIN_CALL, values).first() is not None

    def give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """Put jobs that were not asked back to pending; those held by somebody else by now are left alone."""
        held = sorted((job.id, job.claim) for job in jobs)
        values = {"ids": [job_id for job_id, _ in held], "claims": [claim for _, claim in held]}
        with self._engine.begin() as connection:
            connection.execute(_GIVE_BACK, values)

    def keep(self, job: ClaimedJob, attempt: Attempt, decision: Decision) -> None:
        """Commit one attempt and what follows from it; the attempt is kept even if the claim has become stale."""
        with self._engine.begin() as connection:
            self._insert(connection, job, attempt)
            if not _apply(connection, job, decision):
                connection.execute(_CORRECT, {"id": job.id})
            if isinstance(decision, Stop):
                reason = attempt.error_message or "misconfigured"
                connection.execute(_STOP, {"study": job.study, "queue": job.queue, "reason": reason})

    def finish(self, job: ClaimedJob) -> None:
        """Finish a job that needs no further call: an earlier claim of this round has left an answer."""
        with self._engine.begin() as connection:
            connection.execute(_FINISH, {"id": job.id, "claim": job.claim})

    def deployment_id(self, deployment: Deployment) -> int:
        """The row of what answered, made when it is first seen."""
        if deployment not in self._deployments:
            values = asdict(deployment)
            values["identity"] = canonical_digest(values)
            with self._engine.begin() as connection:
                self._deployments[deployment] = connection.execute(_DEPLOYMENT, values).scalar_one()
        return self._deployments[deployment]

    def _insert(self, connection: Connection, job: ClaimedJob, attempt: Attempt) -> None:
        values = asdict(attempt)
        if attempt.prompt is not None:
            values["prompt"] = canonical_digest(attempt.prompt)
            connection.execute(_KEEP_PROMPT, {"digest": values["prompt"], "text": attempt.prompt})
        held = {"job": job.id, "round": job.round, "claim": job.claim, "worker": self._worker}
        connection.execute(_KEEP_ATTEMPT, values | held)


def _apply(connection: Connection, job: ClaimedJob, decision: Decision) -> bool:
    """What follows for the job; False where it is no longer held by this claim."""
    held: dict[str, Any] = {"id": job.id, "claim": job.claim}
    match decision:
        case Done():
            return connection.execute(_FINISH, held).rowcount > 0
        case AskAgain():
            return connection.execute(_CALL_OVER, held).rowcount > 0
        case Later(wait_s=wait_s):
            return connection.execute(_LATER, {**held, "wait_s": wait_s}).rowcount > 0
        case _:
            return connection.execute(_BACK, held).rowcount > 0


def _claimed(row: RowMapping, rules: Rules) -> ClaimedJob:
    return ClaimedJob(
        id=row["id"],
        claim=row["claim"],
        round=row["round"],
        part=row["part"],
        repeat=row["repeat"],
        study=row["study"],
        queue=row["queue"],
        item=Item.from_payload(
            dataset=row["dataset"], source_id=row["source_id"], cluster=row["cluster"], payload=row["payload"]
        ),
        variant=Variant(order=tuple(row["spec"]["variant"]["order"])),
        rules=rules,
        tally=Tally(calls=row["calls"], invalid=row["invalid"], faults=row["faults"]),
        answered=row["answered"] > 0,
    )
