"""OpinionQA: questions of Pew's American Trends Panel with their options, of which none is right.

Source: Santurkar et al., Whose Opinions Do Language Models Reflect? (2023). Rows of its `info.csv` have key, question,
references and option_ordinal; later tables call the options `options` and the ordinals `ordinal`. A question that was
reworded to stand alone (`refined_qbody`) is asked so.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from contract.items import Item
from contract.study import Dataset
from producer.datasets.human_shares import HumanShares
from producer.datasets.layouts import read_rows
from producer.datasets.rows import Row
from producer.datasets.written import numbers_of, texts_of

LANGUAGE = "en"
REFUSED = "Refused"
"""The option of those who would not answer; where there is one, it stands last."""

NOT_SURE = "Not sure"
"""The one option that may go without an ordinal."""

_QUESTION = ("question", "refined_qbody")
_OPTIONS = ("options", "references")
_ORDINALS = ("option_ordinal", "ordinal")


def opinion_qa_items(
    dataset: Dataset, path: Path, human: Path | None, wanted: Collection[str] | None = None
) -> Iterator[tuple[Item, Row]]:
    """The items in file order, each with its row; each question is a cluster of its own.

    `traits`: `ordinals` by option, None for those without one; `refused`, the index of that option or None; `shares`,
    the human share of each option, where there is a file of them and the study does not leave the key out. Questions
    that are not `wanted` get no shares, and need none.
    """
    shares = None if human is None else HumanShares.read(human, dataset)
    keys = set()
    for row in read_rows(path):
        key, options = row.text("key"), texts_of(row, _name(row, _OPTIONS))
        keys.add(key)
        traits = {"ordinals": _ordinals(row, options), "refused": _refused(row, options)}
        if shares is not None and key not in dataset.without_human and (wanted is None or key in wanted):
            traits["shares"] = list(shares.of(row, key, options))
        item = Item(
            dataset=dataset.name,
            source_id=key,
            question=row.text(_name(row, _QUESTION)),
            choices=options,
            target=None,
            cluster=key,
            language=LANGUAGE,
            traits=traits,
        )
        yield item, replace(row, names={"id": "key", "choices": _name(row, _OPTIONS)})
    if shares is not None:
        shares.check_all_used(keys)


def _name(row: Row, names: tuple[str, ...]) -> str:
    """What the file calls a field; the first name where it has none of them."""
    return next((name for name in names if name in row.values), names[0])


def _refused(row: Row, options: tuple[str, ...]) -> int | None:
    if REFUSED not in options:
        return None
    place = options.index(REFUSED)
    if place != len(options) - 1:
        raise row.refuse(f"{_name(row, _OPTIONS)}[{place}]", f"{REFUSED} must be the last option, and once")
    return place


def _ordinals(row: Row, options: tuple[str, ...]) -> list[float | None]:
    """The ordinal of each option; None for Refused, and for Not sure before it where its ordinal is wanting."""
    name = _name(row, _ORDINALS)
    given: list[float | None] = [*numbers_of(row, name)]
    wanted = options[: _refused(row, options)]
    if len(given) == len(wanted) - 1 and wanted[-1] == NOT_SURE:
        given.append(None)
    if len(given) != len(wanted):
        problem = f"{len(given)} ordinals for {len(wanted)} options before {REFUSED}; each has one, but {NOT_SURE}"
        raise row.refuse(name, f"{problem} may go without")
    return given + [None] * (len(options) - len(wanted))
