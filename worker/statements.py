"""The SQL that a worker runs. Rows are locked in the order of their ids, whoever locks them.

Calls and what follows from them are one statement: the attempts, the results of their jobs, what becomes of children,
and the note that the next calls begin. One round trip, and nothing is ever half stored.
"""

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import psycopg

from contract.results import CHILD_ROUNDS, children_follow, counted_attempt


def _wanted(job: str) -> str:
    return f"""
        {job}.planned AND condition.state = 'active' AND study.state = 'active'
        AND NOT EXISTS (SELECT FROM stop WHERE stop.study = {job}.study AND stop.queue = {job}.queue
                        AND stop.endpoint IN ('', :endpoint))
    """


_PUT_BACK = "state = 'pending', lease_until = NULL, calling = false"

# Of a parent that is asked again, what it said last; its parent's present round counts there too.
_OF_PARENT = counted_attempt("parent.id", since="CASE WHEN parent.parent IS NULL THEN 1 ELSE parent.round END")

# A child whose parent has lost its answer meanwhile waits for it again.
CLAIM = text(f"""
    WITH asked AS (
        SELECT job.id, study.revision, earlier.text AS earlier,
               {_wanted("job")} AND (job.parent IS NULL OR earlier.text IS NOT NULL) AS wanted,
               (rules -> 'bundles' ->> 'budget_s')::float + (rules -> 'model' ->> 'timeout_s')::float AS longest_s
        FROM job JOIN condition ON condition.id = job.condition JOIN study ON study.id = job.study
        LEFT JOIN job AS parent ON parent.id = job.parent
        LEFT JOIN LATERAL ({_OF_PARENT}) AS earlier ON true
        WHERE job.id = ANY(:ids) AND job.state = 'queued' ORDER BY job.id FOR NO KEY UPDATE OF job SKIP LOCKED
    ), claimed AS (
        UPDATE job SET calling = false, state = CASE WHEN wanted THEN 'running' ELSE 'pending' END,
            claim = claim + wanted::int,
            lease_until = CASE WHEN wanted THEN now() + make_interval(secs => :margin + longest_s) END,
            not_before = CASE WHEN job.parent IS NOT NULL AND earlier IS NULL THEN timestamptz 'infinity' END
        FROM asked WHERE job.id = asked.id RETURNING job.*, asked.revision, asked.earlier
    )
    SELECT claimed.id, claim, claimed.round, part, repeat, study, queue, condition, revision, losses, claimed.cluster,
           item.dataset, item.source_id, item.payload, calls, invalid, faults, answered, earlier
    FROM claimed JOIN item ON item.id = claimed.item CROSS JOIN LATERAL (
        SELECT count(*) AS calls, count(*) FILTER (WHERE outcome = 'invalid') AS invalid,
               count(*) FILTER (WHERE error_kind = 'transient') AS faults,
               count(*) FILTER (WHERE outcome = 'answered') AS answered
        FROM attempt WHERE attempt.job = claimed.id AND attempt.round = claimed.round AND claimed.claim > 1
    ) AS tally WHERE claimed.state = 'running'
""")

RULES = text("SELECT id, spec, rules FROM condition WHERE id = ANY(:ids)")

BEGIN_CALL = text(f"""
    UPDATE job SET calling = true, lease_until = now() + make_interval(secs => :lease_s) FROM condition, study
    WHERE job.id = :id AND job.claim = :claim AND job.state = 'running'
      AND condition.id = job.condition AND study.id = job.study AND {_wanted("job")}
    RETURNING job.id
""")

GIVE_BACK = text(f"""
    WITH held AS (
        SELECT job.id FROM job JOIN unnest(CAST(:ids AS bigint[]), CAST(:claims AS int[])) AS ours (id, claim)
        ON job.id = ours.id AND job.claim = ours.claim
        WHERE job.state = 'running' ORDER BY job.id FOR NO KEY UPDATE OF job
    ) UPDATE job SET {_PUT_BACK}, not_before = now() + make_interval(secs => CAST(:wait_s AS float))
    FROM held WHERE job.id = held.id
""")

# A statement does not see the rows that it inserts itself.
_THESE_ATTEMPTS = """
    SELECT id, outcome, answer, text, claim, started_at FROM call AS also WHERE also.job = call.job
"""
_COUNTED = f"LATERAL ({counted_attempt('call.job', since='locked.since', also=_THESE_ATTEMPTS)}) AS counted ON true"
_ENDED = "(SELECT id, state FROM over WHERE finished_at IS NOT NULL)"

