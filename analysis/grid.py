"""A table as texts, for all that print or draw one. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What stands over the columns, the lines, and whether a line opens a new thing, apart from the one before.

    The first `names` columns are names, the others figures. `halves` are what stands over several columns: a text, and
    its first and last column.
    """

    names: int
    headings: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    opens: tuple[bool, ...]
    halves: tuple[tuple[str, int, int], ...] = ()


def spread(over: tuple[str, ...], *, start: int, size: int) -> tuple[tuple[str, int, int], ...]:
    """Each text of `over` above the next `size` columns, from column `start` on."""
    return tuple((text, start + at * size, start + (at + 1) * size - 1) for at, text in enumerate(over))
