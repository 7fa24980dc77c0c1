"""Stand-ins: wrong answers for want of better ones, taken from the right answers of neighbouring questions.

They come from the same paragraph, then from the same title, and none equals a gold answer of the question. Which one it
is depends on the seed, the question's id and the answers at hand, and not on their order in the file.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the choice of a wrong answer depends on; `answers` are the gold answers that have any text."""

    id: str
    title: str
    paragraph: str
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A wrong answer and where it was found."""

    text: str
    origin: Literal["paragraph", "title"]


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The first gold answers of each paragraph and title: folded, with the spelling that stands for it."""

    by_paragraph: Mapping[str, Mapping[str, str]]
    by_title: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, questions: Iterable[Question]) -> "Neighbours":
        """The answers of `questions`; of two spellings of one answer, the first by code points stands."""
        by_paragraph: dict[str, dict[str, str]] = defaultdict(dict)
        by_title: dict[str, dict[str, str]] = defaultdict(dict)
        for question in questions:
            for text in question.answers[:1]:
                for pool in (by_paragraph[question.paragraph], by_title[question.title]):
                    pool[folded(text)] = min(text, pool.get(folded(text), text))
        return cls(by_paragraph=by_paragraph, by_title=by_title)

    def stand_ins(self, question: Question, seed: int, count: int = 1) -> tuple[StandIn, ...]:
        """`count` different wrong answers to `question`; LookupError if its title has not as many."""
        taken = {folded(answer) for answer in question.answers}
        found: list[StandIn] = []
        pools: tuple[tuple[Literal["paragraph", "title"], Mapping[str, str]], ...] = (
            ("paragraph", self.by_paragraph.get(question.paragraph, {})),
            ("title", self.by_title.get(question.title, {})),
        )
        for origin, pool in pools:
            fresh = sorted(pool.keys() - taken, key=lambda answer: _rank(seed, question.id, answer))
            found += [StandIn(text=pool[answer], origin=origin) for answer in fresh[: count - len(found)]]
            taken.update(fresh)
            if len(found) == count:
                return tuple(found)
        raise LookupError(
            "no stand-in: the other questions of its paragraph and title have no answer that is wrong here; "
            "take the question out, or give wrong_answers instead of stand_ins"
        )


def folded(text: str) -> str:
    """Answers that differ only in case or outer space are equal."""
    return text.strip().casefold()


def _rank(seed: int, source_id: str, answer: str) -> tuple[bytes, str]:
    text = f"{seed}\n{source_id}\n{answer}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), answer
