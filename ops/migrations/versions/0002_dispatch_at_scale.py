"""dispatch at scale: prefixes, weights, paces, dispatchers that are seen, indexes that renewals need not write"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_HELD = sa.text("state IN ('queued', 'running')")
_PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    op.create_table(
        "dispatcher_heartbeat",
        sa.Column("dispatcher", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leads", sa.Boolean(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("dispatcher", name=op.f("pk_dispatcher_heartbeat")),
    )
    op.add_column(
        "worker_heartbeat",
        sa.Column("pace", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
    )
    op.add_column("study", sa.Column("weight", sa.Integer(), server_default="1", nullable=False))
    # Unknown for the jobs that are there; the next `run` of their study tells it.
    op.add_column("job", sa.Column("prefix", sa.BigInteger(), nullable=True))
    # Its condition has the same study; checking it twice took an eighth of the time of an enqueue.
    op.drop_constraint("fk_job_study", "job", type_="foreignkey")
    op.drop_index("ix_job_pending", table_name="job")
    op.drop_index("ix_job_leased", table_name="job")
    op.drop_index("ix_job_study_state", table_name="job")
    op.create_index(
        "ix_job_due",
        "job",
        ["queue", "study", "position"],
        postgresql_where=sa.text("state = 'pending' AND planned AND not_before IS NULL"),
    )
    op.create_index(
        "ix_job_waiting",
        "job",
        ["not_before"],
        postgresql_where=sa.text("state = 'pending' AND not_before IS NOT NULL"),
    )
    op.create_index("ix_job_held", "job", ["queue", "study"], postgresql_where=_HELD)
    op.create_index("ix_job_study", "job", ["study"])
    op.execute("ALTER TABLE job SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)")


def downgrade() -> None:
    op.execute("ALTER TABLE job RESET (fillfactor, autovacuum_vacuum_scale_factor)")
    for name in ("ix_job_study", "ix_job_held", "ix_job_waiting", "ix_job_due"):
        op.drop_index(name, table_name="job")
    op.create_foreign_key("fk_job_study", "job", "study", ["study"], ["id"])
    op.create_index("ix_job_study_state", "job", ["study", "state"])
    op.create_index("ix_job_leased", "job", ["lease_until"], postgresql_where=_HELD)
    op.create_index("ix_job_pending", "job", ["queue", "study", "position"], postgresql_where=_PENDING)
    op.drop_column("job", "prefix")
    op.drop_column("study", "weight")
    op.drop_column("worker_heartbeat", "pace")
    op.drop_table("dispatcher_heartbeat")
