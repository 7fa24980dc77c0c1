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
    NOT_BARE = "not_bare"  # more than the text that was asked for: a label, several lines
    EQUALS_RIGHT = "equals_right"  # a wrong answer that is right
    EQUALS_EARLIER = "equals_earlier"  # the text that the prompt showed and asked to differ from
    QUESTION = "question"  # asks where it should state
    IN_CONTEXT = "in_context"  # taken from the paragraph though it should have nothing to do with it


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
    """A completion once read: a choice by its index, a rating or a text, or the reason why it is invalid."""

    choice: int | None
    tier: str
    reason: InvalidReason | None = None
    text: str | None = None
    rating: int | None = None

    @property
    def valid(self) -> bool:
        """Whether an answer was read."""
        return self.number is not None or self.text is not None

    @property
    def number(self) -> int | None:
        """What a row keeps of it as a number: the index of the choice, or the rating."""
        return self.rating if self.choice is None else self.choice
