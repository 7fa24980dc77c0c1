"""The SQL by which a plan becomes rows."""

from sqlalchemy import text

from producer.window import REOPENED

STUDY = text("""
    INSERT INTO study (name, state, revision, weight, created_at) VALUES (:name, 'active', 1, :weight, now())
    ON CONFLICT (name) DO UPDATE SET revision = study.revision + 1, weight = excluded.weight
    RETURNING id, state, revision
""")
REVISION = text("""
    INSERT INTO study_revision (study, revision, spec, created_at)
    VALUES (:study, :revision, CAST(:spec AS jsonb), now())
""")
CONDITION = text("""
    INSERT INTO condition (study, digest, dataset, provider, model, format, variant, stage, queue, of_condition, spec,
                           rules, state)
    VALUES (:study, :digest, :dataset, :provider, :model, :format, :variant, :stage, :queue, :of_condition,
            CAST(:spec AS jsonb), CAST(:rules AS jsonb), coalesce((
                SELECT max(state) FROM condition AS held WHERE held.study = :study AND held.model = :model
                HAVING bool_and(held.state <> 'active')), 'active'))
    ON CONFLICT (study, digest) DO UPDATE SET rules = excluded.rules RETURNING id
""")
STAGE_ITEMS = "CREATE TEMP TABLE staged_item (dataset text, source_id text, digest text, payload jsonb)"
COPY_ITEMS = "COPY staged_item (dataset, source_id, digest, payload) FROM STDIN"
INSERT_ITEMS = text("""
    INSERT INTO item (dataset, source_id, digest, payload)
    SELECT dataset, source_id, digest, payload FROM staged_item ORDER BY dataset, source_id, digest
    ON CONFLICT (dataset, source_id, digest) DO UPDATE SET payload = excluded.payload
    WHERE item.payload IS DISTINCT FROM excluded.payload
""")
ITEM_IDS = text("""
    SELECT item.dataset, item.source_id, item.digest, item.id
    FROM item JOIN staged_item USING (dataset, source_id, digest)
""")
STAGE_JOBS = """
    CREATE TEMP TABLE staged_job
        (condition bigint, item bigint, part int, repeat int, position bigint, prefix bigint, cluster text)
"""
COPY_JOBS = "COPY staged_job (condition, item, part, repeat, position, prefix, cluster) FROM STDIN"
INSERT_NEW_JOBS = """
    INSERT INTO job (condition, item, part, repeat, study, queue, position, prefix, cluster)
    SELECT staged.condition, staged.item, staged.part, staged.repeat, :study, condition.queue, staged.position,
           staged.prefix, staged.cluster
    FROM staged_job AS staged JOIN condition ON condition.id = staged.condition
    WHERE condition.of_condition IS NULL ORDER BY staged.position
"""
INSERT_JOBS = text(f"{INSERT_NEW_JOBS} ON CONFLICT (condition, item, part, repeat) DO NOTHING")
# After their parents, and due when those are answered; those of parents that have ended are settled at once.
INSERT_CHILDREN = text("""
    INSERT INTO job (condition, item, part, repeat, study, queue, position, prefix, cluster, parent, not_before)
    SELECT staged.condition, staged.item, staged.part, staged.repeat, :study, condition.queue, staged.position,
           staged.prefix, staged.cluster, parent.id, 'infinity'
    FROM staged_job AS staged JOIN condition ON condition.id = staged.condition
    JOIN job AS parent ON (parent.condition, parent.item, parent.part, parent.repeat)
        = (condition.of_condition, staged.item, staged.part, staged.repeat)
    WHERE staged.condition = :condition ORDER BY staged.position
    ON CONFLICT (condition, item, part, repeat) DO NOTHING
""")
# Rows are locked in the order of their ids, so that workers are waited for and seldom met head on.
REVIVE = text("""
    UPDATE job SET planned = true WHERE id IN (
        SELECT job.id FROM job JOIN staged_job AS staged USING (condition, item, part, repeat)
        WHERE job.study = :study AND NOT job.planned ORDER BY job.id FOR NO KEY UPDATE OF job)
""")
MOVE = text("""
    WITH moved AS MATERIALIZED (
        SELECT job.id, staged.position, staged.prefix, staged.cluster
        FROM job JOIN staged_job AS staged USING (condition, item, part, repeat)
        WHERE job.study = :study AND (job.cluster <> staged.cluster OR (job.state = 'pending' AND
              (job.position, job.prefix) IS DISTINCT FROM (staged.position, staged.prefix)))
        ORDER BY job.id FOR NO KEY UPDATE OF job
    ) UPDATE job SET position = moved.position, prefix = moved.prefix, cluster = moved.cluster
    FROM moved WHERE job.id = moved.id
""")
UNPLAN = text("""
    UPDATE job SET planned = false WHERE id IN (
        SELECT id FROM job WHERE job.study = :study AND job.planned AND NOT EXISTS (
            SELECT FROM staged_job AS staged WHERE (job.condition, job.item, job.part, job.repeat)
                = (staged.condition, staged.item, staged.part, staged.repeat))
        ORDER BY id FOR NO KEY UPDATE)
""")
REOPEN = text(f"""
    UPDATE job SET {REOPENED}
    WHERE :invalid > (SELECT (spec -> 'retry' ->> 'invalid')::int FROM study_revision
                      WHERE study = :study AND revision = :revision - 1)
      AND job.study = :study AND job.planned AND job.state = 'invalid' AND (
        SELECT count(*) FROM attempt
        WHERE attempt.job = job.id AND attempt.round = job.round AND attempt.outcome = 'invalid'
    ) BETWEEN 1 AND :invalid
""")  # noqa: S608 - only a constant
CLEAR_STOPS = text("DELETE FROM stop WHERE study = :study")
