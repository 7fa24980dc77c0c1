"""WebGPT comparisons as OpenAI lays them out: a question and two answers, each with the score that people gave it.

As JSON Lines, or as the Parquet file that the Hugging Face hub makes of them.

Pairs with equal scores are left out, as in "Positional Bias in Binary Question Answering", section 3.1: neither is
preferred. The preferred answer may stand second in the file; in canonical order it stands first. Some answers are
empty; they were compared like the others and are shown as they stand.
"""

from collections.abc import Iterator
from pathlib import Path

from contract.items import Item, canonical_digest
from producer.datasets.json_tree import Node, read_trees

LANGUAGE = "en"


def webgpt_items(dataset: str, path: Path) -> Iterator[tuple[Item, Node]]:
    """The items in file order, each with its row; comparisons of one question are its cluster.

    A question is compared many times, so an item is known by the number of its row.
    """
    for row in read_trees(path):
        scores = row.number("score_0"), row.number("score_1")
        if scores[0] == scores[1]:
            continue
        answers = row.maybe_blank("answer_0") or "", row.maybe_blank("answer_1") or ""
        question = row.under("question").text("full_text")
        item = Item(
            dataset=dataset,
            source_id=f"row-{row.row}",
            question=question,
            choices=answers if scores[0] > scores[1] else answers[::-1],
            target=0,
            cluster=canonical_digest(question)[:16],
            language=LANGUAGE,
        )
        yield item, row
