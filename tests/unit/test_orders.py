"""Orders: the one bridge between letters and choices, and how orders are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.orders import (
    Order,
    both_orders,
    choice_behind,
    known_orders,
    letters_for,
    orders_for,
    print_order,
    slot_of,
)

ORDERS = st.integers(2, 9).flatmap(lambda choices: st.permutations(range(choices))).map(tuple)


@pytest.mark.parametrize(
    ("letter", "order", "choice"),
    [
        pytest.param("A", (0, 1), 0, id="canonical, first slot"),
        pytest.param("B", (0, 1), 1, id="canonical, second slot"),
        pytest.param("A", (1, 0), 1, id="swapped, first slot"),
        pytest.param("B", (1, 0), 0, id="swapped, second slot"),
        pytest.param("C", (2, 3, 0, 1), 0, id="four choices"),
    ],
)
def test_the_choice_behind_a_letter_depends_on_the_order_shown(letter: str, order: Order, choice: int) -> None:
    assert choice_behind(letter, order) == choice


def test_a_letter_that_was_not_shown_has_no_choice_behind_it() -> None:
    with pytest.raises(IndexError):
        choice_behind("C", (1, 0))


@given(ORDERS)
def test_every_choice_stands_behind_the_letter_of_its_slot(order: Order) -> None:
    letters = letters_for(len(order))

    found = [choice_behind(letters[slot_of(choice, order)], order) for choice in range(len(order))]

    assert found == list(range(len(order)))


def test_both_orders_are_the_canonical_one_and_its_swap() -> None:
    assert both_orders(2) == ((0, 1), (1, 0))


@pytest.mark.parametrize("choices", [0, 1, 3, 4])
def test_both_orders_exist_for_two_choices_only(choices: int) -> None:
    with pytest.raises(ValueError, match=f"for two choices, not {choices}"):
        both_orders(choices)


@pytest.mark.parametrize(
    ("choices", "letters"), [(2, "AB"), (4, "ABCD"), (26, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")], ids=["two", "four", "all"]
)
def test_letters_begin_with_a(choices: int, letters: str) -> None:
    assert "".join(letters_for(choices)) == letters


@pytest.mark.parametrize("choices", [-1, 0, 1, 27])
def test_a_question_with_too_few_or_too_many_choices_has_no_letters(choices: int) -> None:
    with pytest.raises(ValueError, match=f"2 to 26 choices, not {choices}"):
        letters_for(choices)


@pytest.mark.parametrize(
    ("order", "printed"), [((0, 1), "12"), ((1, 0), "21"), ((1, 2, 3, 0), "2341")], ids=["12", "21", "2341"]
)
def test_orders_are_printed_from_one(order: Order, printed: str) -> None:
    assert print_order(order) == printed


@pytest.mark.parametrize(
    ("wanted", "choices", "printed"),
    [
        ("both", 2, "12 21"),
        ("all", 3, "123 132 213 231 312 321"),
        ("cyclic", 4, "1234 2341 3412 4123"),
        ("paper", 3, "123 213 132 231 312 321"),
        ("paper", 4, "1234 2341 3412 4123 4321 4231"),
        ("paper", 5, "12345 23451 34512 45123 51234 54321"),
        ("paper", 6, "123456 234561 345612 456123 561234 612345"),
        (("213", "321"), 3, "213 321"),
    ],
)
def test_the_orders_of_an_item_follow_its_number_of_choices(wanted: str, choices: int, printed: str) -> None:
    assert " ".join(map(print_order, orders_for(wanted, choices))) == printed


@pytest.mark.parametrize(
    ("wanted", "choices", "said"),
    [
        ("both", 3, "for two choices, not 3"),
        ("all", 6, "for at most 5 choices, not 6"),
        ("paper", 7, "for 2 to 6 choices, not 7"),
        (("12", "21"), 3, "are of 2 choices, and the item has 3"),
    ],
)
def test_orders_that_do_not_fit_an_item_are_refused(wanted: str, choices: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        orders_for(wanted, choices)


@pytest.mark.parametrize(
    "value", ["some", [], ["12", "12"], ["12", "123"], ["122"], ["10"], [12], ["1"], ["²1"], None, {"a": 1}]
)
def test_what_names_no_orders_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"must be|is no order"):
        known_orders(value)


@given(choices=st.integers(2, 6))
def test_cyclic_orders_show_every_choice_in_every_slot_once(choices: int) -> None:
    orders = orders_for("cyclic", choices)

    assert all(sorted(order[slot] for order in orders) == list(range(choices)) for slot in range(choices))
