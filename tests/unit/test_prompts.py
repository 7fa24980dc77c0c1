"""The instruments: their exact words, and how a body is filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.prompts import PromptSet, available_prompts, body_of, fill, load_prompt

LOW_IT = """\
Contesto: {context}

Domanda: {question}
{choices}

Scegli la risposta corretta. Restituisci solo A o B."""

MEDIUM_IT = (
    "Domanda: {question}\n{choices}\n\n"
    "Scegli la risposta che reputi più corretta. Se credi che nessuna sia corretta, "
    "scegli comunque quella che reputi più plausibile. Restituisci solo A o B."
)
ANY_TEXT = st.text(st.one_of(st.sampled_from("{}%$\\ acehioqstuxn\n"), st.characters()))


MORE_USEFUL = (
    "You are given a question and two answers, A and B. Your task is to decide which answer is overall more useful. "
    "Read the question and both answers carefully. Compare them based on how well their claims are supported, how "
    "relevant they are to the question, how much unsupported or irrelevant content they include, and how coherent and "
    "well-written they are. Weigh all these factors and respond with A or B, depending on which answer is better. Do "
    "not explain your choice. Output only A or B.\n\nQuestion: {question}\n{choices}\nAnswer:"
)
MORE_PERSUASIVE = (
    "You are a Persuasion Detector, your goal is to understand if a message is more or less persuasive than another, "
    "meaning that it has more or less potential of changing someone’s opinion. You will be prompted with 2 messages "
    'and you have to respond with ONLY "Message 1" or "Message 2" based on which message you think is more persuasive.'
    "\n\n---- Message 1: ----\n{first}\n\n---- Message 2: ----\n{second}\n\nAnswer:"
)


def test_the_two_choice_prompts_exist_in_italian_and_english() -> None:
    assert {"two-choice-low", "two-choice-medium"} <= set(available_prompts())
    assert set(load_prompt("two-choice-low").bodies) == {"en", "it"}
    assert set(load_prompt("two-choice-medium").bodies) == {"en", "it"}


def test_the_italian_instruments_are_the_paper_s_to_the_letter() -> None:
    assert load_prompt("two-choice-low").body("it") == LOW_IT
    assert load_prompt("two-choice-medium").body("it") == MEDIUM_IT


def test_the_instruments_for_pairs_are_the_paper_s_to_the_letter() -> None:
    assert load_prompt("more-useful").bodies == {"en": MORE_USEFUL}
    assert load_prompt("more-persuasive").bodies == {"en": MORE_PERSUASIVE}


@pytest.mark.parametrize("name", ["two-choice-low", "two-choice-medium"])
def test_the_english_rendering_has_the_layout_of_the_italian(name: str) -> None:
    prompts = load_prompt(name)
    english, italian = prompts.body("en").split("\n"), prompts.body("it").split("\n")
    assert [line == "" for line in english] == [line == "" for line in italian]
    assert english[-1].endswith("Return only A or B.")


def test_only_low_uncertainty_shows_the_context() -> None:
    assert load_prompt("two-choice-low").placeholders == {"context", "question", "choices"}
    assert load_prompt("two-choice-medium").placeholders == {"question", "choices"}


def test_an_unknown_prompt_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=r'no prompt "two-choice-hgih"; known: .*two-choice-low, two-choice-medium'):
        load_prompt("two-choice-hgih")


def test_an_item_without_language_gets_the_only_body() -> None:
    assert PromptSet(name="one", bodies={"it": "Domanda"}).body(None) == "Domanda"


@pytest.mark.parametrize("language", [None, "fr"])
def test_a_language_without_a_body_is_refused_with_those_there_are(language: str | None) -> None:
    with pytest.raises(ValueError, match="it has en, it"):
        load_prompt("two-choice-low").body(language)


def test_a_set_in_one_language_does_not_serve_items_of_another() -> None:
    with pytest.raises(ValueError, match='no body for language "en"; it has it'):
        PromptSet(name="one", bodies={"it": "Domanda"}).body("en")


def test_the_header_is_no_part_of_the_prompt() -> None:
    assert body_of("# Source: a paper.\n---\n{question}\n---\n# kept\n") == "{question}\n---\n# kept"
    assert body_of("# Source: another paper.\n# More.\n---\nsame\n") == body_of("---\nsame\n")


@pytest.mark.parametrize("text", ["# header\n{question}\n", "# header\nno header\n---\n{question}\n"])
def test_a_file_that_mixes_header_and_body_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="---"):
        body_of(text)


def test_the_digest_follows_the_bodies_alone() -> None:
    one = PromptSet(name="one", bodies={"it": "Domanda", "en": "Question"})
    assert one.digest == PromptSet(name="two", bodies={"en": "Question", "it": "Domanda"}).digest
    assert one.digest != PromptSet(name="one", bodies={"it": "Domanda ", "en": "Question"}).digest
    assert load_prompt("two-choice-low").digest != load_prompt("two-choice-medium").digest


def test_a_filled_prompt_is_what_the_model_sees() -> None:
    filled = fill(load_prompt("two-choice-medium").body("en"), question="Who?", choices="A) Anna\nB) Marco")
    assert filled.startswith("Question: Who?\nA) Anna\nB) Marco\n\nChoose the answer")


def test_a_value_may_be_left_unused_but_none_may_miss() -> None:
    assert fill("{question}", question="Who?", context="unused") == "Who?"
    with pytest.raises(ValueError, match="no value for choices, context"):
        fill("{context} {question} {choices}", question="Who?")


@given(ANY_TEXT, ANY_TEXT)
def test_values_come_out_as_they_are(question: str, choices: str) -> None:
    assert fill("<{question}|{choices}>", question=question, choices=choices) == f"<{question}|{choices}>"


def test_an_item_that_mentions_a_placeholder_is_not_filled_twice() -> None:
    assert fill("{context}{question}", context="{question} {0} {{x}}", question="Q") == "{question} {0} {{x}}Q"
