"""What all tables are made of: text, BIGINT, times with a zone, states as text with a CHECK."""

from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, DateTime, MetaData, Text
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA: MetaData = SQLModel.metadata


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """A CHECK that the column holds one of `values`."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def big_column(**options: Any) -> Any:  # noqa: ANN401 - SQLModel's Field is untyped by design
    """A BIGINT: ids, places, durations."""
    return Field(sa_type=BigInteger, **options)


def text_column(**options: Any) -> Any:  # noqa: ANN401
    """Text of any length."""
    return Field(sa_type=Text, **options)


def time_column(**options: Any) -> Any:  # noqa: ANN401
    """An instant with its zone."""
    return Field(sa_type=DateTime(timezone=True), **options)
