"""Alembic migrations, run by `bothways migrate` and by the embedded stack before anything else."""
