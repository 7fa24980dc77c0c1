"""Postgres: one engine a process, opened by the program that starts, and its errors in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg.errors import UndefinedTable
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import OperationalError, ProgrammingError

from contract.errors import StackError, UnusableStackError

CONNECT_TIMEOUT_S = 5

# Without these a connection to a host that lost its power is waited on for hours.
_NOTICE_A_DEAD_HOST = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# And a client that hangs or lost its power in the middle of a transaction would hold its rows for hours.
_NOTICE_A_DEAD_CLIENT = """
    SET idle_in_transaction_session_timeout = '30s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3
"""


def open_engine(url: str, *, pool_size: int = 5, ping: bool = True, autocommit: bool = False) -> Engine:
    """An engine on `url`; nothing is connected yet.

    Idle connections are tested before use; without `ping` they are not, for a caller that repeats what fails anyway.
    With `autocommit` every statement is a transaction of its own.
    """
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=ping,
        **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
        hide_parameters=True,  # completions and prompts do not belong into error texts
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, **_NOTICE_A_DEAD_HOST},
    )
    event.listen(engine, "connect", _let_postgres_notice_us)
    return engine


def _let_postgres_notice_us(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's own
    with connection.cursor() as cursor:
        cursor.execute(_NOTICE_A_DEAD_CLIENT)
    if not connection.autocommit:
        connection.commit()


@contextmanager
def postgres_errors(engine: Engine) -> Iterator[None]:
    """Turn a dead server or a missing schema into a StackError that says what to do."""
    try:
        yield
    except OperationalError as error:
        reason = _first_line(error.orig)
        if "password authentication failed" in str(error.orig):
            problem = "refuses the password: set BOTHWAYS_PASSWORD right, or BOTHWAYS_DATABASE_URL"
            raise UnusableStackError(f"Postgres at {place(engine)} {problem}") from None
        raise StackError(f"Postgres does not answer at {place(engine)}: {reason}") from None
    except ProgrammingError as error:
        if isinstance(error.orig, UndefinedTable):
            raise StackError(f"the database at {place(engine)} has no tables yet: run `bothways migrate`") from None
        raise


def place(engine: Engine) -> str:
    """Where the engine points: host, port and database, nothing that could be a secret."""
    url = engine.url
    host = url.host or url.query.get("host") or "the local socket"
    return f"{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no reason given"
