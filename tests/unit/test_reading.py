"""The reading "strict": what counts as an answer, and what never does."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import InvalidReason
from contract.reading import STRICT, STRICT_VERSION, Tier, read_letter

AB = ("A", "B")
ABC = ("A", "B", "C")
COLOURS = ("Blue", "Red")
PEOPLE = ("Anna", "Marco Rossi")

LABELS = [
    ("B", "B"),
    (" A \n", "A"),
    ("A:", "A"),
    ("«B»", "B"),
    ('"A"', "A"),
    ("- B", "B"),
    ("__B__", "B"),
    ("***A***", "A"),
    ("### B", "B"),
    ("> A", "A"),
    ("$A$", "A"),
    ("Ｂ）", "B"),
    ("a.", "A"),
    ("(b)", "B"),
    ("Opzione A", "A"),
    ("option b", "B"),
    ("Option 2.", "B"),
    ("Message 2", "B"),
    ("MESSAGGIO 1", "A"),
    ("Messaggio B", "B"),
    ("Alternativa B)", "B"),
    ("La lettera A", "A"),
    ("Answer 1", "A"),
    ("B<|im_end|>", "B"),
    ("A</s>", "A"),
]

DECLARATIONS = [
    ("The answer is B.", "B"),
    ("the correct answer is (A).", "A"),
    ("Answer:\n\nB", "B"),
    ("ANSWER: A", "A"),
    ("**Answer:** B", "B"),
    ("**Risposta**: **A**", "A"),
    ("My final answer would be option B, because of the date.", "B"),
    ("The correct answer to the question is A because the text says so.", "A"),
    ("La risposta giusta alla domanda è la B.", "B"),
    ("la risposta corretta e' B", "B"),
    ("La risposta corretta è A perché lo dice il testo.", "A"),
    ("La risposta è probabilmente B.", "B"),
    ("La più plausibile è A.", "A"),
    ("Quella corretta è B.", "B"),
    ("Il scegli della risposta è B. Il sce", "B"),
    ("A) Blue\n\nThe answer is A) Blue. This is...", "A"),
    ("Direi B.", "B"),
    ("Scelgo la A.", "A"),
    ("Scelgo l'opzione B", "B"),
    ("I would go with B.", "B"),
    ("I think it's A.", "A"),
    ("Opto per B, visto il contesto.", "B"),
    ("The sky is clear, therefore B.", "B"),
    ("Il cielo è sereno, dunque A.", "A"),
    ("Option B is correct.", "B"),
    ("L'opzione A è quella corretta.", "A"),
    ("A is the right answer.", "A"),
    ("B è la risposta migliore.", "B"),
    ("La risposta A è giusta.", "A"),
    ("Message 1 is more persuasive than Message 2.", "A"),
    ("Il messaggio 2 è più convincente.", "B"),
    ("B) Marco Rossi è la risposta corretta.", "B"),
    ("The solution is $\\boxed{B}$.", "B"),
    ("\\boxed{\\text{A}}", "A"),
    ("<answer>B</answer>", "B"),
    ("Tra A e B, scelgo B.", "B"),
    ("I choose A over B", "A"),
    ("La risposta è A e B è sbagliata.", "A"),
    ("It's B.", "B"),
    ("Sì, A.", "A"),
    ("Between the two, B seems more plausible.", "B"),
    ("Question: who was it?\nA) Anna\nB) Marco\nAnswer: B", "B"),
    ("A) Anna\nB) Marco\n\nLa risposta è B", "B"),
    ("I'm sorry for the delay. The answer is A.", "A"),
    ("Nessuna delle due è corretta, ma se devo scegliere, B.", "B"),
]

OBJECTS = [
    ('{"answer": "a"}', "A"),
    ("{'risposta': 'B'}", "B"),
    ('```json\n{"reasoning": "A is far", "answer": "B"}\n```', "B"),
    ('{"final_answer": "Option A"}', "A"),
    ('{"answer": "B) Marco"}', "B"),
]

LINES = [
    ("A) Blue", "A"),
    ("B. Because the text says so.", "B"),
    ("B: the second sentence settles it", "B"),
    ("A - lo dice il contesto", "A"),
    ("(B) Marco Rossi", "B"),
    ("Opzione B: Marco Rossi", "B"),
    ("A perché nel testo si parla di mare.", "A"),
    ("B, not A.", "B"),
    ("B, non A", "B"),
    ("B\n\nThe other one is wrong.", "B"),
    ("A\nI cannot explain it further.", "A"),
    ("The passage speaks of a boat.\n\nB", "B"),
    ("A) Blue\n\nQuestion: what is it?\nA) one\nB) two\nAnswer: B", "A"),
    ("B. Restituisci solo A o B.", "B"),
]

CORRECTIONS = [
    ("The answer is A. No, wait: the answer is B.", "B"),
    ("Answer: B. Wait, that is not right. Answer: A", "A"),
    ("Risposta: A. Anzi, la risposta corretta è B.", "B"),
    ("La risposta non è A, ma B.", "B"),
    ("It is not A but B.", "B"),
    ("A is wrong. B is correct.", "B"),
    ("La risposta sbagliata è A, quindi B.", "B"),
    ("B è sbagliata, quindi la risposta è A.", "A"),
    ("A) Blue\n\nOn reflection, the answer is B.", "B"),
    ("The answer is C. Sorry, the answer is A.", "A"),
]

NO_ANSWER = [
    ("<think>A or B? Probably A.</think>", InvalidReason.EMPTY),
    ("**", InvalidReason.EMPTY),
    ("<think>The answer is A", InvalidReason.TRUNCATED),
    ("[THINK]The answer is B.", InvalidReason.TRUNCATED),
    ("Risposta: sia A che B", InvalidReason.BOTH),
    ("A and B", InvalidReason.BOTH),
    ("A/B", InvalidReason.BOTH),
    ("A, B", InvalidReason.BOTH),
    ("Answer: A/B", InvalidReason.BOTH),
    ("Entrambe le risposte sono corrette.", InvalidReason.BOTH),
    ("The answer is both.", InvalidReason.BOTH),
    ("A) Blue\nB) Red", InvalidReason.BOTH),
    ("Risposta:\nA) Anna\nB) Marco", InvalidReason.BOTH),
    ("The answer is A.\n\nB", InvalidReason.BOTH),
    ("A o B?", InvalidReason.BOTH),
    ("A) Blue B) Red", InvalidReason.BOTH),
    ("I think that A and B are both wrong.", InvalidReason.BOTH),
    ("Restituisci solo A o B.", InvalidReason.BOTH),
    ("A) Blue. Both answers are correct.", InvalidReason.BOTH),
    ("Né A né B.", InvalidReason.NONE),
    ("Neither A nor B is correct.", InvalidReason.NONE),
    ("Nessuna delle due.", InvalidReason.NONE),
    ("The answer is none of the above.", InvalidReason.NONE),
    ("None of the options is right.", InvalidReason.NONE),
    ("Nessuna delle risposte è corretta.", InvalidReason.NONE),
    ("I'm sorry, I cannot help with that.", InvalidReason.REFUSAL),
    ("Non posso rispondere a questa domanda.", InvalidReason.REFUSAL),
    ("Mi dispiace, non ho abbastanza informazioni.", InvalidReason.REFUSAL),
    ("As an AI, I do not choose between people.", InvalidReason.REFUSAL),
    ("A) I cannot say which one fits.", InvalidReason.REFUSAL),
    ("A human should decide, I don't know.", InvalidReason.REFUSAL),
    ("d", InvalidReason.OTHER_LETTER),
    ("C) Anna", InvalidReason.OTHER_LETTER),
    ("The answer is C.", InvalidReason.OTHER_LETTER),
    ("Message 3", InvalidReason.OTHER_LETTER),
    ("Risposta: D", InvalidReason.OTHER_LETTER),
    ("Answer: Although it rains", InvalidReason.UNREADABLE),
    ("Answer: A human should decide.", InvalidReason.UNREADABLE),
    ("Risposta: A mio avviso piove.", InvalidReason.UNREADABLE),
    ("Risposta: a mio avviso piove.", InvalidReason.UNREADABLE),
    ("A human should decide.", InvalidReason.UNREADABLE),
    ("A volte piove.", InvalidReason.UNREADABLE),
    ("The answer is not A.", InvalidReason.UNREADABLE),
    ("La risposta non è B.", InvalidReason.UNREADABLE),
    ("The wrong answer is A.", InvalidReason.UNREADABLE),
    ("If the answer is A, it rains.", InvalidReason.UNREADABLE),
    ("Is the answer A?", InvalidReason.UNREADABLE),
    ("A) Parigi è sbagliata", InvalidReason.UNREADABLE),
    ("I would not choose A.", InvalidReason.UNREADABLE),
    ("Vitamin B is better for you.", InvalidReason.UNREADABLE),
    ("The answer is B-52.", InvalidReason.UNREADABLE),
    ("It could be A.", InvalidReason.UNREADABLE),
    ("1", InvalidReason.UNREADABLE),
    ("В", InvalidReason.UNREADABLE),  # Cyrillic
    ('{"answer": null}', InvalidReason.UNREADABLE),
]

WITH_TEXTS = [
    ("Blue", COLOURS, "A"),
    ("red.", COLOURS, "B"),
    ("Marco Rossi", PEOPLE, "B"),
    ("b) marco rossi", PEOPLE, "B"),
    ("La risposta è A Anna", PEOPLE, "A"),
    ("A) Anna, che vive a Torino.", PEOPLE, "A"),
    ("Answer: B) Marco Rossi", PEOPLE, "B"),
    ("The answer is B. Anna is somebody else.", PEOPLE, "B"),
    ("B", ("B", "A"), "B"),
    ("A) Blue sky", ("Blue sky", "Blue"), "A"),
    ("A dog", ("a cat", "a dog"), "B"),
    ("C) z", ("x", "y", "z"), "C"),
]


@pytest.mark.parametrize(("completion", "letter"), LABELS)
def test_a_label_alone_is_its_letter(completion: str, letter: str) -> None:
    reading = read_letter(completion, letters=AB)
    assert (reading.letter, reading.tier, reading.reason) == (letter, Tier.WHOLE, None)


@pytest.mark.parametrize(("completion", "letter"), DECLARATIONS + CORRECTIONS)
def test_the_last_declaration_is_the_answer(completion: str, letter: str) -> None:
    reading = read_letter(completion, letters=AB)
    assert (reading.letter, reading.tier, reading.reason) == (letter, Tier.DECLARED, None)


@pytest.mark.parametrize(("completion", "letter"), OBJECTS)
def test_an_answer_field_is_read_in_an_object(completion: str, letter: str) -> None:
    reading = read_letter(completion, letters=AB)
    assert (reading.letter, reading.tier, reading.reason) == (letter, Tier.JSON, None)


@pytest.mark.parametrize(("completion", "letter"), LINES)
def test_a_label_that_leads_the_first_or_last_line_is_an_answer(completion: str, letter: str) -> None:
    reading = read_letter(completion, letters=AB)
    assert (reading.letter, reading.tier, reading.reason) == (letter, Tier.LINE, None)


@pytest.mark.parametrize(("completion", "reason"), NO_ANSWER)
def test_what_declares_no_single_offered_letter_is_invalid_for_a_reason(completion: str, reason: InvalidReason) -> None:
    reading = read_letter(completion, letters=AB)
    assert (reading.letter, reading.reason) == (None, reason)


@pytest.mark.parametrize(("completion", "choices", "letter"), WITH_TEXTS)
def test_the_texts_of_the_choices_help_to_read(completion: str, choices: tuple[str, ...], letter: str) -> None:
    assert read_letter(completion, letters=ABC[: len(choices)], choices=choices).letter == letter


@pytest.mark.parametrize("completion", ["A) Marco Rossi", "The answer is A) Marco Rossi.", "A. Marco Rossi", "b) anna"])
def test_a_label_next_to_the_text_of_another_choice_is_ambiguous(completion: str) -> None:
    reading = read_letter(completion, letters=AB, choices=PEOPLE)
    assert (reading.letter, reading.reason) == (None, InvalidReason.BOTH)


def test_equal_texts_tell_nothing_about_the_letter() -> None:
    assert read_letter("same", letters=AB, choices=("same", "same")).reason is InvalidReason.UNREADABLE
    assert read_letter("B) same", letters=AB, choices=("same", "same")).letter == "B"


def test_any_number_of_letters_may_be_offered() -> None:
    letters = tuple("ABCDEFGHIJ")
    assert read_letter("La risposta è J.", letters=letters).letter == "J"
    assert read_letter("Option 4", letters=letters).letter == "D"
    assert read_letter("The answer is I think unclear.", letters=letters).letter is None


@pytest.mark.parametrize("completion", ["", "The passage says that", "Answer:"])
def test_a_completion_cut_off_before_its_answer_is_truncated(completion: str) -> None:
    assert read_letter(completion, letters=AB, cut_off=True).reason is InvalidReason.TRUNCATED


def test_a_completion_cut_off_after_its_answer_is_read() -> None:
    assert read_letter("A) Blue\n\nThe answer is A) Bl", letters=AB, cut_off=True).letter == "A"


def test_reasoning_that_only_ends_is_left_out() -> None:
    assert read_letter("Maybe the answer is A.\n</think>\n\nB", letters=AB).letter == "B"


def test_the_reading_is_strict_in_version_two() -> None:
    assert (STRICT, STRICT_VERSION) == ("strict", 2)


def test_the_collected_completions_are_read_as_people_read_them() -> None:
    folder = os.environ.get("BOTHWAYS_SHARED_CASES")
    if folder is None:
        pytest.skip("BOTHWAYS_SHARED_CASES does not name the folder with closed_answers.jsonl")
    lines = (Path(folder) / "closed_answers.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines if line.strip()]
    read = {case["completion"]: read_letter(case["completion"], letters=AB).letter for case in cases}
    assert read == {case["completion"]: case["letter"] for case in cases}


WORDS = (
    "the",
    "a",
    "an",
    "e",
    "o",
    "i",
    "la",
    "casa",
    "mare",
    "house",
    "river",
    "over",
    "sette",
    "seven",
    "lento",
    "bird",
)
LOWER_WORDS = st.lists(st.sampled_from([*WORDS, "with", "per", "b", "d", "di", "che", "who"]), min_size=3).map(" ".join)
PROSE_AFTER_A = st.sampled_from(
    [
        "causa del vento",
        "volte",
        "mio avviso",
        "Roma",
        "nord del fiume",
        "human being",
        "house",
        "dog",
        "small boat",
        "few",
    ]
)
LETTERS = st.integers(2, 26).map(lambda count: tuple(chr(ord("A") + index) for index in range(count)))


@given(LOWER_WORDS)
def test_lower_case_prose_is_never_a_letter(prose: str) -> None:
    assert read_letter(prose, letters=AB).letter is None
    assert read_letter(prose.capitalize() + ".", letters=AB).letter is None


@given(PROSE_AFTER_A, LOWER_WORDS)
def test_a_sentence_that_begins_with_the_word_a_is_never_a_letter(start: str, prose: str) -> None:
    assert read_letter(f"A {start} {prose}.", letters=AB).letter is None
    assert read_letter(f"{prose.capitalize()}. A {start} {prose}.", letters=AB).letter is None


@given(st.text(), st.text(alphabet=st.characters(blacklist_characters="<>[]")))
def test_closed_reasoning_in_front_changes_nothing(text: str, reasoning: str) -> None:
    assert read_letter(f"<think>{reasoning}</think>{text}", letters=AB) == read_letter(text, letters=AB)


@given(LETTERS, st.data())
def test_every_offered_letter_reads_as_itself(letters: tuple[str, ...], data: st.DataObject) -> None:
    letter = data.draw(st.sampled_from(letters))
    form = data.draw(
        st.sampled_from(["{}", "{}.", "({})", "**{}**", "Answer: {}", "La risposta è {}.", "\\boxed{{{}}}"])
    )
    first = read_letter(form.format(letter), letters=letters)
    assert first.letter == letter
    assert read_letter(first.letter or "", letters=letters).letter == letter


PIECES = (
    "A",
    "B",
    "C",
    ") ",
    ". ",
    ": ",
    "\n",
    " ",
    "?",
    "answer",
    "risposta",
    " is ",
    " è ",
    " not ",
    " non ",
    " and ",
)
TRAPS = ("<think>", "</think>", "**", "{", "}", '"', "\\boxed{", " o ", "both ", "quindi ", "Message 9", "Blue", "Red")
FRAGMENTS = st.lists(st.sampled_from([*PIECES, *TRAPS]), max_size=30).map("".join)


@given(st.one_of(st.text(), FRAGMENTS), st.booleans())
def test_any_text_is_a_letter_or_a_reason(text: str, truncated: bool) -> None:
    reading = read_letter(text, letters=AB, choices=COLOURS, cut_off=truncated)
    assert (reading.letter is None) == (reading.reason is not None)
    assert reading.letter in {None, *AB}
