"""providers and pools: pins, contacts, stops of one host, what a host tells with its heartbeat"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_POOLED = sa.text("pool IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "pin",
        sa.Column("study", sa.BigInteger(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.id"], name=op.f("fk_pin_study")),
        sa.PrimaryKeyConstraint("study", "queue", "digest", name=op.f("pk_pin")),
    )
    op.add_column("canary", sa.Column("contact", sa.Text(), server_default="", nullable=False))
    op.create_index("ix_canary_contact", "canary", ["contact", "started_at"])
    op.create_index("ix_canary_pool", "canary", ["pool", "started_at"], postgresql_where=_POOLED)
    op.create_index("ix_attempt_pool", "attempt", ["pool", "started_at"], postgresql_where=_POOLED)
    op.drop_constraint("uq_stop_study_queue", "stop", type_="unique")
    op.add_column("stop", sa.Column("endpoint", sa.Text(), server_default="", nullable=False))
    op.add_column("stop", sa.Column("digest", sa.Text(), nullable=True))
    op.add_column(
        "stop", sa.Column("tried_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False)
    )
    op.create_unique_constraint("uq_stop_study_queue_endpoint", "stop", ["study", "queue", "endpoint"])
    op.add_column("worker_heartbeat", sa.Column("endpoint", sa.Text(), nullable=True))
    op.add_column("worker_heartbeat", sa.Column("models", postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    for name, default in (("resting", "{}"), ("wants", "{}"), ("notes", "[]")):
        column = sa.Column(name, postgresql.JSONB(astext_type=sa.Text()), server_default=default, nullable=False)
        op.add_column("worker_heartbeat", column)


def downgrade() -> None:
    for name in ("notes", "wants", "resting", "models", "endpoint"):
        op.drop_column("worker_heartbeat", name)
    op.execute("DELETE FROM stop WHERE endpoint <> ''")
    op.drop_constraint("uq_stop_study_queue_endpoint", "stop", type_="unique")
    for name in ("tried_at", "digest", "endpoint"):
        op.drop_column("stop", name)
    op.create_unique_constraint("uq_stop_study_queue", "stop", ["study", "queue"])
    op.drop_index("ix_attempt_pool", table_name="attempt")
    op.drop_index("ix_canary_pool", table_name="canary")
    op.drop_index("ix_canary_contact", table_name="canary")
    op.drop_column("canary", "contact")
    op.drop_table("pin")
