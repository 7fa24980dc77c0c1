"""What a worker does in Postgres: claim, begin a call, keep an attempt, give back.

Every function is one short transaction; none is open while a model is thinking. Whatever changes a job is guarded by
its claim number, so a worker that lost its lease can finish nothing, while its attempts are kept all the same.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, event
from sqlalchemy.exc import DataError, IntegrityError

from contract.conditions import Rules
from contract.formats import Variant
from contract.items import Item, canonical_digest
from worker import statements
from worker.commit import Committer
from worker.records import Attempt, ClaimedJob, Deployment
from worker.retry import AskAgain, Decision, Done, Later, Tally

UNREADABLE_WAIT_S = 300.0
_CONDITIONS_KEPT = 10_000


@dataclass(frozen=True, kw_only=True)
class _Way:
    """How a condition asks, as one revision of its study has it."""

    variant: Variant
    rules: Rules


class JobStore:
    """Jobs and attempts in Postgres, as one worker process sees them.

    Jobs are leased for the time that their bundle or their call may take, and for `lease_margin_s` more. `autocommit`:
    the engine's connections are in that mode already, and need not be put into it for every statement. `endpoint`: the
    GPU host whose stops concern this worker.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        worker: str,
        lease_margin_s: float = 30.0,
        autocommit: bool = False,
        endpoint: str | None = None,
    ) -> None:
        self._single = engine if autocommit else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._together = engine.execution_options(isolation_level="READ COMMITTED")
        self._worker = worker
        self._endpoint = endpoint or ""
        self.lease_margin_s = lease_margin_s
        self._committer: Committer[dict[str, Any]] = Committer(self._keep_all, alone=(DataError, IntegrityError))
        self._deployments: dict[Deployment, int] = {}
        self._ways: dict[tuple[int, int], _Way] = {}

    def claim(self, job_ids: Sequence[int]) -> list[ClaimedJob]:
        """Take those of `job_ids` that are queued and wanted, in the order given; nobody else can hold them now.

        What is not wanted any more is put back.
        """
        ids = list(job_ids)
        with self._single.connect() as connection:
            values = {"ids": ids, "margin": self.lease_margin_s, "endpoint": self._endpoint}
            rows = connection.execute(statements.CLAIM, values).mappings().all()
            try:
                ways = self._read_ways(connection, {(row["condition"], row["revision"]) for row in rows})
            except Exception:
                # Rules that this version cannot read must not leave jobs in nobody's hands, nor come again at once.
                held = {"ids": [row["id"] for row in rows], "claims": [row["claim"] for row in rows]}
                connection.execute(statements.GIVE_BACK, held | {"wait_s": UNREADABLE_WAIT_S})
                raise
        place = {job_id: number for number, job_id in enumerate(ids)}
        jobs = (_claimed(row, ways[row["condition"], row["revision"]]) for row in rows)
        return sorted(jobs, key=lambda job: place[job.id])

    def begin_call(self, job: ClaimedJob) -> bool:
        """Renew the lease and note that a call starts; False if the job is no longer held or no longer wanted."""
        with self._single.connect() as connection:
            lease_s = self._call_lease_s(job)
            values = {"id": job.id, "claim": job.claim, "lease_s": lease_s, "endpoint": self._endpoint}
            return connection.execute(statements.BEGIN_CALL, values).first() is not None

    def give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """Put jobs that were not asked back to pending; those held by somebody else by now are left alone."""
        values = {"ids": [job.id for job in jobs], "claims": [job.claim for job in jobs], "wait_s": None}
        with self._single.connect() as connection:
            connection.execute(statements.GIVE_BACK, values)

    def keep(self, job: ClaimedJob, attempt: Attempt, decision: Decision, *, then: ClaimedJob | None = None) -> bool:
        """Commit one attempt and what follows from it; the attempt is kept even if the claim has become stale.

        In the same transaction the call of `then` is begun; whether it may be made is returned.
        """
        becomes, wait_s = _becomes(decision)
        call = _values(job, attempt) | {"worker": self._worker, "becomes": becomes, "wait_s": wait_s}
        return self._committer.commit(call | self._next(then))

    def _keep_all(self, calls: Sequence[dict[str, Any]]) -> list[bool]:
        """Commit what several threads want kept, as one transaction; for each, whether its next call may be made."""
        with self._single.connect() as connection:
            values = {"calls": json.dumps(calls, ensure_ascii=False), "endpoint": self._endpoint}
            rows = {tuple(row) for row in connection.exec_driver_sql(statements.KEEP, values)}
        held = {(job, claim) for job, claim, _ in rows}
        doubtful = {call["job"] for call in calls if call["claim"] > 1 or (call["job"], call["claim"]) not in held}
        if doubtful:
            self._derive_again(sorted(doubtful))
        return [(call["next"], call["next_claim"], True) in rows for call in calls]

    def _derive_again(self, ids: Sequence[int]) -> None:
        """Let the results of jobs with more than one claim say what all their attempts say."""
        with self._together.begin() as connection:
            connection.execute(statements.LOCK, {"ids": ids})
            connection.execute(statements.DERIVE_AGAIN, {"ids": ids})

    def finish(self, job: ClaimedJob) -> None:
        """Finish a job that needs no further call: an earlier claim of this round has left an answer."""
        with self._single.connect() as connection:
            connection.execute(statements.FINISH, {"id": job.id, "claim": job.claim})

    def deployment_id(self, deployment: Deployment) -> int:
        """The row of what answered, made when it is first seen."""
        if deployment not in self._deployments:
            values = asdict(deployment)
            values["identity"] = canonical_digest(values)
            with self._single.connect() as connection:
                found: int = connection.execute(statements.DEPLOYMENT, values).scalar_one()
            # Not before it is committed: another thread's attempt may name it at once.
            self._deployments[deployment] = found
        return self._deployments[deployment]

    def _next(self, job: ClaimedJob | None) -> dict[str, Any]:
        if job is None:
            return {"next": None, "next_claim": None, "lease_s": None}
        return {"next": job.id, "next_claim": job.claim, "lease_s": self._call_lease_s(job)}

    def _call_lease_s(self, job: ClaimedJob) -> float:
        return job.rules.model.timeout_s + self.lease_margin_s

    def _read_ways(self, connection: Connection, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], _Way]:
        """How each condition asks; read again only when a `run` has made another revision of its study."""
        unread = wanted - self._ways.keys()
        if unread:
            rows = {row.id: row for row in connection.execute(statements.RULES, {"ids": [i for i, _ in unread]})}
            if len(self._ways) > _CONDITIONS_KEPT:
                self._ways.clear()
            for condition, revision in unread:
                variant = Variant.from_spec(rows[condition].spec["variant"])
                way = _Way(variant=variant, rules=Rules.from_stored(rows[condition].rules))
                self._ways[condition, revision] = way
        return {key: self._ways[key] for key in wanted}


