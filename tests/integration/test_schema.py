"""The tables of the models and those of the migrations are the same."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine

from contract import service_tables, tables  # noqa: F401 - importing them fills METADATA
from contract.columns import METADATA
from ops.schema import migrate


def test_migrations_and_models_agree(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, METADATA)

    assert differences == []


def test_migrating_again_changes_nothing(engine: Engine) -> None:
    migrate(engine)
    migrate(engine)
