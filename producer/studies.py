"""The one look-up of a study by its name, and what is said when there is none."""

from typing import Any

from sqlalchemy import Connection, Row, text

from contract.errors import UnknownStudyError

_STUDY = "SELECT id, name, state, revision FROM study WHERE name = :name"
_NAMES = text("SELECT name FROM study ORDER BY name")


def find_study(connection: Connection, name: str, *, lock: bool = False) -> Row[Any]:
    """The study's id, name, state and revision; UnknownStudyError that names the known ones if there is none."""
    row = connection.execute(text(f"{_STUDY} FOR UPDATE" if lock else _STUDY), {"name": name}).one_or_none()
    if row is None:
        raise UnknownStudyError(
            f"no study {name!r} in the database; known: {', '.join(names(connection)) or 'none yet'}"
        )
    return row


def names(connection: Connection) -> list[str]:
    """The studies that the database knows."""
    return list(connection.execute(_NAMES).scalars())
