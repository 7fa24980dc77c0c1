"""The sentence patterns of the reading "strict": what declares, denies and excuses, from the words of a lexicon."""

import re
from functools import cached_property

from contract.reading.lexicon import BOTH, NEITHER, Lexicon
from contract.reading.markup import DECLARES

NEAR = 80
"""How many characters before a declaration are searched for what takes its weight."""


class Sentences:
    """The patterns for the languages of one lexicon; nothing is compiled before it is used."""

    def __init__(self, lexicon: Lexicon) -> None:
        """The patterns for the words of `lexicon`."""
        self._lexicon = lexicon
        self._words = lexicon.words

    # -- parts of patterns --------------------------------------------------------------------------------------------

    @cached_property
    def _is(self) -> str:
        return self._words("is_", "are", "would_be")

    @cached_property
    def _group(self) -> str:
        both, neither = self._words("both"), self._words("neither")
        return rf"(?P<both>{BOTH}|\b(?i:{both})\b)|(?P<neither>{NEITHER}|\b(?i:{neither})\b)"

    @cached_property
    def anchor(self) -> re.Pattern[str]:
        """What every declaration points at: a label, or a word for several or none."""
        return re.compile(rf"(?<!\w)[A-Z](?!\w)|{self._group}")

    @cached_property
    def _of_them(self) -> str:
        return rf"(?:\s+(?:{BOTH}|{NEITHER}|(?i:{self._words('of_them')})\b)){{0,4}}"

    @cached_property
    def _nouns(self) -> str:
        return rf"{DECLARES}|{self._words('replies', 'labels', 'nouns', 'right')}"

    @cached_property
    def _affirmed(self) -> str:
        """What says of the label before it that it is the answer."""
        is_, also, not_ = self._words("is_", "are"), self._words("also"), self._lexicon.not_
        adverb = rf"(?:(?!(?i:{not_})\b)[\w']{{1,30}}\s+){{0,3}}?"
        right = self._words("right", "replies")
        choice = rf"(?:{self._lexicon.article}(?i:{right}|{self._words('labels')})\b)"
        end = rf"(?!\s*\?|\s+(?i:{self._words('if_')})\b)"
        return (
            rf"\s+(?:(?P<also>(?i:{also})\s+)?(?i:{is_})\s+(?P<too>(?i:{also})\s+)?{adverb}{choice}"
            rf"(?P<besides>,?\s+(?i:{also})\b)?|(?i:{self._words('affirms')})\b){end}"
        )

    # -- denying ------------------------------------------------------------------------------------------------------

    @cached_property
    def denial(self) -> re.Pattern[str]:
        """What rules out the label before it."""
        return re.compile(rf"\b{self._lexicon.denied}|✗")

    @cached_property
    def clause_end(self) -> re.Pattern[str]:
        """Where what is said about a label ends."""
        because, others = self._words("because"), self._words("others")
        return re.compile(rf"[.,;:!?\n{BOTH}]|(?<!\w)[A-Z](?!\w)|\b(?i:{because}|{others})\b")

    @cached_property
    def clause_start(self) -> re.Pattern[str]:
        """Where the clause of a declaration begins."""
        return re.compile(rf"[.,;:!?()\n]|\b(?i:{self._lexicon.therefore})\b")

    @cached_property
    def doubted(self) -> re.Pattern[str]:
        """What takes the weight from a declaration right after it, within its clause."""
        if_, apart = self._words("if_"), self._words("apart")
        # Another label in between has taken the doubt.
        doubt = rf"\b(?i:{self._words('doubts')})(?:\s+(?!{self._lexicon.other})\S+){{0,3}}"
        return re.compile(rf"(?:{doubt}|(?P<if>\b(?i:{if_})(?:\s+\S+){{0,3}})|\b(?i:{apart}))\s*$")

    @cached_property
    def claimed(self) -> re.Pattern[str]:
        """A clause that somebody may hold true or not, up to a declaration; `assured` if it is held true here."""
        assured = rf"(?P<assured>\b(?i:{self._words('assured')})\b(?:\s+\S+){{0,2}}?\s+)?"
        return re.compile(rf"{assured}\b(?i:{self._words('that')})\s+{self._lexicon.article}$")

    @cached_property
    def conceded(self) -> re.Pattern[str]:
        """A concession in the clause of a declaration."""
        return re.compile(rf"\b(?i:{self._words('concedes')})\b")

    @cached_property
    def unreal(self) -> re.Pattern[str]:
        """A condition in the same sentence; one that only says that somebody has to answer is none."""
        forced = self._words("forced")
        return re.compile(rf"\b(?i:{self._words('if_')})\s+(?!(?i:{forced})\b)[^.!?;\n]*$")

    @cached_property
    def would(self) -> re.Pattern[str]:
        """The conditional, within a declaration."""
        return re.compile(rf"\b(?i:{self._words('would_be')})\b")

    @cached_property
    def conditional(self) -> re.Pattern[str]:
        """A condition right after a declaration."""
        return re.compile(rf"\s*,?\s*(?i:only\s+)?(?i:{self._words('if_')})\b")

    @cached_property
    def other_label(self) -> re.Pattern[str]:
        """A second label after the one that leads a line: "A: 30 %, B: 70 %"."""
        return re.compile(r"(?:^\s*|[.;,:!?(]\s+)(?P<letter>[A-Z])(?:\)|[:=]|\.(?=\s|$)|\s*$)")

    # -- declaring ----------------------------------------------------------------------------------------------------

    @cached_property
    def verdict(self) -> re.Pattern[str]:
        """ "B is correct", "A) Anna è la risposta giusta", "none of the answers is right"."""
        own_text = rf"(?:\s+(?:(?!\b(?i:{self._lexicon.not_})\b|\b[A-Z]\))[^.,;:\n]){{1,60}}?)?"
        label = rf"{self._lexicon.label}(?(close){own_text})"
        return re.compile(rf"(?:{label}|(?:{self._group}){self._of_them}){self._affirmed}")

    @cached_property
    def before_verdict(self) -> re.Pattern[str]:
        """What a bare letter may follow to be the subject of a verdict: "Plan B is better" declares nothing."""
        before = self._words("before", "therefore", "because", "labels", "replies")
        article = rf"\b(?i:{self._words('articles')})(?:\s+|(?<=')\s?)"
        return re.compile(rf"(?:^|[.,;:!?\n(]\s*|\b(?i:{before})\s+|{article})$")

    @cached_property
    def also_before(self) -> re.Pattern[str]:
        """What makes a verdict on the label after it hold beside another one."""
        return re.compile(rf"\b(?i:{self._words('also')})\s+$")

    @cached_property
    def _glue(self) -> str:
        return rf"\s*,?\s*(?:(?i:{self._words('between')})(?:[,:]?\s+|(?<=')\s?)){{0,3}}[\"'(\[]*\s*"

    @cached_property
    def _link(self) -> str:
        return rf"(?:[:=→]|->|'s\s|\s(?i:{self._words('is_', 'are', 'would_be', 'to_be')})(?![\w']))"

    @cached_property
    def _noun(self) -> str:
        """A noun with what may stand between it and its link: "the correct answer to the question is"."""
        lexicon, if_ = self._lexicon, self._words("if_")
        denied = rf"(?P<denied>\b(?i:{lexicon.not_}|{self._words('others')})\s+)?"
        word = rf"\s+(?!(?i:{lexicon.not_}|{if_})\b|{lexicon.other})[\w']{{1,40}}"
        filler = rf"(?:{word}){{0,6}}?(?:,(?:{word}){{1,6}},)?"
        return rf"{denied}\b(?i:{self._nouns})[\"']?{filler}\s*{self._link}"

    @cached_property
    def declaration(self) -> re.Pattern[str]:
        """ "The correct answer to the question is A", "Risposta: B", "Scelgo la B"."""
        group = rf"(?:{self._group}){self._of_them}(?=\s*(?:[.,;:!?\")\n]|$|\b(?i:{self._is})\b))"
        return re.compile(
            rf"(?:{self._noun}|\b(?i:{self._words('chooses')})\b[,:]?){self._glue}(?:{self._lexicon.label}|{group})"
        )

    @cached_property
    def quoted(self) -> re.Pattern[str]:
        """A noun with its link, before the text of a choice: "The answer is Anna"."""
        return re.compile(rf"{self._noun}{self._glue}(?=\S)")

    @cached_property
    def short(self) -> re.Pattern[str]:
        """ "quindi B", "ma B", "no, B": so short that the letter has to end the sentence."""
        aside = rf"(?:{self._words('asides')})(?=[,.!:])"
        is_ = rf"(?:\s+(?i:{self._is}))?"
        head = rf"\b(?i:{self._lexicon.therefore}|{aside})(?!\w)[,.!:]?"
        return re.compile(rf"{head}{is_}{self._glue}{self._lexicon.label}(?=\s*(?:[.!;\n]|$))")

    # -- saying why not -----------------------------------------------------------------------------------------------

    @cached_property
    def says_neither(self) -> re.Pattern[str]:
        """That no choice fits."""
        return re.compile(rf"{NEITHER}|\b(?i:{self._words('neither')})\b")

    @cached_property
    def says_no(self) -> re.Pattern[str]:
        """That there will be no answer."""
        return re.compile(rf"\b(?i:{self._words('refusals')})\b")

    @cached_property
    def says_both(self) -> re.Pattern[str]:
        """That several choices fit."""
        return re.compile(rf"{BOTH}|\b(?i:{self._words('both')})\b")
