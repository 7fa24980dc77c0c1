"""Results out of Postgres, as Arrow into a frame: one row a planned job, with its first and its final answer.

first = the earliest attempt with a completion or a block; a transport fault never counts. final = the earliest attempt
that was read, else the last completion. Both are derived from the attempts, so that reading again or asking again
cannot contradict them.
"""

import adbc_driver_postgresql.dbapi as postgres
import polars as pl

from analysis.pairing import RESULT_SCHEMA

_CLOSED_RESULTS = """
    SELECT condition.dataset, condition.model, job.item, item.cluster, job.repeat, condition.variant AS "order",
           jsonb_array_length(item.payload -> 'choices') AS choices, (item.payload ->> 'target')::int AS target,
           CASE WHEN job.finished_at IS NOT NULL THEN first.outcome END AS first_outcome,
           CASE WHEN job.finished_at IS NOT NULL THEN first.answer END AS first_choice,
           CASE WHEN job.finished_at IS NOT NULL THEN coalesce(final.outcome, 'failed') END AS final_outcome,
           CASE WHEN job.finished_at IS NOT NULL THEN final.answer END AS final_choice
    FROM job
    JOIN study ON study.id = job.study
    JOIN condition ON condition.id = job.condition
    JOIN item ON item.id = job.item
    LEFT JOIN LATERAL (
        SELECT outcome, answer FROM attempt WHERE attempt.job = job.id AND outcome <> 'no_completion'
        ORDER BY started_at LIMIT 1
    ) AS first ON true
    LEFT JOIN LATERAL (
        SELECT outcome, answer FROM attempt WHERE attempt.job = job.id AND outcome <> 'no_completion'
        ORDER BY outcome = 'answered' DESC, CASE WHEN outcome = 'answered' THEN started_at END, started_at DESC LIMIT 1
    ) AS final ON true
    WHERE study.name = $1 AND job.planned AND condition.format = 'closed' AND condition.stage = 'answer'
    ORDER BY job.position
"""


def load_results(database_url: str, study: str) -> pl.DataFrame:
    """The planned closed jobs of `study` in plan order, in RESULT_SCHEMA; empty if there are none."""
    # ADBC takes the address that libpq takes, without SQLAlchemy's driver name.
    address = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    with postgres.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(_CLOSED_RESULTS, (study,))
        frame: pl.DataFrame = cursor.fetch_polars()
    return frame.cast(RESULT_SCHEMA)
