"""The reading "first-number" of Likert answers: the first whole number that lies on the scale.

Source: the answer-format paper (arXiv 2608.17516), Likert answers. What only looks like a rating is passed over: parts
of words, fractions, percentages, ranges, amounts of money, the scale repeated, the numbers of a list. Number words are
not read in any language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from contract.answers import InvalidReason, NumberReading
from contract.reading.markup import after_reasoning, clean, normal

FIRST_NUMBER = "first-number"
FIRST_NUMBER_VERSION = 1

# What would turn into digits, or lose what makes it no rating, when the text is made plain.
_NO_NUMBER = re.compile("[¼-¾²³¹⁰-⁹₀-₉⅐-⅟↉]|[€£¥](?=[0-9])|\\$(?=[0-9][0-9.,]*(?![0-9.,]*\\$))")
_SIGN = "⁄"
_RUN = re.compile(r"[0-9]+(?:[.,:⁄-][0-9]+| ?/ ?[0-9]+)*")
_WHOLE = re.compile(r"([0-9]+)(?:[.,]0{1,2})?")
_OUT_OF = re.compile(r"([0-9]+)(?: ?/ ?)([0-9]+)")
_OUT_OF_IN_WORDS = re.compile(r" (?:out of|of|su) ([0-9]+)(?![0-9.,]*[0-9])", re.IGNORECASE)
_NO_RATING_AFTER = re.compile(r"[^\W_]|⁄| ?%|\s(?:percent|per ?cento?)\b|-[^\W_]|'[^\W\d]", re.IGNORECASE)
_NUMBERED = re.compile(r"^[^\S\n]*\(?(-?[0-9]+)(?:[.)]|\s?[:=-])\s", re.MULTILINE)


class NumberTier(StrEnum):
    """The rules of this reading."""

    REASONING = "reasoning"  # reasoning that never ends
    BLANK = "blank"  # nothing was written
    NUMBER = "number"  # a whole number stands in the text
    NOTHING = "nothing"  # none does


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A whole number where it stands; `explained` if an equals sign follows, as in the scale that a prompt prints."""

    number: int
    start: int
    end: int
    explained: bool


def read_number(text: str, *, lowest: int, highest: int, cut_off: bool = False) -> NumberReading:
    """The first whole number in `text` from `lowest` to `highest`, or why there is none.

    A text whose whole numbers all lie off the scale is invalid, with the first of them. `cut_off` says that the model
    did not end the text: a number at its end to which another digit could be added is then no answer.
    """
    told = after_reasoning(normal(_NO_NUMBER.sub(_SIGN, text).replace("–", "-")))
    if told is None:
        return NumberReading(number=None, tier=NumberTier.REASONING, reason=InvalidReason.TRUNCATED)
    said = clean(told)
    if not said:
        reason = InvalidReason.TRUNCATED if cut_off else InvalidReason.EMPTY
        return NumberReading(number=None, tier=NumberTier.BLANK, reason=reason)
    found = _ratings(said, lowest, highest)
    rating = next((one for one in found if lowest <= one.number <= highest), None)
    if rating is None and not found:
        reason = InvalidReason.TRUNCATED if cut_off else InvalidReason.UNREADABLE
        return NumberReading(number=None, tier=NumberTier.NOTHING, reason=reason)
    last = rating or found[0]
    if cut_off and last.end == len(said) and _may_go_on(last.number, lowest, highest):
        return NumberReading(number=None, tier=NumberTier.NUMBER, reason=InvalidReason.TRUNCATED)
    if rating is None:
        off_scale = InvalidReason.OFF_SCALE
        return NumberReading(number=None, tier=NumberTier.NUMBER, reason=off_scale, off_scale=last.number)
    return NumberReading(number=rating.number, tier=NumberTier.NUMBER)


def _may_go_on(number: int, lowest: int, highest: int) -> bool:
    """Whether one more digit would make another rating of `number`."""
    tenfold = abs(number) * 10
    return number != 0 and (lowest <= -tenfold if number < 0 else tenfold <= highest)


def _ratings(text: str, lowest: int, highest: int) -> list[_Found]:
    """The whole numbers that may be ratings; those that only explain the scale count if there are no others."""
    spans = chain(_ranges(text, lowest, highest), _numbering(text))
    passed = {place for start, end in spans for place in range(start, end)}
    found = [one for one in _whole_numbers(text, highest) if one.start not in passed]
    plain = [one for one in found if not one.explained]
    explained = {one.number for one in found if one.explained}
    return plain or (found if len(explained) == 1 else [])


def _whole_numbers(text: str, highest: int) -> Iterator[_Found]:
    total = -1  # where the second number of "4 out of 5" stands
    for run in _RUN.finditer(text):
        before, after = text[max(0, run.start() - 2) : run.start()], text[run.end() : run.end() + 12]
        sign = _sign_before(before)
        number = None if _NO_RATING_AFTER.match(after) else _number_in(run[0], highest)
        if run.start() == total:
            continue
        if of := _OUT_OF_IN_WORDS.match(text, run.end()):
            total = of.start(1)
        if sign is None or number is None or (of and of[1] != str(highest)):
            continue
        start = run.start() - (before[-1:] == "-")
        yield _Found(number=sign * number, start=start, end=run.end(), explained=after.lstrip(" ")[:1] == "=")


def _sign_before(before: str) -> int | None:
    """1 or -1; None where what stands before the digits makes them part of something else."""
    last, first = before[-1:], before[:-1]
    if last.isalnum() or last in {_SIGN, "_"} or (last in {".", ","} and first[-1:].isalnum()):
        return None
    if last == "." and not first.strip():  # .5
        return None
    if last == "-":
        return None if first.isalnum() else -1
    return 1


def _number_in(run: str, highest: int) -> int | None:
    """The whole number that a run of digits is: "4", "4.0", "4/5" on a scale up to 5."""
    if whole := _WHOLE.fullmatch(run):
        return int(whole[1]) if len(whole[1]) <= 18 else None
    of = _OUT_OF.fullmatch(run)
    return int(of[1]) if of and of[2] == str(highest) and len(of[1]) <= 18 else None


def _ranges(text: str, lowest: int, highest: int) -> Iterator[tuple[int, int]]:
    """Where the ends of the scale stand one after the other: "from 1 to 5", "1 (strongly agree) ... 4"."""
    label = r"(?: ?\([^()\n]{0,60}\))?"
    for ends in ((lowest, highest), (highest, lowest)):
        span = rf"(?<![\w.,]){ends[0]}{label} (?:-|[^\W\d_]{{1,7}}(?: [^\W\d_]{{1,2}})?) {ends[1]}(?![\w]|[.,][0-9])"
        yield from (match.span() for match in re.finditer(span, text))


def _numbering(text: str) -> Iterator[tuple[int, int]]:
    """The numbers that only count the lines of a list: one more with each."""
    lines = list(_NUMBERED.finditer(text))
    numbers = [int(line[1]) if len(line[1]) <= 18 else None for line in lines]
    for place, line in enumerate(lines):
        number, around = numbers[place], {*numbers[max(0, place - 1) : place], *numbers[place + 1 : place + 2]}
        if number is not None and ((number > 1 and number - 1 in around) or number + 1 in around):
            yield line.span(1)
