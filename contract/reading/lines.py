"""Lines that a label leads: an answer, a repeated choice, or a verdict in a list of them."""

import re
from dataclasses import dataclass

from contract.answers import InvalidReason
from contract.reading.declarations import Declarations
from contract.reading.lexicon import Lexicon
from contract.reading.offered import Offered, Place, Value
from contract.reading.sentences import Sentences


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Reads lines with the patterns of one lexicon."""

    lexicon: Lexicon
    sentences: Sentences
    declarations: Declarations

    def without_echo(self, lines: list[str], offered: Offered) -> tuple[list[str], bool]:
        """`lines` without those that list several choices one under the other, and whether there were any."""
        kept: list[str] = []
        run: dict[str, str] = {}
        echoed = False
        for line in [*lines, ""]:
            letter = self._listed(line, offered)
            if letter is None or letter in run:
                echoed = echoed or len(run) > 1
                kept += run.values() if len(run) == 1 else ()
                run = {}
            if letter is None:
                kept.append(line)
            else:
                run[letter] = line
        return kept[:-1], echoed

    def _listed(self, line: str, offered: Offered) -> str | None:
        """The letter of a line that gives a label with a text and takes no side."""
        match = self.lexicon.lead.match(line)
        if match is None or not (rest := line[match.end() :]).strip():
            return None
        own = offered.after_own(match["letter"], rest)
        sided = self.declarations.denied(own) or self.sentences.verdict.search(line) or self.lexicon.side.search(own)
        return None if sided else match["letter"]

    def leads(self, lines: list[str], offered: Offered, *, titled: bool) -> list[Place]:
        """The labels that lead lines, but none that a list goes on with after it denied one: no answer is left over.

        A choice alone on the first line is one too, unless the text is `titled`: a list follows it.
        """
        lines = ["", *lines[1:]] if titled else lines
        found = [lead for number, line in enumerate(lines) if (lead := self._lead(line, number, offered))]
        first_denied = next((lead.at for lead in found if lead.denied), len(lines))
        return [lead for lead in found if not lead.denied and (lead.at < first_denied or lead.ended)]

    def _lead(self, line: str, number: int, offered: Offered) -> Place | None:
        match = self.lexicon.lead.match(line)
        if match is None:
            named = offered.named(line)
            return Place(at=number, value=named, firm=True) if named and len(line) > 1 else None
        letter, rest = match["letter"], line[match.end() :]
        own = offered.after_own(letter, rest)
        side = self.lexicon.side.search(own)
        if self.declarations.denied(own) or (side and _wrong(side)):
            return Place(at=number, value=letter, denied=True)
        others = [other for other in self.sentences.other_label.finditer(own) if other["letter"] != letter]
        if any(not self.declarations.denied(own[other.end() :]) for other in others):
            return Place(at=number, value=InvalidReason.BOTH)
        ended = not rest.strip(" .!")
        return Place(at=number, value=offered.value(letter, rest), firm=own != rest or ended, ended=ended)

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
    """What the leading labels agree on, given that the first line has one, or line `last`."""
    values = {lead.value for lead in leads}
    if len(values) > 1:
        return InvalidReason.BOTH
    return values.pop() if values and (leads[0].at == 0 or leads[-1].at == last) else None


def _wrong(side: re.Match[str]) -> bool:
    return bool(side["wrong"] or side["cross"])
