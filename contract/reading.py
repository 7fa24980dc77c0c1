"""The reading "strict": which letter a completion declares, by ordered and named tiers; it never guesses.

The first tier that has a say decides; among declarations the last one wins. What can be read in two ways is invalid,
with a reason, and so is a text that declares nothing: there is no falling back to the first letter that occurs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from contract import reading_words as words
from contract.answers import InvalidReason, LetterReading

STRICT = "strict"
STRICT_VERSION = 1

_Value = str | InvalidReason
"""What one place of a text says: a letter in upper case, offered or not, or why it is no single letter."""


class Tier(StrEnum):
    """The rules in the order in which they are tried; the one that decided is stored with the answer."""

    REASONING = "reasoning"  # reasoning that never ends
    BLANK = "blank"  # nothing was written
    WHOLE = "whole"  # the completion is a label, or a label with the text of its choice
    TEXT = "text"  # the completion is the text of one choice
    JSON = "json"  # an answer field of a JSON object
    DECLARED = "declared"  # words that declare: "the answer is B", "B is correct", "quindi B"
    LINE = "line"  # the first or last line is led by a label
    WORDS = "words"  # says in words why there is no answer
    NOTHING = "nothing"  # no rule applied


@dataclass(frozen=True, kw_only=True)
class _Offered:
    """What was offered: the letters, and the texts behind them as far as they are known."""

    letters: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def owner(self, text: str) -> str | None:
        """The letter of the choice that `text` begins with; None when no choice, or more than one, fits best."""
        head = _plain(text).lstrip(" ):.-–—")
        fitting = [
            (len(own), letter)
            for letter, own in zip(self.letters, self.texts, strict=False)
            if own and head.startswith(own) and not head[len(own) : len(own) + 1].isalnum()
        ]
        longest = [letter for length, letter in fitting if length == max(fitting)[0]]
        return longest[0] if len(longest) == 1 else None

    def value(self, letter: str, rest: str) -> _Value:
        """`letter`, unless what follows it is the text of another choice."""
        return letter if self.owner(rest) in {None, letter} else InvalidReason.BOTH

    def reading(self, value: _Value, tier: Tier) -> LetterReading:
        """The reading for `value`; a letter that was not offered is a reason."""
        if isinstance(value, InvalidReason):
            return LetterReading(letter=None, tier=tier, reason=value)
        if value not in self.letters:
            return LetterReading(letter=None, tier=tier, reason=InvalidReason.OTHER_LETTER)
        return LetterReading(letter=value, tier=tier)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Something said at one place: a position in the text, or the number of a line that a label leads."""

    at: int
    value: _Value
    alone: bool = False


def read_letter(
    text: str, *, letters: tuple[str, ...], choices: tuple[str, ...] | None = None, truncated: bool = False
) -> LetterReading:
    """The letter that `text` declares among `letters`, or why there is none.

    `choices` are the texts as shown, one behind each letter: with them a label next to another choice's text is seen
    to contradict itself, and a text that repeats one choice is read. `truncated` says that the model was cut off; it
    only changes the reason of a text in which nothing was found.
    """
    answer = words.after_reasoning(text)
    if answer is None:
        return LetterReading(letter=None, tier=Tier.REASONING, reason=InvalidReason.TRUNCATED)
    offered = _Offered(letters=letters, texts=tuple(_plain(words.clean(choice)) for choice in choices or ()))
    reading = _read(words.clean(answer), offered)
    if truncated and reading.reason in {InvalidReason.EMPTY, InvalidReason.UNREADABLE}:
        return LetterReading(letter=None, tier=reading.tier, reason=InvalidReason.TRUNCATED)
    return reading


def _plain(text: str) -> str:
    """`text` for comparing it with choices: without case, quotes and the punctuation that ends it."""
    return " ".join(text.casefold().split()).strip(' "“”«»').rstrip(' .:;,!"”»')


def _read(text: str, offered: _Offered) -> LetterReading:
    if not text:
        return LetterReading(letter=None, tier=Tier.BLANK, reason=InvalidReason.EMPTY)
    if (value := _whole(text, offered)) is not None:
        return offered.reading(value, Tier.WHOLE)
    repeated = [letter for letter, own in zip(offered.letters, offered.texts, strict=False) if own == _plain(text)]
    if len(repeated) == 1:
        return offered.reading(repeated[0], Tier.TEXT)
    if fields := words.JSON_VALUE.findall(text):
        inner = _read("".join(fields[-1]).strip(), offered)
        return LetterReading(letter=inner.letter, tier=Tier.JSON, reason=inner.reason)
    return _read_prose(words.fold(words.NEXT_QUESTION.split(text)[0]), offered)


def _whole(text: str, offered: _Offered) -> _Value | None:
    """The label that the whole text is; only here may it be in lower case."""
    if match := words.WHOLE.fullmatch(words.fold(text)):
        return match["letter"].upper()
    match = words.LABELLED.fullmatch(text)
    if match and (own := offered.owner(match["text"])) and _plain(match["text"]) in offered.texts:
        return own if own == match["letter"].upper() else InvalidReason.BOTH
    return None


