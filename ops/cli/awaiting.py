"""How a service begins: it waits for Postgres, the broker and the tables as long as it was told to, and says so."""

import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_fixed

from contract.errors import StackError, UnusableStackError
from ops.cli.connect import Connected, connect
from ops.cli.terminal import err, visible

AwaitS = Annotated[
    float,
    typer.Option(
        "--await",
        metavar="SECONDS",
        min=0,
        help="Wait so long for Postgres, the broker and the tables; 0 ends at once.",
    ),
]

TRY_EVERY_S = 2.0
TELL_EVERY_S = 30.0

T = TypeVar("T")


def connect_service(await_s: float) -> Connected:
    """Postgres with the tables of this version, and a broker that answers.

    StackError when that cannot be had within `await_s` seconds; at once where waiting would be in vain.
    """
    return await_stack(_whole_stack, await_s)


def await_stack(look: Callable[[], T], await_s: float) -> T:
    """What `look` returns, as soon as it raises no StackError that may pass."""
    trying = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, StackError) and not isinstance(error, UnusableStackError)
        ),
        stop=stop_after_delay(await_s),
        wait=wait_fixed(TRY_EVERY_S),
        before_sleep=_Teller(),
        reraise=True,
    )
    return trying(look)


def _whole_stack() -> Connected:
    connected = connect()
    try:
        connected.broker().close()
    except StackError:
        connected.engine.dispose()
        raise
    return connected


class _Teller:
    """Says what is waited for when that changes, and now and then again."""

    def __init__(self) -> None:
        self._told: tuple[str, float] | None = None

    def __call__(self, state: RetryCallState) -> None:
        assert state.outcome is not None  # noqa: S101 - tenacity calls this after a failure only
        reason, now = str(state.outcome.exception()), time.monotonic()
        if self._told is None or self._told[0] != reason or now - self._told[1] >= TELL_EVERY_S:
            err.print(visible(f"waiting: {reason}"))
            self._told = (reason, now)
