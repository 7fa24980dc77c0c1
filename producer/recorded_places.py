"""Where recorded answers belong: the planned jobs of a recorded model, found by what a row says of itself."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from contract.conditions import Rules
from contract.formats import Variant, asking
from contract.forms import Form
from contract.items import Item
from contract.recorded import RECORDED, RecordedModel
from producer import recorded_statements as statements
from producer.datasets.rows import listed
from producer.recorded_rows import RecordedRow

Job = tuple[int, int, int, int]
"""A job by its condition, item, part and repeat."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A condition of the model; `label` is how its variant is printed.

    `annotation` is the condition that annotates its answers, None where that is not recorded too; `annotated` says that
    there is one at all.
    """

    id: int
    model: str
    dataset: str
    format: str
    label: str
    variant: Variant
    form: Form
    annotation: "Asking | None" = None
    annotated: bool = False


@dataclass(frozen=True, kw_only=True)
class Place:
    """One item under one condition."""

    asking: Asking
    item_id: int
    item: Item


class Places:
    """Finds the job that a row belongs to; each may be given once."""

    def __init__(self, places: list[Place], repeats: int) -> None:
        self._repeats = repeats
        self._items: dict[str, list[Place]] = defaultdict(list)
        self._given: dict[Job, int] = {}
        self._numbered: Counter[tuple[int, int, int]] = Counter()
        for place in places:
            self._items[place.item.source_id].append(place)

    def find(self, entry: RecordedRow) -> tuple[Place, int, int]:
        """The place of a row, its part and its repeat; what cannot be found, or is there already, is refused."""
        place = self._place(entry)
        parts = asking.parts(place.asking.form, place.item)
        if entry.part not in parts:
            raise entry.refuse("part", _not_a_part(entry.part, parts))
        among = (place.asking.id, place.item_id, entry.part)
        self._numbered[among] += 1
        repeat = entry.repeat or self._numbered[among]
        if repeat > self._repeats:
            field = "item" if entry.repeat is None else "repeat"
            problem = f"this is repeat {repeat} of this question, and the study has {self._repeats} (repeats)"
            raise entry.refuse(field, problem)
        earlier = self._given.setdefault((*among, repeat), entry.row.number)
        if earlier != entry.row.number:
            raise entry.refuse("item", f"row {earlier} gives the answer to this already; keep one")
        return place, entry.part, repeat

    def _place(self, entry: RecordedRow) -> Place:
        found = self._items.get(entry.source_id) or self._items.get(entry.source_id.strip(), [])
        if not found:
            raise entry.refuse("item", f"{entry.source_id!r:.80} is the id of no item that the study asks")
        found = _only(entry, found, "dataset", entry.dataset, lambda place: place.asking.dataset)
        found = _only(entry, found, "format", entry.format, lambda place: place.asking.format)
        found = _only(entry, found, "variant", entry.variant, lambda place: place.asking.label)
        if len(found) > 1:
            raise entry.refuse("variant", "the study asks this in several ways that a row cannot tell apart")
        return found[0]


def _only(
    entry: RecordedRow, places: list[Place], field: str, told: str | None, name: Callable[[Place], str]
) -> list[Place]:
    """Those of `places` that go by what the row tells; where it tells nothing there must be one kind of them."""
    if told is not None and (left := [place for place in places if name(place) == told]):
        return left
    known = dict.fromkeys(name(place) for place in places)
    if told is not None:
        raise entry.refuse(field, f"{told!r:.80} is none in which the study asks this item; it has {listed(known)}")
    if len(known) > 1:
        raise entry.refuse(field, f"is missing, and the study asks this item in several: {listed(known)}")
    return places


def _not_a_part(part: int, parts: tuple[int, ...]) -> str:
    if parts == (0,):
        return f"{part} is none; only ratings have parts, so leave it empty here"
    named = _or(str(each) for each in parts)
    return (
        f"is missing; it is the choice whose statement is rated, {named} here" if not part else f"{part} is not {named}"
    )


def _or(names: Iterable[str]) -> str:
    return " or ".join(names) or "nothing"


def read_places(connection: Connection, study: int, model: RecordedModel, repeats: int) -> Places:
    """The places of the planned jobs of `model`."""
    scope = {"study": study, "model": model.name}
    rows = connection.execute(statements.CONDITIONS, scope).all()
    annotations = {row.of_condition: row for row in rows if row.of_condition is not None}
    ways = {row.id: _asking(row, annotations.get(row.id)) for row in rows if row.of_condition is None}
    stored = connection.execute(statements.ITEMS, {"conditions": list(ways)})
    items = {row.id: _item(row) for row in stored}
    pairs = connection.execute(statements.PAIRS, {"conditions": list(ways)})
    places = [Place(asking=ways[pair.condition], item_id=pair.item, item=items[pair.item]) for pair in pairs]
    return Places(places, repeats)


def _item(row: Row[Any]) -> Item:
    """An item as answers are read by it; its cluster, which each study says for itself, is nothing to them."""
    return Item.from_payload(dataset=row.dataset, source_id=row.source_id, cluster="", payload=row.payload)


def _asking(row: Row[Any], annotation: Row[Any] | None) -> Asking:
    recorded = annotation if annotation is not None and annotation.provider == RECORDED else None
    return Asking(
        id=row.id,
        model=row.rules["model"]["model"],
        dataset=row.dataset,
        format=row.format,
        label=row.variant,
        variant=Variant.from_spec(row.spec["variant"]),
        form=Rules.from_stored(row.rules).format,
        annotation=None if recorded is None else _asking(recorded, None),
        annotated=annotation is not None,
    )
