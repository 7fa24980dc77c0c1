"""The plan: which conditions a study has and which jobs, in which order. Pure; the same study gives the same plan."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from contract.conditions import Condition, Rules
from contract.formats import Variant, asking
from contract.forms import Annotation, Form, LikertFormat, OpenFormat, Step
from contract.items import Item
from contract.models import Model
from contract.orders import both_orders
from contract.study import Dataset
from producer.loaded_study import LoadedStudy

Forms = tuple[Form, ...]
"""What is asked item by item: one format, with its annotation if it has one, or all the steps of a recipe."""


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """One job to be: an item under a condition (by its digest), one repeat from 1.

    `part` is the number of the choice whose statement is rated, 0 in other formats. `prefix` is a 64-bit number, equal
    where jobs of one model and dataset share the head of their prompts.
    """

    condition: str
    item: Item
    repeat: int
    prefix: int
    part: int = 0


def plan_conditions(loaded: LoadedStudy) -> dict[str, tuple[Condition, Rules]]:
    """The conditions of the study by digest, in plan order, each with the rules that its jobs follow now."""
    planned: dict[str, tuple[Condition, Rules]] = {}
    for model, dataset, forms in _grid(loaded):
        for at, variant in _all_asked(loaded, dataset, forms):
            condition = _condition(loaded, model, dataset, forms, at, variant)
            planned[condition.digest] = (condition, _rules(loaded, condition))
    return planned


def plan_jobs(loaded: LoadedStudy) -> Iterator[PlannedJob]:
    """The jobs in their fixed order: model, dataset, format, shared prefix, item, variant, part, repeat.

    The variants of an item start at a place that a hash of the item decides, so that no order is always the one that
    meets a cold prompt cache. The steps of a recipe share the heads of their prompts and are asked item by item.
    """
    for model, dataset, forms in _grid(loaded):
        digests: dict[tuple[int, Variant], str] = {}
        for item in _by_prefix(loaded.items[dataset.name]):
            prefix = _prefix_number(item)
            for at, variant in _rotated(_asked(forms, item), item):
                if (at, variant) not in digests:
                    digests[at, variant] = _condition(loaded, model, dataset, forms, at, variant).digest
                asked = as_asked(forms[at], item)
                for part in asking.parts(forms[at], asked):
                    for repeat in range(1, loaded.study.repeats + 1):
                        digest = digests[at, variant]
                        yield PlannedJob(condition=digest, item=asked, repeat=repeat, prefix=prefix, part=part)


def planned_items(loaded: LoadedStudy) -> Iterator[Item]:
    """Each item as its formats ask it: with its statements, or without."""
    rated = any(isinstance(form, LikertFormat) for form in loaded.study.forms)
    otherwise = any(not isinstance(form, LikertFormat) for form in loaded.study.forms)
    for items in loaded.items.values():
        for item in items:
            if otherwise or item.statements is None:
                yield replace(item, statements=None)
            if rated and item.statements is not None:
                yield item


def as_asked(form: Form, item: Item) -> Item:
    """The item as `form` asks it: statements that are added for a Likert format must not make other answers old."""
    return item if isinstance(form, LikertFormat) or item.statements is None else replace(item, statements=None)


def _grid(loaded: LoadedStudy) -> Iterator[tuple[Model, Dataset, Forms]]:
    study = loaded.study
    together: list[Forms] = [_with_annotation(form) for form in study.formats] or [study.steps]
    for model in study.models:
        for dataset in study.datasets:
            for forms in together:
                yield model, dataset, forms


def _with_annotation(form: Form) -> Forms:
    return (form, form.annotate) if isinstance(form, OpenFormat) and form.annotate is not None else (form,)


def _asked(forms: Forms, item: Item) -> list[tuple[int, Variant]]:
    """The forms, by their places, and variants in which `item` is asked; an annotation has those of its format."""
    return [(at, variant) for at in range(len(forms)) for variant in asking.variants(_varied(forms, at), item)]


def _varied(forms: Forms, at: int) -> Form:
    return forms[at - 1] if isinstance(forms[at], Annotation) else forms[at]


def _all_asked(loaded: LoadedStudy, dataset: Dataset, forms: Forms) -> list[tuple[int, Variant]]:
    """The same of all items of a dataset; both orders of two choices where its file is not at hand."""
    if isinstance(forms[0], Step):
        return [(at, Variant(step=form.step)) for at, form in enumerate(forms) if isinstance(form, Step)]
    if dataset.name in loaded.expected:
        return [(0, Variant(order=order)) for order in both_orders(2)]
    return list(dict.fromkeys(asked for item in loaded.items[dataset.name] for asked in _asked(forms, item)))


def _by_prefix(items: list[Item]) -> list[Item]:
    """Items with one prefix next to each other, prefixes in the order in which they first come."""
    places: dict[str, int] = {}
    for item in items:
        places.setdefault(asking.prefix(item), len(places))
    return sorted(items, key=lambda item: places[asking.prefix(item)])


def _prefix_number(item: Item) -> int:
    digest = hashlib.sha256(asking.prefix(item).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)


def _rotated(asked: list[tuple[int, Variant]], item: Item) -> list[tuple[int, Variant]]:
    """The variants of one format, begun where a hash of the item says; more than one form is asked in its own order."""
    if not asked or asked[-1][0] > 0:
        return asked
    start = hashlib.sha256(item.digest.encode()).digest()[0] % len(asked)
    return asked[start:] + asked[:start]


def _condition(
    loaded: LoadedStudy, model: Model, dataset: Dataset, forms: Forms, at: int, variant: Variant
) -> Condition:
    form, earlier = forms[at], _earlier(forms, at)
    shown = (earlier, _variant_of(forms[earlier], variant)) if earlier is not None else None
    return Condition(
        dataset=dataset.name,
        model=loaded.study.annotator or model if isinstance(form, Annotation) else model,
        format=form,
        variant=variant,
        prompt=loaded.prompt(dataset, form),
        of=None if shown is None else _condition(loaded, model, dataset, forms, *shown).digest,
    )


def _earlier(forms: Forms, at: int) -> int | None:
    """The place of the form whose texts the prompts of this one show; None if they show none."""
    form = forms[at]
    if isinstance(form, Annotation):
        return at - 1
    if not isinstance(form, Step) or form.after is None:
        return None
    return next(place for place, step in enumerate(forms) if isinstance(step, Step) and step.step == form.after)


def _variant_of(form: Form, variant: Variant) -> Variant:
    return Variant(step=form.step) if isinstance(form, Step) else variant


def _rules(loaded: LoadedStudy, condition: Condition) -> Rules:
    study = loaded.study
    return Rules(
        model=condition.model,
        format=condition.format,
        prompt=condition.prompt,
        retry=study.retry,
        bundles=study.bundles,
    )
