"""Commands that need more than every installation has."""

from collections.abc import Iterator
from contextlib import contextmanager

from contract.errors import UsageError


@contextmanager
def needing(extras: str) -> Iterator[None]:
    """Import in this block what only comes with these extras; UsageError says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed here: pip install 'bothways[{extras}]'") from None
