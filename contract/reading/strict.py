"""The reading "strict": which letter a completion declares, by ordered and named tiers; it never guesses.

The first tier that has a say decides; among declarations the last one wins. What can be read in two ways is invalid,
with a reason, and so is a text that declares nothing: there is no falling back to the first letter that occurs.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from contract.answers import InvalidReason, LetterReading
from contract.reading.declarations import Declarations
from contract.reading.fields import Fields
from contract.reading.languages import LANGUAGES, Language
from contract.reading.lexicon import BOTH, Lexicon
from contract.reading.lines import Lines, led
from contract.reading.markup import DECLARES, after_reasoning, clean, normal
from contract.reading.offered import Offered, Place, Value
from contract.reading.sentences import Sentences

STRICT = "strict"
STRICT_VERSION = 2

LONGEST = 20_000
"""Of a text that is longer, in characters without reasoning and markup, only the end is read."""


# A letter that begins a sentence where the text is cut off may be the beginning of a word.
_OPEN_END = re.compile(r"(?:(?<![:=])\n|(?<=[.!?]) )[A-Z]\Z")


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
    offered = Offered(letters=letters, choices=choices or ())
    reading = _reader(known, home).read(_end_of(clean(answer)), offered, cut_off=cut_off)
    if cut_off and reading.reason in {InvalidReason.EMPTY, InvalidReason.UNREADABLE}:
        return LetterReading(letter=None, tier=reading.tier, reason=InvalidReason.TRUNCATED)
    return reading


@cache
def _reader(known: tuple[Language, ...], home: str | None) -> "_Reader":
    home = home if any(language.therefore_at_home for language in known if language.code == home) else None
    lexicon = Lexicon(known, home)
    sentences = Sentences(lexicon)
    found = Declarations(lexicon=lexicon, sentences=sentences)
    lines = Lines(lexicon=lexicon, sentences=sentences, declarations=found)
    return _Reader(lexicon=lexicon, sentences=sentences, declarations=found, lines=lines, fields=Fields(lexicon))


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
    lines: Lines
    fields: Fields

    def read(self, text: str, offered: Offered, *, cut_off: bool = False) -> LetterReading:
        if not text:
            return LetterReading(letter=None, tier=Tier.BLANK, reason=InvalidReason.EMPTY)
        if text in offered.letters:
            return offered.reading(text, Tier.WHOLE)
        if (value := self._whole(text, offered)) is not None:
            return offered.reading(value, Tier.WHOLE)
        if (letter := offered.named(text)) is not None:
            return offered.reading(letter, Tier.TEXT)
        if self.fields.is_object(text) and (value := self._object(text, offered)) is not None:
            return offered.reading(value, Tier.JSON)
        if not cut_off and (match := self.lexicon.whole_lower.fullmatch(text)):
            return offered.reading(match["letter"].upper(), Tier.DECLARED)
        if cut_off:
            text = _OPEN_END.sub("", text)
        text = self.lexicon.fold(self._this_question(self._without_objects(text, offered)))
        return self._prose(text, offered, cut_off=cut_off)

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
            return f"\n{BOTH}\n" if value is InvalidReason.BOTH else found
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

    def _prose(self, text: str, offered: Offered, *, cut_off: bool) -> LetterReading:
        """The reading of words around letters; lines that only repeat the choices offered do not count as an answer."""
        every = text.split("\n")
        lines, echoed = self.lines.without_echo(every, offered)
        text = "\n".join(lines)
        leads = self.lines.leads(lines, offered, titled=echoed and offered.named(every[0]) is not None)
        declared = max(self.declarations.find(text, offered), key=lambda place: place.at, default=None)
        if declared is not None:
            closing = leads[-1] if leads and leads[-1].at == len(lines) - 1 else declared
            return offered.reading(*_closed(declared, closing, last_line=text.rfind("\n")))
        if (value := self.lines.verdicts(every)) is not None:
            return offered.reading(value, Tier.LIST)
        why_not = self._reason_in_words(text)
        if why_not is InvalidReason.REFUSAL:  # "A) I cannot say" is none; "A", and then a refusal to explain, is one
            leads = [lead for lead in leads if lead.firm]
        # Where a text is cut off, a label with a text on its last line may begin a list.
        closes = not cut_off or (leads and leads[-1].ended)
        if (value := led(leads, last=len(lines) - 1 if closes else 0)) is not None:
            return offered.reading(value, Tier.LINE)
        if why_not is not None:
            return offered.reading(why_not, Tier.WORDS)
        if echoed:
            return offered.reading(InvalidReason.BOTH, Tier.LINE)
        return offered.reading(InvalidReason.UNREADABLE, Tier.NOTHING)

    def _reason_in_words(self, text: str) -> InvalidReason | None:
        if self.sentences.says_neither.search(text):
            return InvalidReason.NONE
        if self.sentences.says_no.search(text):
            return InvalidReason.REFUSAL
        return InvalidReason.BOTH if self.sentences.says_both.search(text) else None


def _closed(declared: Place, closing: Place, *, last_line: int) -> tuple[Value, Tier]:
    """What a declaration and the label that leads the last line say together: after it, the label has to agree.

    Only after "none is correct" a label of its own is the choice that was asked for all the same.
    """
    if declared.at > last_line or closing.value == declared.value:
        return declared.value, Tier.DECLARED
    if declared.value is InvalidReason.NONE and closing.firm:
        return closing.value, Tier.LINE
    return InvalidReason.BOTH, Tier.DECLARED
