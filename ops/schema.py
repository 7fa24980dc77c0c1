"""The schema of the database: brought up to date by Alembic, under a lock so that two starters do not race."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from contract.database import postgres_errors

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_401_001


def migrate(engine: Engine) -> None:
    """Bring the database to the newest revision; running it again changes nothing."""
    with postgres_errors(engine), engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        command.upgrade(alembic_config(connection), "head")


def pending_migrations(engine: Engine) -> int:
    """How many migrations the database is behind this version; 0 if none, all of them if it has no tables yet."""
    with postgres_errors(engine), engine.connect() as connection:
        scripts = ScriptDirectory.from_config(alembic_config(connection))
        current = MigrationContext.configure(connection).get_current_revision()
    return sum(1 for _ in scripts.iterate_revisions("head", current or "base"))


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for one open connection; there is no ini file to keep in step."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
