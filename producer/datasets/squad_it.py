"""SQuAD 1.1 as items: the paragraph, the question, its first gold answer, and a wrong answer from elsewhere.

The right choice is the first gold answer that has any text, as it is written; it stands first in canonical order. Where
all gold answers are blank (one question of the SQuAD-it test file, d250), no choice is right: both are wrong answers,
and the report counts the item as one without a right choice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contract.errors import InputError
from contract.items import Item, canonical_digest
from contract.study import Dataset
from producer.datasets.json_tree import Node, read_tree
from producer.datasets.stand_ins import Neighbours, Question
from producer.datasets.wrong_answers import WrongAnswers

LANGUAGE = "it"
"""The language of the questions unless the study file says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question and where it stands in the file."""

    node: Node
    text: str
    context: str
    question: Question

    @property
    def place(self) -> str:
        """Where it stands, as messages name it."""
        return self.node.place

    def refuse(self, field: str, problem: str) -> InputError:
        """The error about this question; the choices are no field of the file, so they are told by its place."""
        return self.node.refuse("" if field == "choices" else field, problem)


def squad_items(dataset: Dataset, path: Path, wrong_answers: Path | None) -> Iterator[tuple[Item, Asked]]:
    """The items in file order, each with its place in the file."""
    asked = list(read_questions(path))
    given = None if wrong_answers is None else WrongAnswers.read(wrong_answers)
    neighbours = Neighbours.of([one.question for one in asked])
    for one in asked:
        right = one.question.answers[:1]
        wanted = 2 - len(right)
        try:
            if given is not None:
                wrong = given.to(one.question, wanted)
            else:
                seed = 0 if dataset.stand_ins is None else dataset.stand_ins.seed
                wrong = tuple(stand_in.text for stand_in in neighbours.stand_ins(one.question, seed, wanted))
        except LookupError as error:
            raise one.refuse("choices", str(error.args[0])) from None
        yield _item(dataset, one, (*right, *wrong)), one


def squad_right_answers(dataset: Dataset, path: Path) -> Iterator[tuple[Item, Asked]]:
    """The items in file order as those have them that are to get wrong answers: the right ones as choices.

    Of equal ones the first stands. Where all are blank, the one choice is empty, and no choice is right.
    """
    for one in read_questions(path):
        yield _item(dataset, one, tuple(dict.fromkeys(one.question.answers)) or ("",)), one


def _item(dataset: Dataset, one: Asked, choices: tuple[str, ...]) -> Item:
    return Item(
        dataset=dataset.name,
        source_id=one.question.id,
        question=one.text,
        choices=choices,
        target=0 if one.question.answers else None,
        context=one.context,
        cluster=one.question.paragraph,
        language=dataset.language or LANGUAGE,
    )


def read_questions(path: Path) -> Iterator[Asked]:
    """The questions of a SQuAD 1.1 file; a paragraph is known by its text, so that one that stands twice is one."""
    for entry in read_tree(path).entries("data"):
        title = entry.text("title")
        for paragraph in entry.entries("paragraphs"):
            context = paragraph.text("context")
            digest = canonical_digest(context)[:16]
            for node in paragraph.entries("qas"):
                yield _asked(node, context=context, title=title, paragraph=digest)


def _asked(node: Node, *, context: str, title: str, paragraph: str) -> Asked:
    source_id = node.text("id")
    node = Node(path=node.path, value=node.value, place=node.place, named=f"question {source_id}: ")
    answers = node.entries("answers")
    if not answers:
        raise node.refuse("answers", "has no answer; take the question out, or give it the right one")
    texts = tuple(text for answer in answers if (text := answer.maybe_blank("text")) is not None)
    question = Question(id=source_id, title=title, paragraph=paragraph, answers=texts)
    return Asked(node=node, text=node.text("question"), context=context, question=question)
