"""What most commands begin with: the settings, the database, the broker, each checked before anything is done."""

import os
from dataclasses import dataclass

from celery import Celery
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError
from redis.retry import Retry
from sqlalchemy import Engine, text

from contract.broker import create_celery
from contract.database import open_engine, postgres_errors
from contract.errors import StackError, UnusableStackError
from contract.settings import Settings, load_settings, state_folder
from ops.schema import check_tables

BROKER_TIMEOUT_S = 5.0
"""So long a broker may take for an answer: one that accepts and says nothing would be waited on without an end."""


@dataclass(frozen=True, kw_only=True)
class Connected:
    """The settings in force and the engine on the database, which answered."""

    settings: Settings
    engine: Engine

    @property
    def database_url(self) -> str:
        """The address with its password, for the library that loads results."""
        return self.settings.database_url.get_secret_value()

    def celery(self) -> Celery:
        """A Celery application on the broker."""
        return create_celery(self.settings.broker_url.get_secret_value())

    def broker(self) -> Redis:
        """A client of the broker, which answered; StackError if it does not."""
        return open_broker(self.settings)


def open_broker(settings: Settings, timeout_s: float = BROKER_TIMEOUT_S) -> Redis:
    """A client of the broker, which answered; StackError if it does not. `timeout_s` holds for each answer."""
    address = settings.broker_url.get_secret_value()
    client = Redis.from_url(address, decode_responses=True, socket_timeout=timeout_s, socket_connect_timeout=timeout_s)
    once = Retry(NoBackoff(), 0)  # by itself the library would try again and again, and multiply the time-out
    try:
        with Redis.from_url(
            address, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=once
        ) as first_contact:
            first_contact.ping()
    except AuthenticationError:
        problem = "refuses the password: set BOTHWAYS_PASSWORD right, or BOTHWAYS_BROKER_URL"
        raise UnusableStackError(f"the broker at {_place(client)} {problem}") from None
    except (RedisError, OSError) as error:
        raise StackError(f"the broker does not answer at {_place(client)}: {error}") from None
    return client


def connect(settings: Settings | None = None, *, tables: bool = True) -> Connected:
    """The settings and a database that answers, with the tables of this version unless they do not matter here.

    StackError says what is missing.
    """
    settings = settings or load_settings()
    engine = open_engine(settings.database_url.get_secret_value())
    try:
        with postgres_errors(engine), engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except StackError:
        if "BOTHWAYS_DATABASE_URL" in os.environ:
            raise
        # The address came from a stack that had no time to take it back.
        problem = f"the stack on {state_folder()} ended without a word: start `bothways up` again, nothing is lost"
        raise StackError(problem) from None
    if tables:
        try:
            check_tables(engine)
        except StackError:
            engine.dispose()  # who waits for the tables looks again and again
            raise
    return Connected(settings=settings, engine=engine)


def _place(client: Redis) -> str:
    address = client.connection_pool.connection_kwargs
    return f"{address.get('host', address.get('path'))}:{address.get('port', '')}".rstrip(":")
