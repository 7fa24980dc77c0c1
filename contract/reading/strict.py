"""The reading "strict": which letter a completion declares, by ordered and named tiers; it never guesses.

The first tier that has a say decides; among declarations the last one wins. What can be read in two ways is invalid,
with a reason, and so is a text that declares nothing: there is no falling back to the first letter that occurs.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from contract.answers import InvalidReason, LetterReading
from contract.reading.declarations import Declarations, Place
from contract.reading.fields import Fields
from contract.reading.languages import LANGUAGES, Language
from contract.reading.lexicon import Lexicon
from contract.reading.markup import DECLARES, after_reasoning, clean, normal
from contract.reading.offered import Offered, Value
from contract.reading.sentences import Sentences

STRICT = "strict"
STRICT_VERSION = 2

LONGEST = 20_000
"""Of a text that is longer, in characters without reasoning and markup, only the end is read."""


class Tier(StrEnum):
    """The rules in the order in which they are tried; the one that decided is stored with the answer."""

    REASONING = "reasoning"  # reasoning that never ends
    BLANK = "blank"  # nothing was written
    WHOLE = "whole"  # the completion is a label, or a label with the text of its choice
    TEXT = "text"  # the completion is the text of one choice
    JSON = "json"  # an answer field of a JSON object
    DECLARED = "declared"  # words that declare: "the answer is B", "B is correct", "quindi B"
    LIST = "list"  # the choices with a verdict on each
    LINE = "line"  # the first or last line is led by a label
    WORDS = "words"  # says in words why there is no answer
    NOTHING = "nothing"  # no rule applied


def read_letter(
    text: str,
    *,
    letters: tuple[str, ...],
    choices: tuple[str, ...] | None = None,
    cut_off: bool = False,
    language: str | None = None,
    known: tuple[Language, ...] = LANGUAGES,
) -> LetterReading:
    """The letter that `text` declares among `letters`, or why there is none.

    `choices` are the texts as shown, one behind each letter: with them a label next to another choice's text is seen
    to contradict itself, and a text that names one choice is read. `cut_off` says that the model did not end the text;
    it only changes the reason of a text in which nothing was found. `language` is the item's; `known` are the
    languages whose words are tried.
    """
    answer = after_reasoning(normal(text))
    if answer is None:
        return LetterReading(letter=None, tier=Tier.REASONING, reason=InvalidReason.TRUNCATED)
    home = language.partition("-")[0].lower() if language else None
    reading = _reader(known, home).read(_end_of(clean(answer)), Offered.of(letters, choices), cut_off=cut_off)
    if cut_off and reading.reason in {InvalidReason.EMPTY, InvalidReason.UNREADABLE}:
        return LetterReading(letter=None, tier=reading.tier, reason=InvalidReason.TRUNCATED)
    return reading


@cache
def _reader(known: tuple[Language, ...], home: str | None) -> "_Reader":
    home = home if any(language.therefore_at_home for language in known if language.code == home) else None
    lexicon = Lexicon(known, home)
    sentences = Sentences(lexicon)
    found = Declarations(lexicon=lexicon, sentences=sentences)
    return _Reader(lexicon=lexicon, sentences=sentences, declarations=found, fields=Fields(lexicon))


def _end_of(text: str) -> str:
    """All of `text`, or so many lines at its end as are read, after a line that stands for the rest."""
    if len(text) <= LONGEST:
        return text
    return "...\n" + text[-LONGEST:].partition("\n")[2] if "\n" in text[-LONGEST:] else "... " + text[-LONGEST:]


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """The tiers, with the words of some languages."""

    lexicon: Lexicon
    sentences: Sentences
    declarations: Declarations
    fields: Fields

    def read(self, text: str, offered: Offered, *, cut_off: bool = False) -> LetterReading:
        if not text:
            return LetterReading(letter=None, tier=Tier.BLANK, reason=InvalidReason.EMPTY)
        if (value := self._whole(text, offered)) is not None:
            return offered.reading(value, Tier.WHOLE)
        if (letter := offered.named(text)) is not None:
            return offered.reading(letter, Tier.TEXT)
        if self.fields.is_object(text) and (value := self._object(text, offered)) is not None:
            return offered.reading(value, Tier.JSON)
        if not cut_off and (match := self.lexicon.whole_lower.fullmatch(text)):
            return offered.reading(match["letter"].upper(), Tier.DECLARED)
        return self._prose(self.lexicon.fold(self._this_question(self._without_objects(text, offered))), offered)

    def _whole(self, text: str, offered: Offered) -> Value | None:
        """The label that the whole text is; only here may it be in lower case."""
        if match := self.lexicon.whole.fullmatch(self.lexicon.fold(text)):
            return match["letter"].upper()
        match = self.lexicon.labelled.fullmatch(text)
        if match and (own := offered.named(match["text"])):
            return own if own == match["letter"].upper() else InvalidReason.BOTH
        return None

    def _object(self, text: str, offered: Offered) -> Value | None:
        """What the answer fields of a JSON object agree on; None for a whole object that has none."""
        fields = self.fields.values(text)
        if not fields:
            return InvalidReason.TRUNCATED if "}" not in text else None
        read = [self.read(value.strip(), offered) for value in fields]
        said = {one.letter or one.reason for one in read} - {InvalidReason.UNREADABLE, InvalidReason.EMPTY}
        if len(said) > 1:
            return InvalidReason.BOTH
        return said.pop() if said else InvalidReason.UNREADABLE

    def _without_objects(self, text: str, offered: Offered) -> str:
        """`text` with each object in it that has an answer field turned into the declaration that it is."""
        objects = self.fields.objects_in(text)
        if objects is None:
            return text
        return objects.sub(lambda found: self._as_declaration(found[0], offered), text)

    def _as_declaration(self, found: str, offered: Offered) -> str:
        value = self._object(found, offered)
        if isinstance(value, InvalidReason) or value is None:
            return f"\n{value}\n" if value is InvalidReason.BOTH else found
        return f"\n{DECLARES}: {value}.\n"

    def _this_question(self, text: str) -> str:
        """`text` up to where a small model goes on with a next question; a prompt that it repeats first is kept."""
        seen: set[str] = set()
        for heading in self.lexicon.heading.finditer(text):
            word = heading["word"].casefold()
            if word in seen or (not seen and heading.start() > 0):
                return text[: heading.start()]
            seen.add(word)
        return text

    def _prose(self, text: str, offered: Offered) -> LetterReading:
        """The reading of words around letters; lines that only repeat the choices offered do not count as an answer."""
        every = text.split("\n")
        lines, echoed = self._without_echo(every)
        text = "\n".join(lines)
        leads = [lead for number, line in enumerate(lines) if (lead := self._lead(line, number, offered))]
        declared = max(self.declarations.find(text, offered), key=lambda place: place.at, default=None)
        if declared is not None:
            closing = leads[-1] if leads and leads[-1].at == len(lines) - 1 else declared
            # A label that ends the text on a line of its own after the declaration has to agree with it.
            agreed = declared.at > text.rfind("\n") or closing.value == declared.value
            return offered.reading(declared.value if agreed else InvalidReason.BOTH, Tier.DECLARED)
        if (value := self._verdicts(every)) is not None:
            return offered.reading(value, Tier.LIST)
        why_not = self._reason_in_words(text)
        if why_not is InvalidReason.REFUSAL:  # "A) I cannot say" is none; "A", and then a refusal to explain, is one
            leads = [lead for lead in leads if lead.firm]
        if (value := _led(leads, last=len(lines) - 1)) is not None:
            return offered.reading(value, Tier.LINE)
        if why_not is not None:
            return offered.reading(why_not, Tier.WORDS)
        if echoed:
            return offered.reading(InvalidReason.BOTH, Tier.LINE)
        return offered.reading(InvalidReason.UNREADABLE, Tier.NOTHING)

    def _without_echo(self, lines: list[str]) -> tuple[list[str], bool]:
        """`lines` without those that list several choices one under the other, and whether there were any."""
        kept: list[str] = []
        run: dict[str, str] = {}
        echoed = False
        for line in [*lines, ""]:
            letter = self._listed(line)
            if letter is None or letter in run:
                echoed = echoed or len(run) > 1
                kept += run.values() if len(run) == 1 else ()
                run = {}
            if letter is None:
                kept.append(line)
            else:
                run[letter] = line
        return kept[:-1], echoed

    def _listed(self, line: str) -> str | None:
        """The letter of a line that gives a label with a text and takes no side."""
        match = self.lexicon.lead.match(line)
        if match is None or not (rest := line[match.end() :]).strip():
            return None
        sided = self.declarations.denied(rest) or self.sentences.verdict.search(line) or self.lexicon.side.search(rest)
        return None if sided else match["letter"]

    def _lead(self, line: str, number: int, offered: Offered) -> Place | None:
        """The label that leads a line, unless the line goes on to deny it."""
        match = self.lexicon.lead.match(line)
        if match is None:
            return None
        letter, rest = match["letter"], line[match.end() :]
        own = offered.after_own(letter, rest)
        side = self.lexicon.side.search(own)
        if self.declarations.denied(own) or (side and _wrong(side)):
            return None
        others = [other for other in self.sentences.other_label.finditer(own) if other["letter"] != letter]
        if any(not self.declarations.denied(own[other.end() :]) for other in others):
            return Place(at=number, value=InvalidReason.BOTH)
        return Place(at=number, value=offered.value(letter, rest), firm=own != rest or not rest.strip())

    def _verdicts(self, lines: list[str]) -> Value | None:
        """The label that a list of at least two calls right, if it calls one right."""
        sides: dict[str, bool] = {}
        for line in lines:
            match = self.lexicon.lead.match(line)
            side = self.lexicon.side.search(line[match.end() :]) if match else None
            if match and side:
                sides[match["letter"]] = not _wrong(side)
        right = [letter for letter, holds in sides.items() if holds]
        if len(sides) < 2 or not right:
            return None
        return right[0] if len(right) == 1 else InvalidReason.BOTH

    def _reason_in_words(self, text: str) -> InvalidReason | None:
        if self.sentences.says_neither.search(text):
            return InvalidReason.NONE
        if self.sentences.says_no.search(text):
            return InvalidReason.REFUSAL
        return InvalidReason.BOTH if self.sentences.says_both.search(text) else None


def _led(leads: list[Place], *, last: int) -> Value | None:
    """What the leading labels agree on, given that the first or the last line has one."""
    values = {lead.value for lead in leads}
    if len(values) > 1:
        return InvalidReason.BOTH
    return values.pop() if values and (leads[0].at == 0 or leads[-1].at == last) else None


def _wrong(side: re.Match[str]) -> bool:
    return bool(side["wrong"] or side["cross"])