def _read_prose(text: str, offered: _Offered) -> LetterReading:
    """The reading of words around letters; lines that only repeat the choices offered do not count as an answer."""
    lines, echoed = _without_echo(text.split("\n"))
    text = "\n".join(lines)
    leads = [lead for number, line in enumerate(lines) if (lead := _lead(line, number, offered))]
    declared = max(_declarations(text, offered), key=lambda place: place.at, default=None)
    if declared is not None:
        closing = leads[-1] if leads and leads[-1].at == len(lines) - 1 else declared
        # A label that ends the text on a line of its own after the declaration has to agree with it.
        agreed = declared.at > text.rfind("\n") or closing.value == declared.value
        return offered.reading(declared.value if agreed else InvalidReason.BOTH, Tier.DECLARED)
    why_not = _reason_in_words(text)
    if why_not is InvalidReason.REFUSAL:  # "A) I cannot say" is none; "A", and then a refusal to explain, is one
        leads = [lead for lead in leads if lead.alone]
    if (value := _led(leads, last=len(lines) - 1)) is not None:
        return offered.reading(value, Tier.LINE)
    if why_not is not None:
        return offered.reading(why_not, Tier.WORDS)
    if echoed:
        return offered.reading(InvalidReason.BOTH, Tier.LINE)
    return offered.reading(InvalidReason.UNREADABLE, Tier.NOTHING)


def _without_echo(lines: list[str]) -> tuple[list[str], bool]:
    """`lines` without those that list several choices one under the other, and whether there were any."""
    kept: list[str] = []
    run: dict[str, str] = {}
    echoed = False
    for line in [*lines, ""]:
        letter = _listed(line)
        if letter is None or letter in run:
            echoed = echoed or len(run) > 1
            kept += run.values() if len(run) == 1 else ()
            run = {}
        if letter is None:
            kept.append(line)
        else:
            run[letter] = line
    return kept[:-1], echoed


def _listed(line: str) -> str | None:
    """The letter of a line that gives a label with a text and takes no side."""
    match = words.LEAD.match(line)
    if match is None or not line[match.end() :].strip():
        return None
    sided = words.DENIAL.search(line) or words.VERDICT.search(line)
    return None if sided else match["letter"]


def _lead(line: str, number: int, offered: _Offered) -> _Place | None:
    """The label that leads a line, unless the line goes on to deny it."""
    match = words.LEAD.match(line)
    if match is None or _denied(rest := line[match.end() :]):
        return None
    return _Place(at=number, value=offered.value(match["letter"], rest), alone=not rest.strip())


def _led(leads: list[_Place], *, last: int) -> _Value | None:
    """What the leading labels agree on, given that the first or the last line has one."""
    values = {lead.value for lead in leads}
    if len(values) > 1:
        return InvalidReason.BOTH
    return values.pop() if values and (leads[0].at == 0 or leads[-1].at == last) else None


def _declarations(text: str, offered: _Offered) -> Iterator[_Place]:
    """Every place where words declare something, in no order."""
    for match in chain(words.DECLARATION.finditer(text), words.SHORT_DECLARATION.finditer(text)):
        hedged = match.groupdict().get("hedge") or words.SUPPOSED.search(_before(match))
        if not hedged and (value := _declared(match, text, offered)) is not None:
            yield _Place(at=match.end(), value=value)
    for match in words.VERDICT.finditer(text):
        before = _before(match)
        bare = match["letter"] and not match["close"]
        if not words.SUPPOSED.search(before) and not (bare and not words.BEFORE_VERDICT.search(before)):
            value = _group(match) or offered.value(match["letter"], text[match.end("letter") :])
            yield _Place(at=match.end(), value=value)


def _before(match: re.Match[str]) -> str:
    """The few characters before a match."""
    return match.string[max(0, match.start() - 20) : match.start()]


def _declared(match: re.Match[str], text: str, offered: _Offered) -> _Value | None:
    """What a declaration points at; None when what follows shows that it declares nothing."""
    if group := _group(match):
        return group
    letter, rest = match["letter"], text[match.end() :]
    if rest.startswith("?") or _denied(rest):
        return None
    unsafe = letter in words.PROSE_LETTERS and not match["close"] and not words.SAFE_AFTER.match(rest)
    if unsafe and offered.owner(rest) != letter:
        return None
    # After a full stop a new sentence may begin with any choice; elsewhere the text belongs to the label.
    return offered.value(letter, "" if rest.startswith(".") else rest)


def _group(match: re.Match[str]) -> InvalidReason | None:
    found = match.groupdict()
    if found.get("neither"):
        return InvalidReason.NONE
    return InvalidReason.BOTH if found.get("both") else None


def _denied(rest: str) -> bool:
    """Whether the clause that follows a label says that it is wrong."""
    return words.DENIAL.search(words.CLAUSE_END.split(rest, maxsplit=1)[0]) is not None


def _reason_in_words(text: str) -> InvalidReason | None:
    if words.SAYS_NEITHER.search(text):
        return InvalidReason.NONE
    if words.SAYS_NO.search(text):
        return InvalidReason.REFUSAL
    return InvalidReason.BOTH if words.SAYS_BOTH.search(text) else None
