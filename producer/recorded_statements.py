"""The SQL by which recorded answers become finished jobs."""

from sqlalchemy import text

from contract.recorded import IMPORTER, RECORDED
from contract.results import CHILD_ROUNDS, children_follow, counted_attempt

CONDITIONS = text(f"""
    WITH ours AS (
        SELECT * FROM condition WHERE study = :study AND model = :model AND provider = '{RECORDED}'
          AND of_condition IS NULL AND EXISTS (SELECT FROM job WHERE job.condition = condition.id AND job.planned)
    ) SELECT id, provider, dataset, format, variant, spec, rules, of_condition FROM ours
    UNION ALL
    SELECT id, provider, dataset, format, variant, spec, rules, of_condition FROM condition
    WHERE study = :study AND of_condition IN (SELECT id FROM ours)
      AND EXISTS (SELECT FROM job WHERE job.condition = condition.id AND job.planned)
""")  # noqa: S608 - only constants
PAIRS = text("SELECT DISTINCT condition, item FROM job WHERE condition = ANY(:conditions) AND planned")
ITEMS = text("""
    SELECT id, dataset, source_id, payload FROM item
    WHERE id IN (SELECT item FROM job WHERE condition = ANY(:conditions) AND planned)
""")
DEPLOYMENT = text("""
    INSERT INTO deployment (identity, provider, model, endpoint, digest, first_seen)
    VALUES (:identity, :provider, :model, :endpoint, :digest, now())
    ON CONFLICT (identity) DO UPDATE SET identity = excluded.identity RETURNING id
""")

COLUMNS = (
    *("row", "annotation", "condition", "item", "part", "repeat", "model", "content", "completion"),
    *("completion_length", "outcome", "answer", "text", "tier", "reason", "reading", "reading_version"),
)
STAGE = """
    CREATE TEMP TABLE staged_answer (
        row int, annotation bool, condition bigint, item bigint, part int, repeat int, model text, content text,
        completion text, completion_length bigint, outcome text, answer int, text text, tier text, reason text,
        reading text, reading_version int)
"""
COPY = f"COPY staged_answer ({', '.join(COLUMNS)}) FROM STDIN"
# An attempt's id follows from its job and its row, so that a second import finds what the first one wrote.
MATCH = text("""
    CREATE TEMP TABLE matched_answer AS
    SELECT job.id AS job, job.round, job.claim, job.finished_at IS NULL AND job.not_before IS NULL AS open,
           CAST(md5(concat_ws(' ', job.study, job.id, job.round, staged.content)) AS uuid) AS id, staged.*
    FROM staged_answer AS staged JOIN job USING (condition, item, part, repeat)
    WHERE job.planned AND staged.annotation = :annotation
""")
ANALYZE_STAGED = "ANALYZE staged_answer"
ANALYZE_MATCHED = "ANALYZE matched_answer"
ANSWERED_OTHERWISE = text("""
    SELECT min(matched.row) FROM matched_answer AS matched
    JOIN attempt ON attempt.job = matched.job AND attempt.round = matched.round WHERE attempt.id <> matched.id
""")
INSERT_ATTEMPTS = text(f"""
    INSERT INTO attempt (id, job, round, claim, started_at, latency_ms, completion, completion_length, outcome, answer,
                         text, tier, reason, reading, reading_version, deployment, worker)
    SELECT matched.id, matched.job, matched.round, matched.claim + 1, now(), 0, matched.completion,
           matched.completion_length, matched.outcome, matched.answer, matched.text, matched.tier, matched.reason,
           matched.reading, matched.reading_version, deployment.id, '{IMPORTER}'
    FROM matched_answer AS matched
    JOIN unnest(CAST(:models AS text[]), CAST(:deployments AS bigint[])) AS deployment (model, id) USING (model)
    WHERE matched.open ORDER BY matched.job ON CONFLICT (id) DO NOTHING
""")  # noqa: S608 - only a constant
# The result is derived from all attempts, as for what a worker stores: earlier rounds may have left an answer.
FINISH = text(f"""
    WITH over AS (
        UPDATE job SET state = counted.outcome, answer = counted.answer, text = counted.text,
            counted_attempt = counted.id, claim = job.claim + 1, finished_at = now(), calling = false,
            lease_until = NULL, not_before = NULL
        FROM (
            SELECT id, {CHILD_ROUNDS} AS since FROM job WHERE id IN (SELECT matched.job FROM matched_answer AS matched
                                                                     WHERE matched.open)
        ) AS given CROSS JOIN LATERAL ({counted_attempt("given.id", since="given.since")}) AS counted
        WHERE job.id = given.id RETURNING job.id, job.state
    ), followed AS (
        {children_follow("over")}
    ) SELECT count(*) FROM over
""")  # noqa: S608 - only constants
WAITING = text(f"""
    SELECT count(*) FROM job JOIN condition ON condition.id = job.condition
    LEFT JOIN condition AS shown ON shown.id = condition.of_condition
    WHERE job.study = :study AND job.planned AND job.finished_at IS NULL AND condition.provider = '{RECORDED}'
      AND :model IN (condition.model, shown.model)
""")  # noqa: S608 - only a constant
DROP_MATCHED = "DROP TABLE matched_answer"
DROP = "DROP TABLE staged_answer"
