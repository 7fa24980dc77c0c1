"""The schema of the database: brought up to date by Alembic, under a lock so that two starters do not race.

Which version the tables have is read without Alembic: every command asks, and its import takes a second.
"""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.errors import UndefinedTable
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import ProgrammingError

from contract.database import place, postgres_errors
from contract.errors import StackError, UnusableStackError

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_401_001
_VERSION = text("SELECT version_num FROM alembic_version")


def migrate(engine: Engine) -> None:
    """Bring the database to the newest revision; running it again changes nothing.

    UnusableStackError: its tables are of a newer version of Bothways.
    """
    from alembic import command

    pending_migrations(engine)
    with postgres_errors(engine), engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        command.upgrade(alembic_config(connection), "head")


def check_tables(engine: Engine) -> None:
    """StackError where the tables are not those of this version of Bothways; it says what to do."""
    missing = pending_migrations(engine)
    if missing:
        state = "has no tables yet" if missing == len(revisions()) else "has the tables of an older version"
        raise StackError(f"the database at {place(engine)} {state}: run `bothways migrate`")


def pending_migrations(engine: Engine) -> int:
    """How many migrations the database is behind this version; 0 if none, all of them if it has no tables yet.

    UnusableStackError: its tables are of a newer version of Bothways.
    """
    known, current = revisions(), _current(engine)
    if current is None:
        return len(known)
    if current not in known:
        problem = f"are of a newer version than this one ({version('bothways')}): update it here"
        raise UnusableStackError(f"the tables at {place(engine)} {problem}")
    return len(known) - 1 - known.index(current)


def revisions() -> list[str]:
    """The revisions that this version knows, the oldest first, as the names of their files begin."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def _current(engine: Engine) -> str | None:
    """The revision of the tables; None where there are none."""
    with postgres_errors(engine), engine.connect() as connection:
        try:
            return connection.execute(_VERSION).scalar()
        except ProgrammingError as error:
            if isinstance(error.orig, UndefinedTable):
                return None
            raise


def alembic_config(connection: Connection) -> "Config":
    """Alembic's configuration for one open connection; there is no ini file to keep in step."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
