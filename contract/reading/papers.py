"""The readings of the papers, for running them again as they were run. They read less, or more, than "strict" would."""

import re
from enum import StrEnum

from contract.answers import InvalidReason, LetterReading

FIRST_LETTER = "first-letter"
FIRST_LETTER_VERSION = 1
EXACT_LETTER = "exact-letter"
EXACT_LETTER_VERSION = 1


class PaperTier(StrEnum):
    """The rules of these readings."""

    FIRST = "first"  # the first letter that stands alone
    EXACT = "exact"  # the completion is the letter, or what the prompt asks for instead of it
    NOTHING = "nothing"  # the rule found nothing


def read_first_letter(
    text: str,
    *,
    letters: tuple[str, ...],
    choices: tuple[str, ...] | None = None,  # noqa: ARG001 - every reading is called alike
    cut_off: bool = False,
    language: str | None = None,  # noqa: ARG001
) -> LetterReading:
    """The first letter of `letters` that stands alone, in upper case; where several are named, the first of them.

    Source: the answer-format paper (arXiv 2608.17516), closed answers. Nothing is taken away before: in "A human should
    decide", in reasoning and in a refused choice the letter counts as well.
    """
    found = re.search(rf"\b({'|'.join(map(re.escape, letters))})\b", text)
    if found is not None:
        return LetterReading(letter=found[1], tier=PaperTier.FIRST)
    return LetterReading(letter=None, tier=PaperTier.NOTHING, reason=_nothing_in(text, cut_off))


def read_exact_letter(
    text: str,
    *,
    letters: tuple[str, ...],
    choices: tuple[str, ...] | None = None,  # noqa: ARG001
    cut_off: bool = False,
    language: str | None = None,  # noqa: ARG001
) -> LetterReading:
    """The letter that the whole completion is, white space aside; "Message 1" is the first letter, and so on.

    Source: "Positional Bias in Binary Question Answering", which counts as invalid every output that does not conform
    to the expected binary format, and whose prompts ask for "only A or B", or for "ONLY" Message 1 or Message 2. It
    does not say whether "A." or "a" conforms; here neither does.
    """
    expected = {letter: letter for letter in letters}
    expected |= {f"Message {number}": letter for number, letter in enumerate(letters, start=1)}
    letter = expected.get(text.strip())
    if letter is not None:
        return LetterReading(letter=letter, tier=PaperTier.EXACT)
    return LetterReading(letter=None, tier=PaperTier.NOTHING, reason=_nothing_in(text, cut_off))


def _nothing_in(text: str, cut_off: bool) -> InvalidReason:
    if cut_off:
        return InvalidReason.TRUNCATED
    return InvalidReason.UNREADABLE if text.strip() else InvalidReason.EMPTY
