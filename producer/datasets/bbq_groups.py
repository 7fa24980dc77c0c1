"""The groups that BBQ's answers speak of, and which of them a question's stereotype is about.

Source: `analysis_scripts/BBQ_results_metadata.R` of BBQ, its part for categories that are not crossed with another. It
reads the stereotyped groups from the templates; a row's own `stereotyped_groups` give the same for gender identity. A
group matches whole, not as a part of another's name: the exceptions of that script for nonOld, which holds old, and for
African, which African American holds, are not needed then.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from contract.items import UNKNOWN

_CROSSED = "_x_"
_GENDERS = {"man": "M", "men": "M", "boy": "M", "woman": "F", "women": "F", "girl": "F", "girls": "F"}
_TRANS = "trans"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer: its slot in the file, its text, what `answer_info` says in short, and the group it speaks of."""

    slot: int
    text: str
    said: str
    group: str


def shown_group(written: str) -> str:
    """The group as items have it: UNKNOWN, M for man and boy, F for woman and girl, and others as they are written."""
    return UNKNOWN if written == "unknown" else _GENDERS.get(written, written)


def stereotyped_group(category: str, known: Collection[str], answers: Collection[Answer]) -> str | None:
    """The group of the one answer that is of a stereotyped group; None where none is, or more than one.

    None too in crossed categories (race and gender), whose rule needs their templates.
    """
    if _CROSSED in category:
        return None
    wanted = {_folded(_GENDERS.get(group.casefold(), group)) for group in known}
    about = [
        answer.group
        for answer in answers
        if answer.group != UNKNOWN and not wanted.isdisjoint(_names(category, answer, wanted))
    ]
    return about[0] if len(about) == 1 else None


def _names(category: str, answer: Answer, wanted: Collection[str]) -> Iterator[str]:
    """The names by which an answer may be meant; in M-Black and F-Black the gender of the name is no part of it."""
    group = _folded(answer.group)
    yield group.removeprefix("m-").removeprefix("f-")
    if category == "Nationality":
        yield _folded(answer.said)
    if group.startswith(_TRANS) and _TRANS in wanted:
        yield _TRANS


def _folded(group: str) -> str:
    """A group without case and spaces: the files write lowSES, and the templates low SES."""
    return group.casefold().replace(" ", "")