def look_up_by_key(engine: Engine) -> None:
    """Let the connections of `engine` plan as a worker needs it: some rows by their keys, whatever the tables hold.

    Postgres takes the calls that are committed together for a hundred and, on tables of some thousand rows, would read
    all of them.
    """

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's own
        with connection.cursor() as cursor:
            cursor.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        if not connection.autocommit:
            connection.commit()


def _values(job: ClaimedJob, attempt: Attempt) -> dict[str, Any]:
    """One attempt as the statement that keeps it names its parts."""
    values = vars(attempt).copy()
    values["id"] = str(attempt.id)
    values["started_at"] = attempt.started_at.isoformat()
    values["prompt_text"] = attempt.prompt
    values["prompt"] = None if attempt.prompt is None else canonical_digest(attempt.prompt)
    return values | {"job": job.id, "round": job.round, "claim": job.claim}


def _becomes(decision: Decision) -> tuple[str, float | None]:
    """What becomes of the job, and the seconds that it has to wait."""
    match decision:
        case Done():
            return "done", None
        case AskAgain():
            return "again", None
        case Later(wait_s=wait_s):
            return "later", wait_s
        case _:
            return "back", None


def _claimed(row: RowMapping, way: _Way) -> ClaimedJob:
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
        variant=way.variant,
        rules=way.rules,
        tally=Tally(calls=row["calls"], invalid=row["invalid"], faults=row["faults"]),
        answered=row["answered"] > 0,
        losses=row["losses"],
        earlier=row["earlier"],
    )
