"""Orders: which choice is shown in which slot. A letter is not a choice; `choice_behind` is the only bridge."""

from collections.abc import Sequence
from string import ascii_uppercase

Order = tuple[int, ...]
"""Choice indexes (from 0) as shown, first slot first. Printed from 1: (1, 0) is "21"."""


def letters_for(choices: int) -> tuple[str, ...]:
    """The labels printed before `choices` answers: A, B, C ... at most 26."""
    if not 2 <= choices <= len(ascii_uppercase):
        raise ValueError(f"a closed question has 2 to {len(ascii_uppercase)} choices, not {choices}")
    return tuple(ascii_uppercase[:choices])


def both_orders(choices: int) -> tuple[Order, ...]:
    """The two orders of a two-choice question: preferred first, then swapped."""
    if choices != 2:
        raise ValueError(f'orders "both" is for two choices, not {choices}')
    return ((0, 1), (1, 0))


def choice_behind(letter: str, order: Order) -> int:
    """The choice index that stood behind `letter` (A is the first slot) when shown in `order`."""
    return order[ascii_uppercase.index(letter)]


def slot_of(choice: int, order: Order) -> int:
    """The slot (from 0) in which `choice` was shown."""
    return order.index(choice)


def print_order(order: Sequence[int]) -> str:
    """The order as people write it: (1, 0) is "21"."""
    return "".join(str(choice + 1) for choice in order)
