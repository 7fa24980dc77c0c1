"""first tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deployment",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("quantisation", sa.Text(), nullable=True),
        sa.Column("context_length", sa.Integer(), nullable=True),
        sa.Column("server_version", sa.Text(), nullable=True),
        sa.Column("template_digest", sa.Text(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment")),
        sa.UniqueConstraint("identity", name=op.f("uq_deployment_identity")),
    )
    op.create_table(
        "item",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item")),
        sa.UniqueConstraint("dataset", "source_id", "digest", name=op.f("uq_item_dataset_source_id_digest")),
    )
    op.create_table(
        "prompt",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_prompt")),
    )
    op.create_table(
        "study",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('active', 'paused', 'cancelled')", name=op.f("ck_study_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("name", name=op.f("uq_study_name")),
    )
    op.create_table(
        "worker_heartbeat",
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("queues", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("worker", name=op.f("pk_worker_heartbeat")),
    )
    op.create_table(
        "canary",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("deployment", sa.BigInteger(), nullable=True),
        sa.Column("pool", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("completion", sa.Text(), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["deployment"], ["deployment.id"], name=op.f("fk_canary_deployment")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_canary")),
    )
    op.create_table(
        "condition",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("study", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("rules", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("of_condition", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.CheckConstraint("state IN ('active', 'paused', 'cancelled')", name=op.f("ck_condition_state")),
        sa.ForeignKeyConstraint(["of_condition"], ["condition.id"], name=op.f("fk_condition_of_condition")),
        sa.ForeignKeyConstraint(["study"], ["study.id"], name=op.f("fk_condition_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_condition")),
        sa.UniqueConstraint("study", "digest", name=op.f("uq_condition_study_digest")),
    )
    op.create_table(
        "stop",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("study", sa.BigInteger(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.id"], name=op.f("fk_stop_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stop")),
        sa.UniqueConstraint("study", "queue", name=op.f("uq_stop_study_queue")),
    )
    op.create_table(
        "study_revision",
        sa.Column("study", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["study.id"], name=op.f("fk_study_revision_study")),
        sa.PrimaryKeyConstraint("study", "revision", name=op.f("pk_study_revision")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("condition", sa.BigInteger(), nullable=False),
        sa.Column("item", sa.BigInteger(), nullable=False),
        sa.Column("part", sa.Integer(), server_default="0", nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("study", sa.BigInteger(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("planned", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim", sa.Integer(), server_default="0", nullable=False),
        sa.Column("calling", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("round", sa.Integer(), server_default="1", nullable=False),
        sa.Column("parent", sa.BigInteger(), nullable=True),
        sa.Column("answer", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("counted_attempt", sa.Uuid(), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'queued', 'running', 'answered', 'invalid', 'refused', 'failed')",
            name=op.f("ck_job_state"),
        ),
        sa.ForeignKeyConstraint(["condition"], ["condition.id"], name=op.f("fk_job_condition")),
        sa.ForeignKeyConstraint(["item"], ["item.id"], name=op.f("fk_job_item")),
        sa.ForeignKeyConstraint(["parent"], ["job.id"], name=op.f("fk_job_parent")),
        sa.ForeignKeyConstraint(["study"], ["study.id"], name=op.f("fk_job_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("condition", "item", "part", "repeat", name=op.f("uq_job_condition_item_part_repeat")),
    )
    op.create_index(
        "ix_job_leased", "job", ["lease_until"], unique=False, postgresql_where="state IN ('queued', 'running')"
    )
    op.create_index("ix_job_parent", "job", ["parent"], unique=False, postgresql_where="parent IS NOT NULL")
    op.create_index(
        "ix_job_pending", "job", ["queue", "study", "position"], unique=False, postgresql_where="state = 'pending'"
    )
    op.create_index("ix_job_study_state", "job", ["study", "state"], unique=False)
    op.create_table(
        "attempt",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("claim", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("latency_ms", sa.BigInteger(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("completion", sa.Text(), nullable=True),
        sa.Column("completion_length", sa.BigInteger(), nullable=True),
        sa.Column("thinking", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("logprobs", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("answer", sa.Integer(), nullable=True),
        sa.Column("tier", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("reading", sa.Text(), nullable=True),
        sa.Column("reading_version", sa.Integer(), nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("deployment", sa.BigInteger(), nullable=True),
        sa.Column("pool", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('answered', 'invalid', 'refused', 'no_completion')", name=op.f("ck_attempt_outcome")
        ),
        sa.ForeignKeyConstraint(["deployment"], ["deployment.id"], name=op.f("fk_attempt_deployment")),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name=op.f("fk_attempt_job")),
        sa.ForeignKeyConstraint(["prompt"], ["prompt.digest"], name=op.f("fk_attempt_prompt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
    )
    op.create_index("ix_attempt_job_claim", "attempt", ["job", "claim", "started_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_attempt_job_claim", table_name="attempt")
    op.drop_table("attempt")
    op.drop_index("ix_job_study_state", table_name="job")
    op.drop_index("ix_job_pending", table_name="job", postgresql_where="state = 'pending'")
    op.drop_index("ix_job_parent", table_name="job", postgresql_where="parent IS NOT NULL")
    op.drop_index("ix_job_leased", table_name="job", postgresql_where="state IN ('queued', 'running')")
    op.drop_table("job")
    op.drop_table("study_revision")
    op.drop_table("stop")
    op.drop_table("condition")
    op.drop_table("canary")
    op.drop_table("worker_heartbeat")
    op.drop_table("study")
    op.drop_table("prompt")
    op.drop_table("item")
    op.drop_table("deployment")
