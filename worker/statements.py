"""The SQL that a worker runs. Rows are locked in the order of their ids, whoever locks them.

A call and what follows from it are one statement: the attempt, the job's result, what becomes of its children, and the
note that the next call begins. One round trip a job, and nothing is ever half stored.
"""

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import psycopg

from contract.results import children_follow, counted_attempt

_WANTED = """
    job.planned AND condition.state = 'active' AND study.state = 'active'
    AND NOT EXISTS (SELECT FROM stop WHERE stop.study = job.study AND stop.queue = job.queue)
"""
_PUT_BACK = "state = 'pending', lease_until = NULL, calling = false"

CLAIM = text(f"""
    WITH asked AS (
        SELECT job.id, {_WANTED} AS wanted, study.revision,
               (rules -> 'bundles' ->> 'budget_s')::float + (rules -> 'model' ->> 'timeout_s')::float AS longest_s
        FROM job JOIN condition ON condition.id = job.condition JOIN study ON study.id = job.study
        WHERE job.id = ANY(:ids) AND job.state = 'queued' ORDER BY job.id FOR NO KEY UPDATE OF job SKIP LOCKED
    ), claimed AS (
        UPDATE job SET calling = false, state = CASE WHEN wanted THEN 'running' ELSE 'pending' END,
            claim = claim + wanted::int,
            lease_until = CASE WHEN wanted THEN now() + make_interval(secs => :margin + longest_s) END
        FROM asked WHERE job.id = asked.id RETURNING job.*, asked.revision
    )
    SELECT claimed.id, claim, claimed.round, part, repeat, study, queue, condition, revision, losses, claimed.cluster,
           item.dataset, item.source_id, item.payload, calls, invalid, faults, answered
    FROM claimed JOIN item ON item.id = claimed.item CROSS JOIN LATERAL (
        SELECT count(*) AS calls, count(*) FILTER (WHERE outcome = 'invalid') AS invalid,
               count(*) FILTER (WHERE error_kind = 'transient') AS faults,
               count(*) FILTER (WHERE outcome = 'answered') AS answered
        FROM attempt WHERE attempt.job = claimed.id AND attempt.round = claimed.round AND claimed.claim > 1
    ) AS tally WHERE claimed.state = 'running'
""")

RULES = text("SELECT id, spec, rules FROM condition WHERE id = ANY(:ids)")

_BEGIN = f"""
    UPDATE job SET calling = true, lease_until = now() + make_interval(secs => :lease_s) FROM condition, study
    WHERE job.id = CAST(:next AS bigint) AND job.claim = :next_claim AND job.state = 'running'
      AND condition.id = job.condition AND study.id = job.study AND {_WANTED}
"""
BEGIN_CALL = text(f"{_BEGIN} RETURNING job.id")

GIVE_BACK = text(f"""
    WITH held AS (
        SELECT job.id FROM job JOIN unnest(CAST(:ids AS bigint[]), CAST(:claims AS int[])) AS ours (id, claim)
        ON job.id = ours.id AND job.claim = ours.claim
        WHERE job.state = 'running' ORDER BY job.id FOR NO KEY UPDATE OF job
    ) UPDATE job SET {_PUT_BACK} FROM held WHERE job.id = held.id
""")

_HELD = "job.id = CAST(:id AS bigint) AND job.claim = :claim AND job.state = 'running'"

# A statement does not see the row that it inserts itself.
_THIS_ATTEMPT = """
    SELECT CAST(:attempt AS uuid), CAST(:outcome AS text), CAST(:answer AS int), CAST(:claim AS int),
           CAST(:started_at AS timestamptz)
"""
_COUNTED = f"""
    (SELECT) AS one LEFT JOIN LATERAL ({counted_attempt("CAST(:id AS bigint)", also=_THIS_ATTEMPT)}) AS counted ON true
    WHERE job.id = CAST(:id AS bigint)
"""
# For a job that another claim has finished meanwhile: its result must say what all its attempts say.
_CORRECT = f"""
    UPDATE job SET state = counted.outcome, answer = counted.answer, counted_attempt = counted.id FROM {_COUNTED}
      AND job.state IN ('invalid', 'refused', 'failed') AND counted.id IS NOT NULL
"""
_OVER = {
    "done": f"""
        UPDATE job SET state = coalesce(counted.outcome, 'failed'), answer = counted.answer,
            counted_attempt = counted.id, finished_at = now(), lease_until = NULL, not_before = NULL, calling = false
        FROM {_COUNTED} AND job.claim = :claim AND job.state = 'running'
    """,
    "again": f"UPDATE job SET calling = false WHERE {_HELD} AND job.id IS DISTINCT FROM CAST(:next AS bigint)",
    "later": f"UPDATE job SET {_PUT_BACK}, not_before = now() + make_interval(secs => :wait_s) WHERE {_HELD}",
    "back": f"UPDATE job SET {_PUT_BACK} WHERE {_HELD}",
}

