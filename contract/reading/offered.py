"""What a model was offered, and what one place of its completion says about it."""

from dataclasses import dataclass
from functools import cached_property

from contract.answers import InvalidReason, LetterReading
from contract.reading.markup import clean, normal

Value = str | InvalidReason
"""What one place of a text says: a letter in upper case, offered or not, or why it is no single letter."""

CLAUSE = 300
_BEFORE_TEXT = " ):.;,=-"


def plain(text: str) -> str:
    """`text` for comparing it with choices: without case, quotes and the punctuation that ends it."""
    return " ".join(text.casefold().split()).strip(" \"'").rstrip(" .:;,!\"'")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Something said at one place: a position in the text, or the number of a line that a label leads.

    Of a line: `firm` if nothing but the text of its own choice follows the label, `ended` if nothing but punctuation,
    `denied` if it goes on to say that the label is wrong.
    """

    at: int
    value: Value
    firm: bool = False
    ended: bool = False
    denied: bool = False


@dataclass(frozen=True, kw_only=True)
class Offered:
    """The letters, and the choices as shown behind them as far as they are known."""

    letters: tuple[str, ...]
    choices: tuple[str, ...] = ()

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The choices as `plain` makes them."""
        return tuple(plain(clean(normal(choice))) for choice in self.choices)

    @cached_property
    def reach(self) -> int:
        """How many characters after a label are looked at: a clause, and the text of any choice before it."""
        return CLAUSE + max(map(len, self.texts), default=0)

    def owner(self, text: str) -> str | None:
        """The letter of the choice that `text` begins with; None when no choice, or more than one, fits best."""
        head = plain(text).lstrip(_BEFORE_TEXT)
        fitting = [
            (len(own), letter)
            for letter, own in zip(self.letters, self.texts, strict=False)
            if own and head.startswith(own) and not head[len(own) : len(own) + 1].isalnum()
        ]
        longest = [letter for length, letter in fitting if length == max(fitting)[0]]
        return longest[0] if len(longest) == 1 else None

    def named(self, text: str) -> str | None:
        """The letter of the only choice whose text is all of `text`."""
        equal = [letter for letter, own in zip(self.letters, self.texts, strict=False) if own and own == plain(text)]
        return equal[0] if len(equal) == 1 else None

    def after_own(self, letter: str, rest: str) -> str:
        """What follows the label `letter`, without the text of its choice: choices may be worded as denials."""
        if self.owner(rest) != letter:
            return rest
        return rest.lstrip(_BEFORE_TEXT + "\"'")[len(self.texts[self.letters.index(letter)]) :]

    def value(self, letter: str, rest: str) -> Value:
        """`letter`, unless what follows it is the text of another choice."""
        return letter if self.owner(rest) in {None, letter} else InvalidReason.BOTH

    def reading(self, value: Value, tier: str) -> LetterReading:
        """The reading for `value`; a letter that was not offered is a reason."""
        if isinstance(value, InvalidReason):
            return LetterReading(letter=None, tier=tier, reason=value)
        if value not in self.letters:
            return LetterReading(letter=None, tier=tier, reason=InvalidReason.OTHER_LETTER)
        return LetterReading(letter=value, tier=tier)
