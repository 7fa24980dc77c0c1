"""Where a text declares a letter, and whether what stands around it leaves the declaration its weight."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from contract.answers import InvalidReason
from contract.reading.lexicon import Lexicon
from contract.reading.offered import Offered, Place, Value
from contract.reading.sentences import NEAR, Sentences

HEAD = 1_000
"""How many characters before a label its declaration may begin; no pattern reaches farther."""

_ENDED = re.compile(r"[\"')\]]*\s*(?:[.!;\n]|$)")


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """Finds declarations with the patterns of one lexicon."""

    lexicon: Lexicon
    sentences: Sentences

    def find(self, text: str, offered: Offered) -> Iterator[Place]:
        """Every place where words declare something, in no order."""
        yield from self._quoted(text, offered)
        anchor = self.sentences.anchor.search(text)
        if anchor is None:
            return
        start = max(0, anchor.start() - HEAD)
        declarations, shorts = self.sentences.declaration, self.sentences.short
        for match in chain(declarations.finditer(text, start), shorts.finditer(text, start)):
            if not self._weightless(match) and (value := self._declared(match, offered)) is not None:
                yield Place(at=match.end(), value=value)
        for match in self.sentences.verdict.finditer(text, anchor.start()):
            bare = match["letter"] and not match["close"]
            before = self.sentences.also_before.sub("", _before(match))
            misplaced = bare and not self.sentences.before_verdict.search(before)
            if not misplaced and not self._weightless(match):
                yield Place(at=match.end(), value=self._judged(match, offered))

    def denied(self, rest: str) -> bool:
        """Whether the clause that follows a label says that it is wrong."""
        return self.sentences.denial.search(self.sentences.clause_end.split(rest, maxsplit=1)[0]) is not None

    def _quoted(self, text: str, offered: Offered) -> Iterator[Place]:
        """Declarations that name a choice by its text and end the sentence with it."""
        said = text.casefold()
        if not any(own and own in said for own in offered.texts):
            return
        for match in self.sentences.quoted.finditer(text):
            rest = text[match.end() : match.end() + offered.reach]
            letter = offered.owner(rest)
            own = offered.texts[offered.letters.index(letter)] if letter else ""
            ended = _ENDED.match(rest, len(own))
            if letter and len(own) > 1 and ended and not self._weightless(match):
                yield Place(at=match.end() + len(own), value=letter)

    def _declared(self, match: re.Match[str], offered: Offered) -> Value | None:
        """What a declaration points at; None when what follows shows that it declares nothing."""
        if group := _group(match):
            return group
        letter, rest = match["letter"], match.string[match.end() : match.end() + offered.reach]
        line = rest.split("\n", maxsplit=1)[0]
        if rest.startswith("?") or self.sentences.conditional.match(line):
            return None
        own = offered.after_own(letter, line)
        if self.denied(own):
            return None
        if not match["close"] and not self.lexicon.safe.match(rest) and own == line:
            return None
        # After a full stop a new sentence may begin with any choice; elsewhere the text belongs to the label.
        return offered.value(letter, "" if rest.startswith(".") else line)

    def _judged(self, match: re.Match[str], offered: Offered) -> Value:
        if group := _group(match):
            return group
        besides = match["also"] or match["too"] or match["besides"]
        if besides or self.sentences.also_before.search(_before(match)):
            return InvalidReason.BOTH
        rest = match.string[match.end("letter") : match.end("letter") + offered.reach]
        return offered.value(match["letter"], rest.split("\n", maxsplit=1)[0])

    def _weightless(self, match: re.Match[str]) -> bool:
        """Whether the words before a declaration make it say something else, or nothing."""
        said = match.groupdict()
        before = _before(match)
        clause = self.sentences.clause_start.split(before)[-1]
        doubt = self.sentences.doubted.search(clause)
        # "If I have to choose, B" is a choice; "if I choose B" is none.
        if said.get("denied") or (doubt and not (doubt["if"] and re.search(r"[,:]", match[0]))):
            return True
        claim = self.sentences.claimed.search(clause)
        if (claim and not claim["assured"]) or self.sentences.conceded.search(clause):
            return True
        return bool(self.sentences.would.search(match[0]) and self.sentences.unreal.search(before))


def _before(match: re.Match[str]) -> str:
    """The characters before a match, as many as may bear on it."""
    return match.string[max(0, match.start() - NEAR) : match.start()]


def _group(match: re.Match[str]) -> InvalidReason | None:
    found = match.groupdict()
    if found.get("neither"):
        return InvalidReason.NONE
    return InvalidReason.BOTH if found.get("both") else None
