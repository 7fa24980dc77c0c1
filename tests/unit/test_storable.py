"""Model text as a row can hold it, with nothing said lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.storable import MAX_CHARACTERS, storable


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("La risposta è B 🙂\r\n\t", "La risposta è B 🙂\r\n\t", id="ordinary text as it is"),
        pytest.param("A\x00B", "A\N{SYMBOL FOR NULL}B", id="NUL as its symbol"),
        pytest.param("A\ud800B", "A\\ud800B", id="lone high surrogate as an escape"),
        pytest.param("\udfff", "\\udfff", id="lone low surrogate as an escape"),
        pytest.param("\x01\x7f\ufffe", "\x01\x7f\ufffe", id="other control characters as they are"),
    ],
)
def test_what_a_row_cannot_hold_is_shown_and_the_rest_is_kept(said: str, kept: str) -> None:
    stored = storable(said)

    assert stored.text == kept
    assert stored.cut_from is None


@given(st.text(st.characters(codec=None) | st.sampled_from("\x00\ud800\udc00")))
def test_any_text_becomes_one_that_postgres_holds(said: str) -> None:
    stored = storable(said)

    assert "\x00" not in stored.text
    assert stored.text.encode("utf-8").decode("utf-8") == stored.text


@given(st.text())
def test_storing_what_was_stored_changes_nothing(said: str) -> None:
    once = storable(said).text

    assert storable(once).text == once


def test_a_text_at_the_limit_is_not_cut() -> None:
    stored = storable("x" * MAX_CHARACTERS)

    assert len(stored.text) == MAX_CHARACTERS
    assert stored.cut_from is None


def test_a_longer_text_is_cut_and_its_true_length_kept() -> None:
    stored = storable("x" * MAX_CHARACTERS + "\x00\ud800 and B")

    assert stored.text == "x" * MAX_CHARACTERS
    assert stored.cut_from == MAX_CHARACTERS + 8


def test_the_limit_is_four_million_characters() -> None:
    assert MAX_CHARACTERS == 4_000_000
