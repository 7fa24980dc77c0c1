"""What holds for the reading "strict" whatever a model writes."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.answers import InvalidReason, LetterReading
from contract.reading import Tier, read_letter
from tests.unit.test_reading_cases import CASES, Case

AB = ("A", "B")
CHOICES = ("Blue one", "Red two")

# Words of both languages and of neither that declare nothing, judge nothing and refuse nothing.
WORDS = (
    *("acqua", "albero", "anche", "bird", "boat", "casa", "che", "con", "cup", "da", "dal", "days", "di", "distance"),
    *("ducks", "fiume", "for", "garden", "green", "hanno", "has", "hill", "house", "in", "inverno", "lake", "lento"),
    *("long", "mare", "many", "monte", "mountain", "nel", "of", "old", "on", "per", "piove", "rain", "red", "river"),
    *("road", "sea", "seven", "sette", "small", "stone", "sul", "summer", "sun", "that", "the", "three", "town", "tre"),
    *("under", "valle", "vento", "verso", "water", "when", "winter", "with", "words"),
)
BEGINNINGS = ("A", "a", "E", "e", "I", "i", "O", "o", "An", "Un", "B")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=2, max_size=12).map(" ".join)
ENDS = st.sampled_from([".", "!", "...", "", "\n"])

PIECES = (
    *("A", "B", "A)", "B)", "(A)", "(B)", "A.", "B.", "A:", "B:", "**A**", "**B**", "message 1", "message 2"),
    *(" ", " ", " ", "\n", ", ", ". ", ": ", "; ", "?", "!", " - ", "/", '"'),
    *(
        "answer",
        "risposta",
        "the",
        "la",
        " is ",
        " è ",
        " not ",
        " non ",
        " and ",
        " or ",
        " e ",
        " o ",
        " né ",
        " nor ",
    ),
    *(" correct", " wrong", " giusta", " sbagliata", "both ", "neither ", "nessuna ", "quindi ", "so ", "but ", "ma "),
    *(
        "I think ",
        "I choose ",
        "scelgo ",
        "because ",
        "perché ",
        "if ",
        "se ",
        "that ",
        "che ",
        "rather than ",
        "than ",
    ),
    *("<think>", "</think>", "{", "}", '{"answer": "A"}', '{"answer": "B"}', "\\boxed{A}", "\\boxed{B}", "✓", "✗"),
    *("sorry", "non so", "Question:", "| ", "- ", "1. ", "option ", "also ", "anche ", "maybe ", "yes", "no", "word "),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
LETTERS = st.integers(2, 26).map(lambda count: tuple(chr(ord("A") + place) for place in range(count)))
FORMS = (
    *("{}", "{}.", "({})", "{})", "[{}]", "Answer: {}", "The answer is {}.", "La risposta è {}", "Scelgo la {}."),
    *("I choose {} because of the date.", "{} is correct.", "{} è la risposta giusta.", "{}) Anna", "Option {}"),
    *("The text says so.\n\n{}", "Therefore, {}.", "A first look says little. So {}."),
)

SWAPS = {"A": "B", "B": "A", "a": "b", "b": "a", "1": "2", "2": "1"}
# Where the letters hang together with words or are written in other characters, a test cannot exchange them simply.
SIMPLE = [
    case
    for case in CASES
    if case.letters == AB
    and case.choices is None
    and not case.kind.startswith(("other characters", "look-alike"))
    and not re.search(r"\*\*oth|assistantfinal", case.completion)
]


def strict(text: str, *, cut_off: bool = False) -> LetterReading:
    return read_letter(text, letters=AB, cut_off=cut_off)


def exchanged(text: str, table: dict[str, str]) -> str:
    """`text` with the letters and numbers of `table` exchanged where they stand alone, but not in the tag <b>."""
    alone = r"(?<![^\W_])(?:[AB12]|(?<![</])[ab])(?![^\W_])"
    return re.sub(alone, lambda match: table.get(match[0], match[0]), text)


@settings(deadline=None)
@given(st.sampled_from(BEGINNINGS), SENTENCES, ENDS)
def test_prose_is_never_a_letter_whatever_short_word_begins_it(beginning: str, prose: str, end: str) -> None:
    assert strict(f"{beginning} {prose}{end}").letter is None
    assert strict(f"{prose.capitalize()}. {beginning} {prose}{end}").letter is None
    assert read_letter(f"{beginning} {prose}{end}", letters=tuple("ABCDEFGHIJKLMNO")).letter is None


@settings(deadline=None)
@given(TEXTS, st.text(alphabet=st.characters(blacklist_characters="<>[]◁▷|", blacklist_categories=["Cs"])))
@example("B", "The answer is A.")
def test_closed_reasoning_in_front_changes_nothing(text: str, reasoning: str) -> None:
    plain = strict(text)
    for tag in ("think", "THINK", "thinking", "reasoning"):
        assert strict(f"<{tag}>{reasoning}</{tag}>{text}") == plain
    assert strict(f"<think>{reasoning}\n</think>\n\n{text}") == plain


@settings(deadline=None)
@given(st.sampled_from(FORMS), LETTERS, st.data())
def test_emphasis_around_the_letter_changes_nothing(form: str, letters: tuple[str, ...], data: st.DataObject) -> None:
    letter = data.draw(st.sampled_from(letters))
    mark = data.draw(st.sampled_from(["**{}**", "*{}*", "`{}`", "__{}__", "***{}***", "\u200b{}\u200b", "<b>{}</b>"]))

    plain = read_letter(form.format(letter), letters=letters)

    assert plain.letter == letter
    assert read_letter(form.format(mark.format(letter)), letters=letters) == plain


@settings(deadline=None)
@given(TEXTS, st.booleans())
def test_a_letter_that_was_read_reads_as_itself(text: str, cut_off: bool) -> None:
    letter = strict(text, cut_off=cut_off).letter

    if letter is not None:
        assert strict(letter, cut_off=cut_off) == LetterReading(letter=letter, tier=Tier.WHOLE)


@settings(deadline=None)
@given(st.one_of(st.text(), TEXTS), LETTERS, st.booleans())
def test_only_letters_that_were_offered_are_read(text: str, letters: tuple[str, ...], cut_off: bool) -> None:
    reading = read_letter(text, letters=letters, cut_off=cut_off)

    assert reading.letter in {None, *letters}
    assert (reading.letter is None) == (reading.reason is not None)


@settings(deadline=None)
@given(TEXTS)
def test_exchanging_the_letters_exchanges_what_is_read(text: str) -> None:
    straight, crossed = strict(text), strict(exchanged(text, SWAPS))

    assert crossed == LetterReading(letter=SWAPS.get(straight.letter or ""), tier=straight.tier, reason=straight.reason)


@pytest.mark.parametrize(
    "case",
    SIMPLE,
    ids=lambda case: f"{case.kind}: {case.completion!a:.60}",
)
def test_no_collected_completion_is_read_otherwise_for_the_other_letter(case: Case) -> None:
    straight = strict(case.completion, cut_off=case.cut_off)
    crossed = strict(exchanged(case.completion, SWAPS), cut_off=case.cut_off)

    assert (crossed.letter, crossed.reason) == (SWAPS.get(straight.letter or ""), straight.reason)


@settings(deadline=None)
@given(TEXTS, st.permutations("ABCDEFGH"))
def test_renaming_letters_renames_what_is_read(text: str, names: list[str]) -> None:
    letters = tuple("ABCDEFGH")
    numbers = {str(number): str(letters.index(names[number - 1]) + 1) for number in (1, 2)}
    table = {"A": names[0], "B": names[1]} | numbers

    plain = read_letter(text, letters=letters)
    renamed = read_letter(exchanged(text, table), letters=letters)

    assert renamed == LetterReading(
        letter=table.get(plain.letter or "", plain.letter), tier=plain.tier, reason=plain.reason
    )


HOSTILE = (
    *(
        "a",
        "A",
        "A ",
        "B) ",
        "A, ",
        "A and ",
        "A né B ",
        "(",
        "[",
        "{",
        "<",
        '"',
        "'",
        "*",
        "_",
        "`",
        "~~",
        "$",
        "|",
        "\\",
    ),
    *(
        "\\boxed{",
        "\\text{",
        "- ",
        "#",
        ">",
        "\n",
        " ",
        "\t",
        ".",
        "?",
        ": ",
        "/",
        "&lt;",
        "-A",
        "1. ",
        "A\n",
        "A) x\n",
    ),
    *("<think>", "</think>", "<think ", "<|", "<|channel|>final<|message|>", "<|im_end|>", "<answer>", "</", "✗\n"),
    *('"answer":', '"answer":"', '{"answer":"A"}', '{"a":', "[{", "question:\n", "[x] ", "analysisA", "assistantfinal"),
    *("answer ", "risposta ", "the answer is ", "The answer is A. ", "A is correct ", "option A ", "message 1 "),
    *(
        "is ",
        "è ",
        "not ",
        "non ",
        "both ",
        "neither ",
        "so ",
        "if ",
        "I think ",
        "that ",
        "don't ",
        "word ",
        "parola\n",
    ),
    *("\u0301", "\u0301\u0316", "A\u0301", "\u200b", "А", "😀", "\ufdfa", "\ud800", "\x00"),
)


def test_hostile_texts_are_read_in_time() -> None:
    seconds = {}
    for piece in HOSTILE:
        text = piece * (100_000 // len(piece))
        start = time.process_time()
        read_letter(text, letters=AB, choices=CHOICES)
        seconds[piece] = time.process_time() - start

    # A pattern that takes the square of the length would take minutes.
    assert max(seconds.values()) < 5.0, sorted(seconds, key=lambda piece: seconds[piece])[-3:]


def test_of_a_text_without_end_the_end_is_read() -> None:
    assert strict("The answer is A. " + "word " * 10_000).reason is InvalidReason.UNREADABLE
    assert strict("word " * 10_000 + "The answer is B.").letter == "B"
    assert strict("word\n" * 10_000 + "\nB").letter == "B"
    assert strict("A) word\n" + "word\n" * 10_000).letter is None
