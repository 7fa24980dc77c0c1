"""Closed answers: what is shown, in which order, and which choice stands behind a letter."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contract.answers import Answer, InvalidReason
from contract.completion import Completion
from contract.formats import Variant, asking, closed
from contract.orders import letters_for
from contract.prompts import ANY_LANGUAGE, PromptSet, load_prompt
from contract.reading import READINGS
from tests.builders import make_item

STRAIGHT, SWAPPED = Variant(order=(0, 1)), Variant(order=(1, 0))
PLAIN = PromptSet(name="plain", bodies={ANY_LANGUAGE: "{context}|{question}\n{choices}\nA or B?"})

ANY_TEXT = st.one_of(
    st.text(),
    st.text(st.sampled_from("{}\\%$ \nAB)ceghinoqstux")),
    st.sampled_from(["{question}", "{choices}", "{context}", "{0}", "{{question}}", r"\1", r"\g<1>", "A) x\nB) y"]),
)


@given(question=ANY_TEXT, first=ANY_TEXT, second=ANY_TEXT, context=st.none() | ANY_TEXT)
def test_both_orders_differ_in_nothing_but_the_places_of_the_choices(
    question: str, first: str, second: str, context: str | None
) -> None:
    item = make_item(question=question, choices=(first, second), context=context)

    shown = {variant: closed.render(item, variant, PLAIN) for variant in closed.variants(item)}

    head, tail = f"{context or ''}|{question}\n", "\nA or B?"
    assert shown == {
        STRAIGHT: f"{head}A) {first}\nB) {second}{tail}",
        SWAPPED: f"{head}A) {second}\nB) {first}{tail}",
    }


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("two-choice-low", "it"),
        ("two-choice-medium", "it"),
        ("two-choice-low", "en"),
        ("two-choice-medium", "en"),
        ("more-useful", "en"),
        ("more-persuasive", "en"),
    ],
)
@given(question=ANY_TEXT, first=ANY_TEXT, second=ANY_TEXT, context=ANY_TEXT)
def test_the_two_passes_of_every_instrument_differ_in_nothing_but_the_order(
    name: str, language: str, question: str, first: str, second: str, context: str
) -> None:
    assume(not {"\ue000", "\ue001"} & {*question, *first, *second, *context})
    prompt = load_prompt(name)
    item = make_item(question=question, choices=(first, second), context=context, language=language)
    marked = replace(item, choices=("\ue000", "\ue001"))

    shown = [closed.render(item, variant, prompt) for variant in closed.variants(item)]
    places = [closed.render(marked, variant, prompt) for variant in closed.variants(item)]

    assert places[0].translate({0xE000: "\ue001", 0xE001: "\ue000"}) == places[1]
    assert shown == [each.replace("\ue000", first).replace("\ue001", second) for each in places]
    assert all(each.count("\ue000") == each.count("\ue001") == 1 for each in places)


@given(question=ANY_TEXT, first=ANY_TEXT, second=ANY_TEXT)
def test_swapping_the_choices_of_an_item_swaps_its_orders(question: str, first: str, second: str) -> None:
    item = make_item(question=question, choices=(first, second))
    mirrored = replace(item, choices=(second, first))

    assert closed.render(item, STRAIGHT, PLAIN) == closed.render(mirrored, SWAPPED, PLAIN)


def test_the_canonical_order_comes_first() -> None:
    assert closed.variants(make_item()) == (STRAIGHT, SWAPPED)


def test_an_item_with_three_choices_has_no_two_orders() -> None:
    with pytest.raises(ValueError, match="two choices, not 3"):
        closed.variants(make_item(choices=("a", "b", "c")))


@pytest.mark.parametrize(
    ("language", "last_line"),
    [
        ("en", "Choose the correct answer. Return only A or B."),
        ("it", "Scegli la risposta corretta. Restituisci solo A o B."),
    ],
)
def test_an_item_is_asked_in_its_own_language(language: str, last_line: str) -> None:
    shown = closed.render(make_item(language=language), STRAIGHT, load_prompt("two-choice-low"))

    assert shown.splitlines()[-3:] == ["B) the wrong one", "", last_line]


@pytest.mark.parametrize(
    ("letter", "order", "choice"),
    [
        ("A", (0, 1), 0),
        ("B", (0, 1), 1),
        ("A", (1, 0), 1),
        ("B", (1, 0), 0),
    ],
)
def test_a_letter_stands_for_the_choice_that_was_shown_behind_it(
    letter: str, order: tuple[int, int], choice: int
) -> None:
    variant = Variant(order=order)

    answer = closed.read(Completion(text=letter, finish_reason="stop"), make_item(), variant)

    assert (answer.choice, answer.valid, answer.reason) == (choice, True, None)


@pytest.mark.parametrize("variant", [STRAIGHT, SWAPPED], ids=lambda variant: variant.label)
@pytest.mark.parametrize("choice", [0, 1])
def test_a_choice_that_is_repeated_in_words_is_that_choice_in_either_order(variant: Variant, choice: int) -> None:
    item = make_item()

    assert closed.read(Completion(text=item.choices[choice]), item, variant).choice == choice


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        pytest.param(Completion(text=""), InvalidReason.EMPTY, id="empty"),
        pytest.param(Completion(text="", finish_reason="length"), InvalidReason.TRUNCATED, id="empty at the budget"),
        pytest.param(Completion(text="C"), InvalidReason.OTHER_LETTER, id="a letter that was not offered"),
        pytest.param(Completion(text="A", truncated_from=5_000_000), InvalidReason.TRUNCATED, id="cut for storing"),
    ],
)
def test_what_is_no_answer_has_its_reason(completion: Completion, reason: InvalidReason) -> None:
    answer = closed.read(completion, make_item(), SWAPPED)

    assert (answer.choice, answer.reason) == (None, reason)


@given(text=ANY_TEXT | st.sampled_from(["A", "b)", "The answer is B.", "<think>A", '{"answer": "A"}']))
def test_reading_twice_says_the_same_and_never_invents_a_choice(text: str) -> None:
    completion, item = Completion(text=text), make_item()

    answers: list[Answer] = [closed.read(completion, item, SWAPPED) for _ in range(2)]

    assert answers[0] == answers[1]
    assert answers[0].choice in {0, 1, None}
    assert (answers[0].choice is None) == (answers[0].reason is not None)


@pytest.mark.parametrize(
    ("name", "choice"),
    [("strict", None), ("first-letter", 1), ("exact-letter", None)],
    ids=["strict", "first", "exact"],
)
def test_the_reading_decides_what_counts_as_an_answer(name: str, choice: int | None) -> None:
    completion = Completion(text="A human should decide.")

    assert closed.read(completion, make_item(), SWAPPED, READINGS[name]).choice == choice


def test_a_choice_worded_as_a_denial_is_a_choice_in_either_order() -> None:
    item = make_item(choices=("the man", "cannot be determined"))
    for variant, letter in ((STRAIGHT, "B"), (SWAPPED, "A")):
        completion = Completion(text=f"{letter}) cannot be determined. The text does not say.")
        assert closed.read(completion, item, variant).choice == 1


@given(letter=st.sampled_from(letters_for(2)))
def test_the_same_letter_in_both_orders_is_two_choices(letter: str) -> None:
    item, completion = make_item(), Completion(text=letter)

    choices = {closed.read(completion, item, variant).choice for variant in closed.variants(item)}

    assert choices == {0, 1}


def test_items_with_one_context_share_their_prefix_and_others_begin_with_their_question() -> None:
    assert asking.prefix(make_item("q1", context="same")) == asking.prefix(make_item("q2", context="same"))
    assert asking.prefix(make_item("q1")) == make_item("q1").question