_LOCKED = "(SELECT count(*) FROM locked) > 0"  # counting takes all the locks before anything is changed


def _keep(over: str) -> str:
    return f"""
        WITH locked AS MATERIALIZED (
            SELECT id FROM job WHERE id IN (CAST(:id AS bigint), CAST(:next AS bigint)) ORDER BY id FOR NO KEY UPDATE
        ), said AS (
            INSERT INTO prompt (digest, text) SELECT CAST(:prompt AS text), CAST(:prompt_text AS text)
            WHERE CAST(:prompt AS text) IS NOT NULL ON CONFLICT (digest) DO NOTHING
        ), kept AS (
            INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, prompt, seed, completion,
                completion_length, thinking, finish_reason, tokens_in, tokens_out, tokens_cached, outcome, answer, tier,
                reason, reading, reading_version, error_kind, error_message, deployment, worker)
            VALUES (:attempt, :id, :round, :claim, :started_at, :latency_ms, :prompt, :seed, :completion,
                :completion_length, :thinking, :finish_reason, :tokens_in, :tokens_out, :tokens_cached, :outcome,
                :answer, :tier, :reason, :reading, :reading_version, :error_kind, :error_message, :deployment, :worker)
            ON CONFLICT (id) DO NOTHING
        ), over AS ({over} AND {_LOCKED} RETURNING job.id, job.state, job.finished_at
        ), corrected AS ({_CORRECT} AND {_LOCKED} RETURNING job.id, job.state
        ), followed AS (
            {
        children_follow('''(
                SELECT id, state FROM over WHERE finished_at IS NOT NULL UNION ALL SELECT id, state FROM corrected
            )''')
    }
        ), begun AS ({_BEGIN} AND {_LOCKED} RETURNING job.id)
        SELECT (SELECT count(*) FROM begun) AS begun
    """


def _for_driver(statement: str) -> str:
    """The statement as the driver takes it, on one line: it keeps only those under 4,096 characters ready.

    The statement of every call goes to the driver directly, because SQLAlchemy's way there costs as much again.
    """
    return str(text(" ".join(statement.split())).compile(dialect=psycopg.dialect()))  # type: ignore[no-untyped-call]


KEEP = {name: _for_driver(_keep(over)) for name, over in _OVER.items()}
"""One attempt and what follows, by what becomes of the job; returns whether the call of `next` is noted as begun."""

FINISH = text(f"""
    UPDATE job SET state = 'answered', answer = counted.answer, counted_attempt = counted.id, finished_at = now(),
        lease_until = NULL, not_before = NULL, calling = false
    FROM (SELECT) AS one JOIN LATERAL ({counted_attempt("CAST(:id AS bigint)")}) AS counted ON true
    WHERE job.id = :id AND job.claim = :claim AND job.state = 'running'
""")

# DO UPDATE, so that a row that another worker is just inserting is waited for and returned.
DEPLOYMENT = text("""
    INSERT INTO deployment (identity, provider, model, endpoint, server_version, first_seen)
    VALUES (:identity, :provider, :model, :endpoint, :server_version, now())
    ON CONFLICT (identity) DO UPDATE SET identity = excluded.identity RETURNING id
""")
STOP = text("""
    INSERT INTO stop (study, queue, reason, since) VALUES (:study, :queue, :reason, now())
    ON CONFLICT (study, queue) DO NOTHING
""")
