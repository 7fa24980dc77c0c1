"""Winning Arguments, the pair task: two replies to a post, of which one changed its author's opinion.

Each line has the post and two threads, `positive` and `negative`; a message is the first comment of its thread. The
persuasive message stands first in canonical order. Source of the layout: Tan et al., Winning Arguments (2016), files
`pair_task/*.jsonlist.bz2`.
"""

from collections.abc import Iterator
from pathlib import Path

from contract.items import Item
from producer.datasets.json_tree import Node, read_trees

LANGUAGE = "en"


def winning_arguments_items(dataset: str, path: Path) -> Iterator[tuple[Item, Node]]:
    """The items in file order, each with its line; the pairs of one post are its cluster.

    The question is the post's title. A post has several pairs, so an item is known by its post and its line.
    """
    for line in read_trees(path):
        post = line.text("op_name")
        item = Item(
            dataset=dataset,
            source_id=f"{post}-{line.row}",
            question=line.text("op_title"),
            choices=(_message(line, "positive"), _message(line, "negative")),
            target=0,
            cluster=post,
            language=LANGUAGE,
        )
        yield item, line


def _message(line: Node, thread: str) -> str:
    comments = line.under(thread).entries("comments")
    if not comments:
        raise line.refuse(f"{thread}.comments", "has no comment, so there is no message")
    return comments[0].text("body")
