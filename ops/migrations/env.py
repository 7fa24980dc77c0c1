"""How Alembic reaches the database: always over an open connection that `ops.schema` hands in."""

from alembic import context

from contract import service_tables, tables  # noqa: F401 - importing them fills METADATA
from contract.columns import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
