"""A further language: its words are a value, and nothing else of the reading knows of it."""

import dataclasses
import re

import pytest

from contract.answers import InvalidReason, LetterReading
from contract.reading import read_letter
from contract.reading.languages import ENGLISH, ITALIAN, LANGUAGES, Language

GERMAN = Language(
    code="de",
    articles="die|der|das",
    labels="option|nachricht|möglichkeit|buchstabe",
    replies="antwort",
    nouns="lösung|ergebnis",
    others="andere|erste|zweite",
    is_="ist|wäre|scheint",
    right="richtige?|korrekte?|bessere?|besser|beste|plausible?r?|überzeugende?r?",
    wrong="falsche?|unzutreffend",
    not_="nicht|kein|weniger",
    doubts="nicht|könnte|bezweifle|kaum",
    that="dass",
    assured="glaube|denke|klar|sicher",
    chooses="ich wähle|wähle|nehme|tippe auf",
    between="wahrscheinlich|die|eindeutig|daher",
    therefore="daher|deshalb|folglich|sondern|aber|wahrscheinlich",
    therefore_at_home="also",
    asides="ja|nein",
    because="weil|denn|da",
    after="und|aber|nicht|statt|als",
    against="nicht|als|statt",
    both="beide",
    neither="keine|keiner|weder",
    of_them="von|beiden|der|antworten",
    joints="und|oder",
    nor="noch",
    if_="wenn|falls",
    refusals="ich kann nicht|weiß ich nicht|keine meinung|tut mir leid",
    headings="frage|kontext",
)
WITH_GERMAN = (*LANGUAGES, GERMAN)
SENTENCES = [
    ("Die Antwort ist B.", "B"),
    ("Die richtige Antwort ist A, weil der Text es sagt.", "A"),
    ("Antwort: B", "B"),
    ("antwort: b", "B"),
    ("Ich wähle A.", "A"),
    ("A ist richtig.", "A"),
    ("A ist falsch, daher B.", "B"),
    ("Nicht A, sondern B.", "B"),
    ("Nachricht 2 ist überzeugender als Nachricht 1.", "B"),
    ("Option A", "A"),
    ('{"antwort": "B"}', "B"),
    ("Ich glaube, dass B richtig ist.", InvalidReason.UNREADABLE),
    ("A und B", InvalidReason.BOTH),
    ("Weder A noch B.", InvalidReason.NONE),
    ("Keine der beiden Antworten.", InvalidReason.NONE),
    ("Das weiß ich nicht.", InvalidReason.REFUSAL),
    ("Die Antwort ist nicht A.", InvalidReason.UNREADABLE),
    ("Die falsche Antwort ist A.", InvalidReason.UNREADABLE),
    ("A könnte richtig sein.", InvalidReason.UNREADABLE),
    ("Als Kind war ich dort.", InvalidReason.UNREADABLE),
]


def german(text: str, *, language: str | None = "de") -> LetterReading:
    return read_letter(text, letters=("A", "B"), language=language, known=WITH_GERMAN)


@pytest.mark.parametrize(("completion", "expected"), SENTENCES)
def test_a_language_that_is_added_as_a_value_is_read(completion: str, expected: str) -> None:
    reading = german(completion)

    assert (reading.letter or reading.reason) == expected


def test_without_its_words_a_language_declares_nothing() -> None:
    assert read_letter("Die Antwort ist B.", letters=("A", "B"), language="de").reason is InvalidReason.UNREADABLE
    assert read_letter("B", letters=("A", "B"), language="de").letter == "B"


@pytest.mark.parametrize("language", ["it", "en", "de", "it-CH", "fr", None])
@pytest.mark.parametrize(
    ("completion", "letter"),
    [("La risposta è B.", "B"), ("The answer is A.", "A"), ("Die Antwort ist B.", "B"), ("B, not A", "B")],
)
def test_models_may_answer_in_another_language_than_they_were_asked_in(
    completion: str, letter: str, language: str | None
) -> None:
    assert german(completion, language=language).letter == letter


def test_a_word_of_two_meanings_concludes_only_at_home() -> None:
    assert german("Der Text spricht vom Meer, also B.").letter == "B"
    assert german("It mentions the sea, also B.", language="en").letter is None
    assert german("It mentions the sea, also B.", language=None).letter is None


@pytest.mark.parametrize("language", [*LANGUAGES, GERMAN], ids=lambda language: language.code)
def test_every_field_of_a_language_is_a_pattern_of_lower_case_alternatives(language: Language) -> None:
    for field in dataclasses.fields(language):
        words = getattr(language, field.name)
        re.compile(words)
        if field.name != "capitals":
            assert words == words.lower().replace("[ii]", "[iI]"), field.name
        assert not re.search(r"\((?!\?[:<])|’|  |^\||\|$|\|\|", words), field.name


def test_each_language_has_its_own_code() -> None:
    assert (ENGLISH.code, ITALIAN.code) == ("en", "it")
    assert len({language.code for language in LANGUAGES}) == len(LANGUAGES)
