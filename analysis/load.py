"""Results out of Postgres, as Arrow into a frame: one row a planned job, with its first and its final answer.

First and final answers are derived from the attempts (`contract.results`), so that reading again or asking again cannot
contradict them: a job that is being asked again keeps what it said before until it says something better.
"""

import adbc_driver_postgresql.dbapi as postgres
import polars as pl

from analysis.pairing import RESULT_SCHEMA
from contract.errors import StackError
from contract.results import counted_attempt, first_attempt

_CLOSED_RESULTS = f"""
    SELECT condition.dataset, condition.model, job.item, job.cluster, job.repeat, condition.variant AS "order",
           jsonb_array_length(item.payload -> 'choices') AS choices, (item.payload ->> 'target')::int AS target,
           first.outcome AS first_outcome, first.answer AS first_choice,
           coalesce(final.outcome, CASE WHEN job.state = 'failed' THEN 'failed' END) AS final_outcome,
           final.answer AS final_choice
    FROM job
    JOIN study ON study.id = job.study
    JOIN condition ON condition.id = job.condition
    JOIN item ON item.id = job.item
    LEFT JOIN LATERAL ({first_attempt("job.id")}) AS first ON true
    LEFT JOIN LATERAL ({counted_attempt("job.id")}) AS final ON true
    WHERE study.name = $1 AND job.planned AND condition.format = 'closed' AND condition.stage = 'answer'
    ORDER BY job.position
"""  # noqa: S608 - only constants


def load_results(database_url: str, study: str) -> pl.DataFrame:
    """The planned closed jobs of `study` in plan order, in RESULT_SCHEMA, perhaps none; StackError without Postgres."""
    # ADBC takes the address that libpq takes, without SQLAlchemy's driver name.
    address = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        with postgres.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(_CLOSED_RESULTS, (study,))
            frame: pl.DataFrame = cursor.fetch_polars()
    except postgres.Error as error:
        raise StackError(f"the results could not be read from Postgres: {type(error).__name__}") from None
    return frame.cast(RESULT_SCHEMA)
