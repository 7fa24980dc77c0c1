"""How Alembic reaches the database: always over an open connection that `ops.schema` hands in."""

from alembic import context

from contract.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
