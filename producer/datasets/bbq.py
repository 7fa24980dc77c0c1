"""BBQ in its authors' layout: a context, a question about it and three answers, of which one says that it is unknown.

Source: Parrish et al., BBQ (2022), `data/*.jsonl`. There the answers stand in shuffled slots; here they stand in an
order of their own: M, F, then other groups by their names, and UNKNOWN last; within one group by their texts.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.items import UNKNOWN, Item
from producer.datasets.bbq_groups import Answer, shown_group, stereotyped_group
from producer.datasets.json_tree import Node
from producer.datasets.layouts import read_rows
from producer.datasets.rows import Row

LANGUAGE = "en"
GENDER = "Gender_identity"
LAST_LABEL = 25
"""The last question of gender identity whose answers are labels (the woman); those of later ones are names."""

_SLOTS = ("ans0", "ans1", "ans2")
_FIRST_GROUPS = ("M", "F")
_NAMES = {"id": "example_id", "target": "label", "choices": "ans0, ans1, ans2"}
_WHOLE = re.compile(r"[0-9]{1,9}")


def bbq_items(dataset: str, path: Path) -> Iterator[tuple[Item, Row]]:
    """The items in file order, each with its row; all items of one question are its cluster.

    An item is known by its example_id, and where the file mixes categories, by the category before it.
    """
    rows = list(read_rows(path))
    mixed = len({repr(row.values.get("category")) for row in rows}) > 1
    for row in rows:
        yield _item(dataset, Node(path=path, value=row.values, row=row.number), mixed=mixed), replace(row, names=_NAMES)


def _item(dataset: str, row: Node, *, mixed: bool) -> Item:
    category = row.text("category")
    example, question = _whole(row, "example_id"), _whole(row, "question_index")
    answers = _answers(row)
    right = row.value_of("label")
    if isinstance(right, bool) or not isinstance(right, int) or not 0 <= right < len(_SLOTS):
        raise row.refuse("label", f"must be the slot of the right answer, 0, 1 or 2, not {right!r:.80}")
    shown = sorted(answers, key=_place)
    return Item(
        dataset=dataset,
        source_id=f"{category}-{example}" if mixed else str(example),
        question=row.text("question"),
        choices=tuple(answer.text for answer in shown),
        groups=tuple(answer.group for answer in shown),
        target=next(place for place, answer in enumerate(shown) if answer.slot == right),
        cluster=f"{category}-{question}",
        context=row.text("context"),
        language=LANGUAGE,
        traits=_traits(row, category, question, answers),
    )


def _traits(row: Node, category: str, question: int, answers: Collection[Answer]) -> dict[str, Any]:
    """What scores need to know: None as `subset` outside gender identity, and as `stereotyped` where it is no group."""
    known = row.under("additional_metadata").texts("stereotyped_groups")
    subset = "labels" if question <= LAST_LABEL else "names"
    return {
        "polarity": _one_of(row, "question_polarity", ("neg", "nonneg")),
        "context_condition": _one_of(row, "context_condition", ("ambig", "disambig")),
        "category": category,
        "subset": subset if category == GENDER else None,
        "stereotyped": stereotyped_group(category, known, answers),
    }


def _answers(row: Node) -> list[Answer]:
    info = row.under("answer_info")
    answers = []
    for slot, name in enumerate(_SLOTS):
        entries = info.entries(name)
        if len(entries) != 2:
            raise info.refuse(name, f"must be [TEXT, GROUP], not {len(entries)} entries")
        said = entries[0].own_text()
        # Some rows of crossed categories leave the group blank; what is said in short names it then.
        group = said if entries[1].value == "" else entries[1].own_text()
        answers.append(Answer(slot=slot, text=row.text(name), said=said, group=shown_group(group)))
    unknown = sum(answer.group == UNKNOWN for answer in answers)
    if unknown != 1:
        raise row.refuse("answer_info", f"{unknown} answers are of the group unknown; one of the three must be")
    return answers


def _place(answer: Answer) -> tuple[int, str, str, str]:
    """Where an answer stands in canonical order, whatever its slot."""
    if answer.group == UNKNOWN:
        rank = len(_FIRST_GROUPS) + 1
    elif answer.group in _FIRST_GROUPS:
        rank = _FIRST_GROUPS.index(answer.group)
    else:
        rank = len(_FIRST_GROUPS)
    return rank, answer.group.casefold(), answer.group, answer.text


def _whole(row: Node, key: str) -> int:
    """A whole number, which BBQ writes as one or as text."""
    value = row.value_of(key)
    if isinstance(value, bool) or not isinstance(value, int | str) or not _WHOLE.fullmatch(str(value)):
        raise row.refuse(key, f"must be a whole number from 0, not {value!r:.80}")
    return int(value)


def _one_of(row: Node, key: str, known: tuple[str, str]) -> str:
    value = row.text(key)
    if value not in known:
        raise row.refuse(key, f"must be {' or '.join(known)}, not {value!r:.80}")
    return value
