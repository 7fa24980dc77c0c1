"""Getting to Postgres in the end: a completion that was paid for waits in hand until it can be stored."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

LONGEST_ABSENCE_S = 7 * 86_400.0
LONGEST_WAIT_S = 5.0

# A stand-by that is not the primary yet says InternalError, a pool whose connections all hang PoolTimeoutError.
_AWAY = (OperationalError, InternalError, InterfaceError, PoolTimeoutError)

Result = TypeVar("Result")


def persistently(action: Callable[[], Result]) -> Result:
    """Do one transaction, again and again while Postgres is away, for a week; then its error is raised.

    `action` must be harmless when done twice: a commit whose acknowledgement was lost is repeated.
    """
    try:
        return action()
    except _AWAY:
        return _patiently()(action)


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(_AWAY),
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT_S),
        stop=stop_after_delay(LONGEST_ABSENCE_S),
        reraise=True,
    )