# All is decided on the rows as they were locked: asked for their state, Postgres would look them up in the wrong index.
# `becomes` says what the call makes of its job: done, again (held for another call), later (after wait_s) or back.
_KEEP = f"""
    WITH call AS MATERIALIZED (
        SELECT * FROM json_to_recordset(CAST(:calls AS json)) AS call (
            id uuid, job bigint, claim int, started_at timestamptz, outcome text, answer int, text text,
            prompt text, prompt_text text, becomes text, wait_s float, next bigint, next_claim int, lease_s float)
    ), locked AS MATERIALIZED (
        SELECT id, claim, state, planned, study, condition, queue, {CHILD_ROUNDS} AS since FROM job
        WHERE id = ANY(ARRAY(SELECT unnest(ARRAY[job, next]) FROM call)) ORDER BY id FOR NO KEY UPDATE
    ), prompts AS (
        INSERT INTO prompt (digest, text) SELECT DISTINCT ON (prompt) prompt, prompt_text FROM call
        WHERE prompt IS NOT NULL ORDER BY prompt ON CONFLICT (digest) DO NOTHING
    ), kept AS (
        INSERT INTO attempt
        SELECT * FROM json_populate_recordset(CAST(NULL AS attempt), CAST(:calls AS json)) ORDER BY id
        ON CONFLICT (id) DO NOTHING
    ), over AS (
        UPDATE job SET calling = false,
            state = CASE becomes WHEN 'done' THEN coalesce(counted.outcome, 'failed')
                                 WHEN 'again' THEN job.state ELSE 'pending' END,
            answer = CASE becomes WHEN 'done' THEN counted.answer END,
            text = CASE becomes WHEN 'done' THEN counted.text END,
            counted_attempt = CASE becomes WHEN 'done' THEN counted.id END,
            finished_at = CASE becomes WHEN 'done' THEN now() END,
            lease_until = CASE becomes WHEN 'again' THEN lease_until END,
            not_before = CASE becomes WHEN 'later' THEN now() + make_interval(secs => wait_s) END
        FROM call JOIN locked ON locked.id = call.job AND locked.claim = call.claim AND locked.state = 'running'
        LEFT JOIN {_COUNTED} WHERE job.id = locked.id AND next IS DISTINCT FROM call.job
        RETURNING job.id, job.claim, job.state, job.finished_at
    ), followed AS (
        {children_follow(_ENDED)}
    ), begun AS (
        UPDATE job SET calling = true, lease_until = now() + make_interval(secs => lease_s)
        FROM call JOIN locked ON locked.id = next AND locked.claim = next_claim AND locked.state = 'running'
        JOIN condition ON condition.id = locked.condition JOIN study ON study.id = locked.study
        WHERE job.id = locked.id AND {_wanted("locked")}
        RETURNING job.id, job.claim
    ) SELECT id, claim, true AS begun FROM begun UNION ALL SELECT id, claim, false FROM over
"""

# On one line: the driver keeps only statements of less than 4,096 characters ready, and parses longer ones every time.
# It goes to the driver directly, because SQLAlchemy's way there costs as much again.
KEEP = str(text(" ".join(_KEEP.split())).compile(dialect=psycopg.dialect()))  # type: ignore[no-untyped-call]
"""Attempts and what follows from them; returns jobs (id, claim, begun): those whose next call is noted as begun, and
those that the calls were still entitled to change."""

# Two claims of one job may store their attempts at the same moment, and neither statement sees the other's. So after
# each the result is derived once more, with the row locked before the attempts are looked at.
LOCK = text("SELECT FROM job WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE")
DERIVE_AGAIN = text(f"""
    WITH derived AS (
        UPDATE job SET state = counted.outcome, answer = counted.answer, text = counted.text,
            counted_attempt = counted.id
        FROM (SELECT id, {CHILD_ROUNDS} AS since FROM job WHERE id = ANY(:ids)) AS doubtful CROSS JOIN LATERAL (
            {counted_attempt("doubtful.id", since="doubtful.since")}) AS counted
        WHERE job.id = doubtful.id AND job.finished_at IS NOT NULL AND job.counted_attempt IS DISTINCT FROM counted.id
        RETURNING job.id, job.state
    ) {children_follow("derived")}
""")

FINISH = text(f"""
    WITH over AS (
        UPDATE job SET state = 'answered', answer = counted.answer, text = counted.text, counted_attempt = counted.id,
            finished_at = now(), lease_until = NULL, not_before = NULL, calling = false
        FROM (SELECT id, {CHILD_ROUNDS} AS since FROM job WHERE id = :id) AS one JOIN LATERAL (
            {counted_attempt("one.id", since="one.since")}) AS counted ON true
        WHERE job.id = :id AND job.claim = :claim AND job.state = 'running' RETURNING job.id, job.state
    ) {children_follow("over")}
""")

# DO UPDATE, so that a row that another worker is just inserting is waited for and returned.
DEPLOYMENT = text("""
    INSERT INTO deployment (identity, provider, model, endpoint, server_version, digest, quantisation, context_length,
                            template_digest, first_seen)
    VALUES (:identity, :provider, :model, :endpoint, :server_version, :digest, :quantisation, :context_length,
            :template_digest, now())
    ON CONFLICT (identity) DO UPDATE SET identity = excluded.identity RETURNING id
""")
