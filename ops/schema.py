"""The schema of the database: brought up to date by Alembic, under a lock so that two starters do not race."""

from importlib.metadata import version
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from contract.database import place, postgres_errors
from contract.errors import UnusableStackError

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_401_001


def migrate(engine: Engine) -> None:
    """Bring the database to the newest revision; running it again changes nothing.

    UnusableStackError: its tables are of a newer version of Bothways.
    """
    with postgres_errors(engine), engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        _pending(connection)
        command.upgrade(alembic_config(connection), "head")


def pending_migrations(engine: Engine) -> int:
    """How many migrations the database is behind this version; 0 if none, all of them if it has no tables yet.

    UnusableStackError: its tables are of a newer version of Bothways.
    """
    with postgres_errors(engine), engine.connect() as connection:
        return _pending(connection)


def _pending(connection: Connection) -> int:
    scripts = ScriptDirectory.from_config(alembic_config(connection))
    current = MigrationContext.configure(connection).get_current_revision()
    behind = [each.revision for each in scripts.iterate_revisions("head", "base")]  # the newest first
    if current is None:
        return len(behind)
    if current not in behind:
        where, ours = place(connection.engine), version("bothways")
        raise UnusableStackError(f"the tables at {where} are of a newer version than this one ({ours}): update it here")
    return behind.index(current)


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for one open connection; there is no ini file to keep in step."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
