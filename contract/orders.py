"""Orders: which choice is shown in which slot. A letter is not a choice; `choice_behind` is the only bridge."""

from collections.abc import Sequence
from itertools import permutations
from string import ascii_uppercase

Order = tuple[int, ...]
"""Choice indexes (from 0) as shown, first slot first. Printed from 1: (1, 0) is "21"."""


NAMED_ORDERS = ("both", "all", "cyclic", "paper")
MOST_PERMUTED = 5
"""So many choices have 120 orders; more are not asked in all of them."""

# Of "Effects of Answer Format Variation on Gender Bias in Large Language Models" (arXiv 2608.17516), section 3.
_PAPER = {
    2: ("12", "21"),
    3: ("123", "213", "132", "231", "312", "321"),
    4: ("1234", "2341", "3412", "4123", "4321", "4231"),
    5: ("12345", "23451", "34512", "45123", "51234", "54321"),
    6: ("123456", "234561", "345612", "456123", "561234", "612345"),
}


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


def read_order(printed: str) -> Order:
    """The order that is printed so; ValueError where it is none."""
    order = tuple(int(digit) - 1 for digit in printed) if printed.isdecimal() and printed.isascii() else ()
    if sorted(order) != list(range(len(order))) or len(order) < 2:
        raise ValueError(f"{printed!r} is no order: it names each choice once by its number, as 213")
    return order


def known_orders(value: object) -> object:
    """`value` if it names orders, or lists them; ValueError says what does."""
    if isinstance(value, str) and value in NAMED_ORDERS:
        return value
    if not isinstance(value, list | tuple) or not value or not all(isinstance(printed, str) for printed in value):
        raise ValueError(f"must be {', '.join(NAMED_ORDERS)}, or a list of orders in quotes, as ['123', '321']")
    orders = [read_order(printed) for printed in value]
    if len({len(order) for order in orders}) > 1 or len(set(orders)) < len(orders):
        raise ValueError("must be different orders of equally many choices")
    return tuple(value)


def orders_for(wanted: str | Sequence[str], choices: int) -> tuple[Order, ...]:
    """The orders of an item with so many choices, canonical order first; ValueError where `wanted` does not fit it."""
    if wanted == "both":
        return both_orders(choices)
    if wanted == "all":
        if choices > MOST_PERMUTED:
            raise ValueError(
                f'orders "all" is for at most {MOST_PERMUTED} choices, not {choices}; take cyclic, or a list'
            )
        return tuple(permutations(range(choices)))
    if wanted == "cyclic":
        return tuple(tuple((start + slot) % choices for slot in range(choices)) for start in range(choices))
    if wanted == "paper":
        if choices not in _PAPER:
            raise ValueError(f'orders "paper" is for 2 to 6 choices, not {choices}')
        return tuple(read_order(printed) for printed in _PAPER[choices])
    orders = tuple(read_order(printed) for printed in wanted)
    if len(orders[0]) != choices:
        raise ValueError(f"the orders are of {len(orders[0])} choices, and the item has {choices}")
    return orders
