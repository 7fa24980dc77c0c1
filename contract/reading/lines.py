"""Lines that a label leads: an answer, a repeated choice, or a verdict in a list of them."""

import re
from dataclasses import dataclass

from contract.answers import InvalidReason
from contract.reading.declarations import Declarations, Place
from contract.reading.lexicon import Lexicon
from contract.reading.offered import Offered, Value
from contract.reading.sentences import Sentences


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Reads lines with the patterns of one lexicon."""

    lexicon: Lexicon
    sentences: Sentences
    declarations: Declarations

    def without_echo(self, lines: list[str]) -> tuple[list[str], bool]:
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

    def lead(self, line: str, number: int, offered: Offered) -> Place | None:
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

    def verdicts(self, lines: list[str]) -> Value | None:
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


def led(leads: list[Place], *, last: int) -> Value | None:
    """What the leading labels agree on, given that the first or the last line has one."""
    values = {lead.value for lead in leads}
    if len(values) > 1:
        return InvalidReason.BOTH
    return values.pop() if values and (leads[0].at == 0 or leads[-1].at == last) else None


def _wrong(side: re.Match[str]) -> bool:
    return bool(side["wrong"] or side["cross"])
