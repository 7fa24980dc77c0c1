"""Generated texts: what is sent for them, and what of a completion may be kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import InvalidReason
from contract.completion import Completion
from contract.formats import Variant, asking, generated
from contract.forms import Check, ClosedFormat, Step
from contract.items import Item
from contract.prompts import load_prompt
from contract.reading.same import same
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
    assert generated.render(question(), load_prompt(name), "Un gatto", 0) == SHOWN + APPENDIX_A[name]


def test_the_second_prompt_cannot_be_made_without_the_first_text() -> None:
    with pytest.raises(ValueError, match="no value for earlier"):
        generated.render(question(), load_prompt("second-wrong-answer-out-of-context"), None, 0)


def test_a_question_whose_right_answer_is_blank_is_asked_with_a_blank() -> None:
    sent = generated.render(question(choices=("",)), load_prompt("wrong-answer-plausible"), None, 0)

    assert "Risposta corretta: \n\nFornisci" in sent


@pytest.mark.parametrize(
    "text",
    [
        *("Un cane verde", "  Un cane verde\n", "È «così», disse", "42", "nel 1974", "Impossibile", "Mozart: Requiem"),
        *("日本", "10² e l’Aquila", "−40%", "🍕", "Impossible Foods", "Can't Stop dei Red Hot", "Risposta di coppia"),
        *("Sky+", "3.5 milioni", "L'opzione C", "Cannot Buy My Soul"),
    ],
)
def test_a_text_is_kept_as_it_was_said_but_for_the_blanks_around_it(text: str) -> None:
    assert read(text) == (text.strip(), None)


@pytest.mark.parametrize(
    "text", ['"Parigi"', "«Parigi»", "**Parigi**", "`Parigi`", "* «Parigi» *", "Parigi<|im_end|>", "Parigi</s>\n"]
)
def test_what_is_wrapped_around_a_whole_text_is_no_part_of_it(text: str) -> None:
    assert read(text.replace("* «", "*«").replace("» *", "»*")) == ("Parigi", None)


def test_reasoning_is_no_part_of_the_text_and_changes_nothing_in_it() -> None:
    assert read("<think>It was 1973, so not that.</think>\n10² e “ciao”") == ("10² e “ciao”", None)
    assert read("<think>It was 1973, so") == (None, InvalidReason.TRUNCATED)


@pytest.mark.parametrize("text", ["", " \n ", "...", "**", '""'])
def test_a_text_without_a_word_or_a_sign_is_empty(text: str) -> None:
    assert read(text) == (None, InvalidReason.EMPTY)


@pytest.mark.parametrize(
    "text", ["Ottobre  1973.", '"1973"', "Nel 1973", "L'ottobre 1973!", "**1973**", "1.973", "nell' ottobre 1973"]
)
def test_a_wrong_answer_that_says_the_same_as_a_right_one_is_invalid(text: str) -> None:
    assert read(text) == (None, InvalidReason.EQUALS_RIGHT)


@pytest.mark.parametrize("text", ["**un gatto!**", "Gatto", "il gatto", "UN GATTO"])
def test_a_text_that_says_the_same_as_the_earlier_one_is_invalid(text: str) -> None:
    assert read(text) == (None, InvalidReason.EQUALS_EARLIER)


@pytest.mark.parametrize("text", ["Vienna", "la crisi petrolifera", "a Vienna.", "dell'ottobre"])
def test_a_text_that_the_paragraph_contains_is_not_out_of_context(text: str) -> None:
    assert read(text) == (None, InvalidReason.IN_CONTEXT)


@pytest.mark.parametrize(
    "text",
    [
        *("Risposta: un cane", "**La risposta sbagliata è:** un cane", "The answer that fits nothing is: a dog"),
        *("La risposta errata è Parigi.", "Ecco una risposta plausibile ma sbagliata: Parigi", "Sbagliata: Parigi"),
        *("R: Parigi", "Soluzione: Parigi", "assistant: Parigi", "Opzione B: Parigi", "- Parigi", "1. Parigi"),
        *("Parigi (risposta errata)", "Parigi. Questa risposta è sbagliata perché il testo dice altro."),
        *("Un cane\n\nIl testo.", "Parigi\rLione", "Parigi\u2028Lione", "Parigi\x1b[31m", "<answer>Parigi</answer>"),
        r"\boxed{Parigi}",
    ],
)
def test_a_text_that_is_more_than_an_answer_is_invalid(text: str) -> None:
    assert read(text) == (None, InvalidReason.NOT_BARE)


@pytest.mark.parametrize(
    "text",
    [
        *("Mi dispiace, ma non ho risposte", "I cannot help with that", "Purtroppo non posso rispondere", "Non lo so"),
        *("Non è specificato nel testo", "Il testo non lo dice", "Nessuna risposta possibile", "Impossibile dirlo"),
        *("The text does not say", "Not mentioned"),
    ],
)
def test_a_text_that_declines_is_a_refusal_and_no_answer(text: str) -> None:
    assert read(text) == (None, InvalidReason.REFUSAL)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("5", "-5"), ("5%", "5"), ("€12", "$12"), ("C#", "C++"), ("A+", "A"), ("102", "10²"), ("<5", ">5")),
        *(("a=b", "a≠b"), ("कि", "का"), ("gatto", "gatti"), ("il", "la")),
    ],
)
def test_signs_and_letters_that_carry_meaning_tell_texts_apart(one: str, other: str) -> None:
    assert same(one) != same(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("citta'", "Città"),
            ("perché", "perche'"),
            ("1.000", "1000"),
            ("l’Aquila", "L' Aquila"),
            ("St. Louis", "st Louis"),
        ),
        *(("The House", "house"), ("dell' OPEC", "L'OPEC"), ("−5 °C", "-5 °C")),
    ],
)
def test_spelling_and_small_words_do_not(one: str, other: str) -> None:
    assert same(one) == same(other)


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


def test_a_statement_is_made_for_each_choice_that_says_something() -> None:
    step = Step(step="say", prompt="statement-of-answer", each="choice", checks=("bare", "not_question"))
    asked = question(choices=("He", "Nobody can say", "She"), groups=("M", "UNKNOWN", "F"), language="en")
    surveyed = question(choices=("Often", "Never", "Refused"), traits={"refused": 2})

    assert asking.parts(step, asked) == (1, 3)
    assert asking.parts(step, surveyed) == (1, 2)
    assert asking.parts(LOOSE, asked) == (0,)
    sent = asking.render(step, asked, Variant(step="say"), load_prompt("statement-of-answer"), part=3)
    assert sent.endswith(f"Context: {CONTEXT}\nQuestion: Quando iniziò?\nAnswer: She\nStatement:")
    assert read("Does she?", step) == (None, InvalidReason.QUESTION)
    assert read("Statement: she does.", step) == (None, InvalidReason.NOT_BARE)
    assert read("She does.", step) == ("She does.", None)


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
