"""Readings by name: those of the papers, and what a study file and a stored attempt say about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.answers import InvalidReason
from contract.reading import READINGS, STRICT, known_reading

ABC = ("A", "B", "C")
FIRST, EXACT = READINGS["first-letter"].read, READINGS["exact-letter"].read


@pytest.mark.parametrize(
    ("completion", "letter"),
    [
        ("B", "B"),
        ("C. Hurts a little", "C"),
        ("(A)", "A"),
        ("Answer: B", "B"),
        ("B or C", "B"),
        ("The answer is not A but B", "A"),
        ("A human should decide.", "A"),
        ("<think>C?</think>B", "C"),
        ("D, or rather B", "B"),
        ("b", None),
        ("Alpha", None),
        ("_B_", None),  # an underscore is part of a word
        ("", None),
    ],
)
def test_first_letter_is_the_first_that_stands_alone(completion: str, letter: str | None) -> None:
    assert FIRST(completion, letters=ABC).letter == letter


@pytest.mark.parametrize(
    ("completion", "letter"),
    [
        ("A", "A"),
        (" B\n", "B"),
        ("Message 1", "A"),
        ("Message 2\n", "B"),
        ("A.", None),
        ("a", None),
        ("(A)", None),
        ("**A**", None),
        ("Answer: A", None),
        ("message 1", None),
        ("Message 4", None),
        ("D", None),
    ],
)
def test_exact_letter_is_the_whole_completion(completion: str, letter: str | None) -> None:
    assert EXACT(completion, letters=ABC).letter == letter


@pytest.mark.parametrize("name", ["first-letter", "exact-letter"])
@pytest.mark.parametrize(
    ("completion", "cut_off", "reason"),
    [
        ("", False, InvalidReason.EMPTY),
        (" \n", False, InvalidReason.EMPTY),
        ("no idea", False, InvalidReason.UNREADABLE),
        ("I would say that", True, InvalidReason.TRUNCATED),
    ],
)
def test_what_the_papers_rules_do_not_read_is_invalid_for_a_reason(
    name: str, completion: str, cut_off: bool, reason: InvalidReason
) -> None:
    reading = READINGS[name].read(completion, letters=ABC, cut_off=cut_off)

    assert (reading.letter, reading.reason) == (None, reason)


@given(st.sampled_from(sorted(READINGS)), st.text(), st.booleans(), st.sampled_from([None, "it", "en-GB"]))
def test_every_reading_gives_an_offered_letter_or_a_reason(
    name: str, text: str, cut_off: bool, language: str | None
) -> None:
    reading = READINGS[name].read(text, letters=ABC, choices=("x", "y", "z"), cut_off=cut_off, language=language)

    assert reading.letter in {None, *ABC}
    assert (reading.letter is None) == (reading.reason is not None)
    assert reading.tier


@pytest.mark.parametrize("name", sorted(READINGS))
@pytest.mark.parametrize("letter", ABC)
def test_a_bare_letter_is_itself_in_every_reading(name: str, letter: str) -> None:
    assert READINGS[name].read(letter, letters=ABC).letter == letter


def test_readings_are_told_apart_by_name_and_version() -> None:
    assert {name: reading.version for name, reading in READINGS.items()} == {
        "strict": 2,
        "first-letter": 1,
        "exact-letter": 1,
    }
    assert all(reading.name == name for name, reading in READINGS.items())
    assert known_reading(STRICT) == "strict"


@pytest.mark.parametrize("name", ["lenient", "Strict", "", None, 2, ["strict"]])
def test_a_reading_that_nobody_knows_is_refused_with_those_that_there_are(name: object) -> None:
    with pytest.raises(ValueError, match="must be strict, first-letter or exact-letter"):
        known_reading(name)
