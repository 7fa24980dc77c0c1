"""By which readings a study's answers were read: figures of two readings are not to be mixed without a word."""

from dataclasses import dataclass

from sqlalchemy import Engine, text

from contract.database import postgres_errors
from contract.reading import READINGS

_IN_USE = text("""
    SELECT attempt.reading, attempt.reading_version, condition.rules -> 'format' ->> 'reading' AS wanted,
           count(*) AS attempts
    FROM attempt JOIN job ON job.id = attempt.job JOIN condition ON condition.id = job.condition
    JOIN study ON study.id = job.study
    WHERE study.name = :study AND job.planned AND attempt.reading <> 'recorded' AND condition.format = 'closed'
    GROUP BY 1, 2, 3 ORDER BY attempts DESC, 1, 2
""")


@dataclass(frozen=True, kw_only=True)
class ReadingsInUse:
    """The readings, with their versions, of a study's attempts; `otherwise` of them are not by the study's own."""

    names: tuple[str, ...]
    otherwise: int

    @property
    def note(self) -> str | None:
        """What every table of the study must say; None where all is read by the study's own reading."""
        if not self.otherwise:
            return None
        return f"read by {' and '.join(self.names)}: bothways reparse"


def readings_in_use(engine: Engine, study: str) -> ReadingsInUse:
    """The readings of the planned jobs' attempts."""
    with postgres_errors(engine), engine.connect() as connection:
        rows = connection.execute(_IN_USE, {"study": study}).all()
    names = dict.fromkeys(f"{row.reading} {row.reading_version}" for row in rows)
    otherwise = sum(
        row.attempts for row in rows if (row.reading, row.reading_version) != (row.wanted, READINGS[row.wanted].version)
    )
    return ReadingsInUse(names=tuple(names), otherwise=otherwise)
