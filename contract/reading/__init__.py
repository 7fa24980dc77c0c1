"""Readings: the named, versioned rules by which an answer is read in a completion. None of them guesses.

A version is raised whenever the same completion may be read otherwise; name and version are stored with every attempt.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from contract.answers import LetterReading
from contract.reading.papers import (
    EXACT_LETTER,
    EXACT_LETTER_VERSION,
    FIRST_LETTER,
    FIRST_LETTER_VERSION,
    read_exact_letter,
    read_first_letter,
)
from contract.reading.strict import STRICT, STRICT_VERSION, Tier, read_letter

__all__ = ["READINGS", "STRICT", "STRICT_VERSION", "LetterReader", "Reading", "Tier", "known_reading", "read_letter"]


class LetterReader(Protocol):
    """What reads a letter in a completion."""

    def __call__(
        self,
        text: str,
        *,
        letters: tuple[str, ...],
        choices: tuple[str, ...] | None = None,
        cut_off: bool = False,
        language: str | None = None,
    ) -> LetterReading:
        """The letter read in `text`, one of `letters`, or why there is none. Raises nothing, whatever the text.

        `choices`: the texts as shown, one behind each letter. `cut_off`: the model did not end the text. `language`:
        the item's.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way of reading closed answers."""

    name: str
    version: int
    read: LetterReader


READINGS = MappingProxyType(
    {
        reading.name: reading
        for reading in (
            Reading(name=STRICT, version=STRICT_VERSION, read=read_letter),
            Reading(name=FIRST_LETTER, version=FIRST_LETTER_VERSION, read=read_first_letter),
            Reading(name=EXACT_LETTER, version=EXACT_LETTER_VERSION, read=read_exact_letter),
        )
    }
)
"""The readings by their names, as a study file gives them."""


def known_reading(name: object) -> str:
    """`name`, if a reading has it; ValueError with those that there are."""
    if not isinstance(name, str) or name not in READINGS:
        *names, last = READINGS
        raise ValueError(f"must be {', '.join(names)} or {last}")
    return name
