"""SQuAD-it-2 as its authors lay it out: id, context, question, correct_answer, wrong_answer, second_wrong_answer.

Source: "Positional Bias in Binary Question Answering", section 3.1. low: context, right against wrong answer. medium:
the same two without the context. high: two wrong answers without the context, of which none is right.
"""

from typing import Literal

from contract.items import Item, canonical_digest
from producer.datasets.rows import Row
from producer.datasets.squad_it import LANGUAGE


def squad_it_2_item(dataset: str, setting: Literal["low", "medium", "high"], row: Row) -> Item:
    """The item that `row` makes in `setting`; questions about one paragraph are its cluster.

    A right answer without words, as SQuAD-it's d250 has, is shown as it stands, and no choice is right.
    """
    context = row.text("context")
    wrong = row.text("wrong_answer")
    right = None if setting == "high" else _right(row)
    return Item(
        dataset=dataset,
        source_id=row.text("id"),
        question=row.text("question"),
        choices=(wrong, row.text("second_wrong_answer")) if right is None else (right, wrong),
        target=0 if right else None,
        context=context if setting == "low" else None,
        cluster=canonical_digest(context)[:16],
        language=LANGUAGE,
    )


def _right(row: Row) -> str:
    written = row.values.get("correct_answer")
    return "" if isinstance(written, str) and not written.strip() else row.text("correct_answer")
