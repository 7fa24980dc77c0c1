"""What was read in a completion."""

from dataclasses import dataclass
from enum import StrEnum


class InvalidReason(StrEnum):
    """Why no answer could be read."""

    EMPTY = "empty"
    TRUNCATED = "truncated"  # cut off before an answer, or inside unclosed reasoning
    BOTH = "both"  # several letters declared
    NONE = "none"  # says that no choice fits
    REFUSAL = "refusal"  # declines in words
    OTHER_LETTER = "other_letter"  # a letter that was not offered
    OFF_SCALE = "off_scale"  # a number that is not on the scale
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class LetterReading:
    """The letter read in a completion, or why there is none; `tier` names the rule that decided."""

    letter: str | None
    tier: str
    reason: InvalidReason | None = None


@dataclass(frozen=True, kw_only=True)
class NumberReading:
    """The number read in a completion, or why there is none; `off_scale` is the number that was named instead."""

    number: int | None
    tier: str
    reason: InvalidReason | None = None
    off_scale: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A completion once read: a choice by its index, or the reason why it is invalid."""

    choice: int | None
    tier: str
    reason: InvalidReason | None = None

    @property
    def valid(self) -> bool:
        """Whether a choice was read."""
        return self.choice is not None
