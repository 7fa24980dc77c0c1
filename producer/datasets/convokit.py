"""Winning Arguments in ConvoKit's form: `utterances.jsonl`, with `conversations.json` beside it.

Utterances carry the pairs they belong to (`pair_ids`) and whether their thread changed the post's author's opinion
(`success`: 1, 0 or null); conversations say whether they are of the training part (`train`). The held-out part is read,
as in "Positional Bias in Binary Question Answering", section 3.1. A message is the first comment of its thread: the one
that replies to the post.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from contract.errors import InputError
from contract.items import Item
from producer.datasets.json_tree import Node, read_tree, read_trees

UTTERANCES = "utterances.jsonl"
CONVERSATIONS = "conversations.json"
LANGUAGE = "en"


@dataclass(kw_only=True)
class _Pair:
    """Two threads of one post; `messages` are their first comments by whether they succeeded."""

    post: str
    title: str
    messages: dict[bool, Node] = field(default_factory=dict)


def convokit_items(dataset: str, path: Path) -> Iterator[tuple[Item, Node]]:
    """The held-out pairs in the order in which the file first names them; the pairs of one post are its cluster."""
    titles = dict(_held_out(path.with_name(CONVERSATIONS)))
    pairs: dict[str, _Pair] = {}
    for utterance in read_trees(path):
        post = utterance.text(_first_of(utterance, "conversation_id", "root"))
        if post in titles:
            _sort_in(pairs, utterance, post, titles[post])
    for name, pair in pairs.items():
        yield _item(dataset, path, name, pair)


def _held_out(path: Path) -> Iterator[tuple[str, str]]:
    """The posts that are not of the training part, with their titles."""
    document = read_tree(path)
    if not isinstance(document.value, dict):
        raise InputError(path, "must be a JSON object of conversations by their ids")
    for post in document.value:
        conversation = document.under(post)
        meta = conversation.under("meta") if conversation.has("meta") else conversation
        if not meta.number("train"):
            yield post, meta.text("op-title")


def _sort_in(pairs: dict[str, _Pair], utterance: Node, post: str, title: str) -> None:
    """Take an utterance up as the message of its pairs, if it is one: the first reply to the post in its thread."""
    meta = utterance.under("meta")
    reply_to = utterance.value_of(_first_of(utterance, "reply-to", "reply_to"))
    success = meta.value_of("success")
    if reply_to != post or success is None:
        return
    for name in meta.texts("pair_ids"):
        pair = pairs.setdefault(name, _Pair(post=post, title=title))
        pair.messages.setdefault(bool(success), utterance)


def _item(dataset: str, path: Path, name: str, pair: _Pair) -> tuple[Item, Node]:
    if len(pair.messages) < 2:
        lacking = "persuasive message" if True not in pair.messages else "message that was not persuasive"
        raise InputError(path, f"pair {name} has no {lacking} that replies to its post {pair.post}")
    item = Item(
        dataset=dataset,
        source_id=name,
        question=pair.title,
        choices=(pair.messages[True].text("text"), pair.messages[False].text("text")),
        target=0,
        cluster=pair.post,
        language=LANGUAGE,
    )
    return item, pair.messages[True]


def _first_of(node: Node, *keys: str) -> str:
    """The first of the keys that is there: ConvoKit has changed its names; the newest if none is."""
    return next((key for key in keys if node.has(key)), keys[0])
