"""The patterns of the reading "strict", made from the words of languages.

A letter counts in upper case only, so the words around it carry their own `(?i:...)`. Sentences are searched after
`markup` took away what is around the words and `fold` turned aliases ("Message 2", "(B)") into "B)" and joined letters
("A or B", "neither A nor B") into the signs for both and neither. No pattern treats one letter otherwise than another:
a reading that did would have a position bias of its own.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from string import ascii_uppercase

from contract.reading.languages import Language

END = r"(?![\w'+#&]|[-.]\w|[\u0300-\u036f])"
BOTH, NEITHER = "⊎", "∅"
"""What joined letters are folded into: signs that no language has as a word."""

_MARKS = {"right": "✓", "wrong": "✗"}
_BRACKETED = re.compile(r"[(\[{] ?([A-Z]) ?[)\]}]|\" ?([A-Z]) ?\"|(?<![\w'])'([A-Z])'(?!\w)")
# In capitals a word of one letter would be a label.
_ONE_LETTER = re.compile(r"(?:(?<=\|)|^)([a-z])(?=\||$)")
_LAST_SENTENCE = re.compile(r"(?<=[.!]) (?=[A-Z]\)?[.!]?\Z)")
_REPEATED = re.compile(rf"(?:[A-Z]\)? ?, ?){{1,25}}{BOTH}|{BOTH}(?: ?[,/&+] ?[A-Z](?:\)|{END}))+")


class Lexicon:
    """The patterns for some languages; `home` is the code of the item's language, which may have words of its own."""

    def __init__(self, languages: Sequence[Language], home: str | None) -> None:
        """Nothing is compiled before it is used."""
        self._languages = languages
        self._home = home

    def words(self, *fields: str) -> str:
        """The alternatives of `fields` over all languages; a pattern that never matches where there are none."""
        found = [text for language in self._languages for field in fields if (text := getattr(language, field))]
        return _ONE_LETTER.sub(r"(?-i:\1)", "|".join(dict.fromkeys(found))) or r"(?!)"

    @cached_property
    def article(self) -> str:
        """An optional article with what parts it from its noun."""
        return rf"(?:\b(?i:{self.words('articles')})(?:(?<=') ?| ))?"

    @cached_property
    def therefore(self) -> str:
        """Conclusions, with those that only the item's own language has."""
        home = [language.therefore_at_home for language in self._languages if language.code == self._home]
        return "|".join([self.words("therefore"), *filter(None, home)])

    @cached_property
    def not_(self) -> str:
        """Words that turn around or rule out what they belong to."""
        return self.words("not_", "wrong")

    @cached_property
    def denied(self) -> str:
        """What denies the label before it."""
        return self._denied("is_", "would_be", "are")

    def _denied(self, *is_: str) -> str:
        adverb = rf"(?:(?!(?:{self.not_})\b)\w+\s+)?"
        return rf"(?i:(?:{self.words(*is_)})\s+{adverb}(?:{self.not_})|{self.words('denies')})(?!\w)"

    @cached_property
    def _end(self) -> str:
        """What ends a bare letter."""
        word = rf"(?<=\b(?:{self.words('capitals')}))\s+(?!(?i:{self.words('because', 'is_')})\b)\w"
        return rf"{END}(?!{word})"

    @cached_property
    def other(self) -> str:
        """A capital letter that is no word of its own."""
        return rf"(?!(?:{self.words('capitals')})\b)[A-Z]\b"

    @cached_property
    def label(self) -> str:
        """A letter that stands alone, closed by a bracket or bare."""
        return rf"(?<![\w'&-])(?<!\w\.)(?P<letter>[A-Z])(?:(?P<close>\))|{self._end})"

    # -- labels -------------------------------------------------------------------------------------------------------

    @cached_property
    def _alias_letter(self) -> re.Pattern[str]:
        alias = rf"{self.article}\b(?i:{self.words('labels')}) (?P<letter>[A-Z])"
        return re.compile(rf"{alias}(?:\)|{self._end}(?={self.after_label}))")

    @cached_property
    def _reply_letter(self) -> re.Pattern[str]:
        return re.compile(rf"{self.article}\b(?i:{self.words('replies')}) ([A-Z])(?:\)|(?= ?(?:[.,;:!\n]|$)))")

    @cached_property
    def _alias_number(self) -> re.Pattern[str]:
        named = rf"{self.article}\b(?i:{self.words('labels', 'replies')}) (?:(?:#|(?i:{self.words('numbers')})) ?)?"
        return re.compile(rf"{named}(\d{{1,2}})(?:\)|{END})")

    @cached_property
    def after_label(self) -> str:
        """What shows on its right side that a bare letter is a label and not a word ("A human", "I think")."""
        words = self.words("because", "after", "is_", "are", "to_be", "would_be", "affirms", "not_", "against")
        return rf"\s*(?:$|[.,;:!)\]}}\"\n{BOTH}]|-(?!\w)|\(|=|[✓✗]|(?i:{words})(?!\w))"

    @cached_property
    def safe(self) -> re.Pattern[str]:
        """`after_label` on its own."""
        return re.compile(self.after_label)

    @cached_property
    def _joined(self) -> re.Pattern[str]:
        maybe = self.words("maybe")
        word = rf"\s?,?\s(?P<word>(?i:{self.words('joints', 'nor')}))\s(?i:(?:{self.words('joints')}|{maybe})\s)?"
        word = rf"(?:{word}|\s?[,(]?\s?(?i:{maybe})\s)"
        denied = rf"(?!\s*{self._denied('is_', 'would_be')})"
        return re.compile(
            rf"(?<![\w'&-])[A-Z]\)?(?:(?:\s?[,;]\s?[A-Z]\)?){{0,25}}{word}|\s?(?P<sign>[/&+,])\s?)[A-Z](?:\)|{self._end})"
            rf"(?(sign)(?=\s*(?:[.;:!?)\n]|$|[/&+,]\s?[A-Z]\b))|{denied}(?:(?<=\))|(?={self.after_label}|\?)))"
        )

    @cached_property
    def _inline(self) -> re.Pattern[str]:
        is_ = self.words("is_", "would_be")
        against = "".join(rf"(?<!\b{word} )" for word in self.words("against").split("|"))
        own_text = rf" ?+(?!(?i:{is_})\b)[^\n]{{0,200}}?"
        other = rf"(?i:{against})(?<!\w)(?=(?!(?P=letter))[A-Z]\))"
        return re.compile(rf"(?:^|: )(?P<letter>[A-Z])\){own_text}{other}", re.MULTILINE)

    def fold(self, text: str) -> str:
        """Aliases of labels as "B)", joined letters as the signs for both and neither, one label a line in lists."""
        text = _BRACKETED.sub(lambda match: f"{match[1] or match[2] or match[3]})", text)
        text = self._alias_letter.sub(r"\g<letter>)", text)
        text = self._reply_letter.sub(r"\1)", text)
        text = self._alias_number.sub(_letter_of_number, text)
        text = self._inline.sub(lambda match: match[0].rstrip(" ,;") + "\n", text)
        text = _LAST_SENTENCE.sub("\n", text)
        return _REPEATED.sub(BOTH, self._joined.sub(self._sign, text))

    def _sign(self, match: re.Match[str]) -> str:
        return NEITHER if match["word"] and self._nor.fullmatch(match["word"]) else BOTH

    @cached_property
    def _nor(self) -> re.Pattern[str]:
        return re.compile(rf"(?i:{self.words('nor')})")

    # -- whole texts and lines ----------------------------------------------------------------------------------------

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """A label and nothing else."""
        alias = rf"(?i:(?:{self.words('labels', 'replies')}) )?"
        is_ = rf"(?:(?i:{self.words('is_')}) )?"
        return re.compile(rf"[^\w?]*+{is_}{self.article}{alias}\(?(?P<letter>[A-Za-z])[^\w?/+&#{BOTH}{NEITHER}]*")

    @cached_property
    def labelled(self) -> re.Pattern[str]:
        """A label with the rest of the text behind it."""
        alias = rf"(?:{self.article}(?i:{self.words('labels', 'replies')}) )?"
        return re.compile(rf"{alias}[(\[\"]?(?P<letter>[A-Za-z])\"? ?[)\].:=-]\s*(?P<text>.+)", re.DOTALL)

    @cached_property
    def whole_lower(self) -> re.Pattern[str]:
        """A declaration of a lower-case letter and nothing else: "Answer: b"."""
        noun = rf"{self.article}(?i:{self.words('replies', 'labels')})"
        is_ = rf"(?:\s?[:=]|\s(?i:{self.words('is_')}))"
        alias = rf"(?i:(?:{self.words('labels')})\s)?"
        return re.compile(rf"[^\w?]*+{noun}{is_}\s{self.article}{alias}[\"'(\[]?(?P<letter>[a-z])[\"')\].!]*")

    @cached_property
    def lead(self) -> re.Pattern[str]:
        """The label that a line begins with."""
        instead = rf"(?i:(?:\w+ )?(?:{self.words('not_', 'against')})) {self.article}[A-Z](?!\w)"
        reason = rf"(?i:{self.words('because')})\b"
        delimiter = rf"\)[\"'.:]*|[.:!;](?!\S)|\s+-(?!\S)|\s*$|(?=,?\s+\(?(?:{reason}|{instead}))"
        return re.compile(rf"\s*(?:[•*-]\s+)?(?:\d{{1,2}}[.)]\s+)?[\"']?(?P<letter>[A-Z])(?:{delimiter})")

    @cached_property
    def side(self) -> re.Pattern[str]:
        """The verdict that ends a line of a list: right or wrong."""
        is_ = rf"(?:(?i:{self.words('is_', 'are')})\s)?{self.article}"
        right, wrong = self.words("right", "yes"), self.words("wrong", "no")
        reversed_ = rf"(?i:{self.words('not_')})\s(?:\w+\s)?(?i:{self.words('right')})"
        return re.compile(
            rf"(?:^|[-:(,=])\s*{is_}(?:(?P<wrong>(?i:{wrong})|{reversed_})|(?P<right>(?i:{right})))(?:\s(?i:{self._reply}))?"
            rf"\)?[.!;]?\s*$|(?P<cross>{_MARKS['wrong']})\s*$|(?P<tick>{_MARKS['right']})\s*$"
        )

    @cached_property
    def _reply(self) -> str:
        return self.words("replies", "labels")

    @cached_property
    def heading(self) -> re.Pattern[str]:
        """The line with which a part of a prompt begins."""
        return re.compile(rf"(?:^|\n)(?P<word>(?i:{self.words('headings')})) ?:")


def _letter_of_number(match: re.Match[str]) -> str:
    number = int(match[1])
    return f"{ascii_uppercase[number - 1]})" if 1 <= number <= len(ascii_uppercase) else match[0]
