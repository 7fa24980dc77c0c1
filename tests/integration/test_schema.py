"""The tables of the models and those of the migrations are the same."""

from collections.abc import Callable

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, text

from contract import service_tables, tables  # noqa: F401 - importing them fills METADATA
from contract.columns import METADATA
from contract.errors import StackError, UnusableStackError
from ops.schema import MIGRATIONS, check_tables, migrate, pending_migrations, revisions
from tests.jobs import change


def test_migrations_and_models_agree(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, METADATA)

    assert differences == []


def test_migrating_again_changes_nothing(engine: Engine) -> None:
    migrate(engine)
    migrate(engine)


def test_tables_of_an_older_version_are_so_many_changes_behind(engine: Engine) -> None:
    assert pending_migrations(engine) == 0
    check_tables(engine)

    change(engine, "UPDATE alembic_version SET version_num = '0001'")
    assert pending_migrations(engine) == 3
    with pytest.raises(StackError, match="has the tables of an older version: run `bothways migrate`"):
        check_tables(engine)
    change(engine, "DROP TABLE alembic_version")
    assert pending_migrations(engine) == 4
    with pytest.raises(StackError, match="has no tables yet: run `bothways migrate`"):
        check_tables(engine)


def test_the_revisions_are_those_of_the_migrations_oldest_first() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))

    assert revisions()[::-1] == [script.revision for script in scripts.walk_revisions()]


@pytest.mark.parametrize("look", [migrate, pending_migrations, check_tables])
def test_tables_of_a_newer_version_are_left_as_they_are(engine: Engine, look: Callable[[Engine], object]) -> None:
    change(engine, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(UnusableStackError, match=r"are of a newer version than this one \(.+\): update it here"):
        look(engine)

    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"
