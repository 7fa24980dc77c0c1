"""Generated texts: what is sent for them, and what of a completion may be kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import InvalidReason
from contract.completion import Completion
from contract.formats import Variant, asking, generated
from contract.items import Item
from contract.prompts import load_prompt
from contract.study import Check, ClosedFormat, Step
from tests.builders import make_item

ALL: tuple[Check, ...] = ("bare", "not_right", "not_earlier", "not_in_context")
LOOSE = Step(step="one", prompt="wrong-answer-plausible")
STRICT = Step(step="two", prompt="second-wrong-answer-out-of-context", after="one", checks=ALL)

CONTEXT = "La crisi petrolifera iniziò nell' ottobre 1973, a Vienna."
SHOWN = f"Contesto: {CONTEXT}\nDomanda: Quando iniziò?\nRisposta corretta: ottobre 1973\n"
APPENDIX_A = {
    "wrong-answer-plausible": (
        "\nFornisci una risposta plausibile ma sbagliata alla domanda sopra, basandoti sul contesto. Restituisci solo "
        "la risposta, senza spiegazioni o altro."
    ),
    "wrong-answer-out-of-context": (
        "\nFornisci una risposta completamente fuori contesto e sbagliata alla domanda sopra. Assicurati che non sia "
        "basata sul contesto fornito. Restituisci solo la risposta, senza spiegazioni o altro."
    ),
    "second-wrong-answer-out-of-context": (
        "Risposta errata: Un gatto\n\nFornisci una risposta completamente fuori contesto e sbagliata alla domanda "
        "sopra. Assicurati che non sia basata sul contesto fornito e che sia diversa dalla risposta errata gia’ "
        "presente. Restituisci solo la risposta, senza spiegazioni o altro."
    ),
}


def question(**changes: Any) -> Item:  # noqa: ANN401
    """A question with two right answers."""
    values: dict[str, Any] = {
        "question": "Quando iniziò?",
        "choices": ("ottobre 1973", "1973"),
        "context": CONTEXT,
        "language": "it",
    }
    return make_item(**(values | changes))


def read(text: str, step: Step = STRICT, finish_reason: str = "stop") -> tuple[str | None, InvalidReason | None]:
    """The text read, or the reason."""
    answer = generated.read(Completion(text=text, finish_reason=finish_reason), question(), step, "Un gatto")
    assert answer.choice is None
    assert answer.valid is (answer.text is not None)
    return answer.text, answer.reason


@pytest.mark.parametrize("name", APPENDIX_A)
def test_the_prompts_that_make_wrong_answers_are_the_paper_s_to_the_letter(name: str) -> None:
    assert load_prompt(name).bodies.keys() == {"it"}
    assert generated.render(question(), load_prompt(name), "Un gatto") == SHOWN + APPENDIX_A[name]


def test_the_second_prompt_cannot_be_made_without_the_first_text() -> None:
    with pytest.raises(ValueError, match="no value for earlier"):
        generated.render(question(), load_prompt("second-wrong-answer-out-of-context"), None)


def test_a_question_whose_right_answer_is_blank_is_asked_with_a_blank() -> None:
    sent = generated.render(question(choices=("",)), load_prompt("wrong-answer-plausible"), None)

    assert "Risposta corretta: \n\nFornisci" in sent


@pytest.mark.parametrize(
    "text",
    [
        "Un cane verde",
        "  Un cane verde\n",
        "È «così», disse",
        "42",
        "nel 1974",
        "Impossibile",
        "Mozart: Requiem",
        "日本",
    ],
)
def test_a_text_is_kept_as_it_was_said_but_for_the_blanks_around_it(text: str) -> None:
    assert read(text) == (text.strip(), None)


def test_reasoning_is_no_part_of_the_text() -> None:
    assert read("<think>It was 1973, so not that.</think>\nUn cane") == ("Un cane", None)
    assert read("<think>It was 1973, so") == (None, InvalidReason.TRUNCATED)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", InvalidReason.EMPTY),
        (" \n ", InvalidReason.EMPTY),
        ("...", InvalidReason.EMPTY),
        ("Ottobre  1973.", InvalidReason.EQUALS_RIGHT),
        ('"1973"', InvalidReason.EQUALS_RIGHT),
        ("**un gatto!**", InvalidReason.EQUALS_EARLIER),
        ("Vienna", InvalidReason.IN_CONTEXT),
        ("la crisi petrolifera", InvalidReason.IN_CONTEXT),
        ("Risposta: un cane", InvalidReason.NOT_BARE),
        ("**La risposta sbagliata è:** un cane", InvalidReason.NOT_BARE),
        ("The answer that fits nothing is: a dog", InvalidReason.NOT_BARE),
        ("Un cane\n\nQuesta risposta è sbagliata.", InvalidReason.NOT_BARE),
        ("Mi dispiace, ma non ho risposte", InvalidReason.REFUSAL),
        ("I cannot help with that", InvalidReason.REFUSAL),
    ],
)
def test_a_text_that_a_check_finds_fault_with_is_invalid_for_that_reason(text: str, reason: InvalidReason) -> None:
    assert read(text) == (None, reason)


def test_a_word_of_the_paragraph_inside_another_word_is_not_in_the_context() -> None:
    assert read("Vien") == ("Vien", None)


def test_a_step_looks_at_nothing_that_it_does_not_name_but_whether_there_is_a_whole_text() -> None:
    assert read("Risposta: ottobre 1973", LOOSE) == ("Risposta: ottobre 1973", None)
    assert read(" ", LOOSE) == (None, InvalidReason.EMPTY)
    assert read("Un cane che", LOOSE, finish_reason="length") == (None, InvalidReason.TRUNCATED)


@given(text=st.text(), earlier=st.none() | st.text())
def test_whatever_a_model_says_is_a_text_or_invalid(text: str, earlier: str | None) -> None:
    answer = generated.read(Completion(text=text), question(), STRICT, earlier)

    assert answer.valid is (answer.reason is None)


def test_each_form_is_asked_and_read_by_its_own_rules() -> None:
    closed, item = ClosedFormat(format="closed"), make_item()
    assert [variant.label for variant in asking.variants(closed, item)] == ["12", "21"]
    assert [variant.label for variant in asking.variants(STRICT, item)] == ["two"]
    assert asking.reading_of(closed)[0] == "strict"
    assert asking.reading_of(STRICT) == ("text", 1)
    assert asking.read(closed, Completion(text="A"), item, Variant(order=(1, 0))).choice == 1
    assert asking.read(LOOSE, Completion(text="A"), item, Variant(step="one")).text == "A"


@pytest.mark.parametrize("variant", [Variant(order=(1, 0)), Variant(step="two")])
def test_a_variant_comes_back_from_the_spec_that_holds_it(variant: Variant) -> None:
    assert Variant.from_spec(variant.spec) == variant
