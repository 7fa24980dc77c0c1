"""The plan: which conditions a study has and which jobs, in which order. Pure; the same study gives the same plan."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from contract.conditions import Condition, Rules
from contract.formats import Variant, closed
from contract.items import Item
from contract.models import Model
from contract.orders import both_orders
from contract.study import ClosedFormat, Dataset
from producer.study_file import LoadedStudy


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """One job to be: an item under a condition (by its digest), one repeat from 1. `part` is 0 for closed answers.

    `prefix` is a 64-bit number, equal where jobs of one model and dataset share the head of their prompts.
    """

    condition: str
    item: Item
    repeat: int
    prefix: int
    part: int = 0


def plan_conditions(loaded: LoadedStudy) -> dict[str, tuple[Condition, Rules]]:
    """The conditions of the study by digest, in plan order, each with the rules that its jobs follow now."""
    planned: dict[str, tuple[Condition, Rules]] = {}
    for model, dataset, form in _grid(loaded):
        for variant in _all_variants(loaded, dataset):
            condition = _condition(loaded, model, dataset, form, variant)
            planned[condition.digest] = (condition, _rules(loaded, model, dataset, form))
    return planned


def plan_jobs(loaded: LoadedStudy) -> Iterator[PlannedJob]:
    """The jobs in their fixed order: model, dataset, format, shared prefix, item, variant, repeat.

    The variants of an item start at a place that a hash of the item decides, so that no order is always the one that
    meets a cold prompt cache.
    """
    for model, dataset, form in _grid(loaded):
        digests: dict[Variant, str] = {}
        for item in _by_prefix(loaded.items[dataset.name]):
            prefix = _prefix_number(item)
            for variant in _rotated(closed.variants(item), item):
                if variant not in digests:
                    digests[variant] = _condition(loaded, model, dataset, form, variant).digest
                for repeat in range(1, loaded.study.repeats + 1):
                    yield PlannedJob(condition=digests[variant], item=item, repeat=repeat, prefix=prefix)


def _grid(loaded: LoadedStudy) -> Iterator[tuple[Model, Dataset, ClosedFormat]]:
    for model in loaded.study.models:
        for dataset in loaded.study.datasets:
            for form in loaded.study.formats:
                yield model, dataset, form


def _all_variants(loaded: LoadedStudy, dataset: Dataset) -> list[Variant]:
    """The variants of a dataset's items; those of two choices where its file is not at hand."""
    if dataset.name in loaded.expected:
        return [Variant(order=order) for order in both_orders(2)]
    items = loaded.items[dataset.name]
    return list(dict.fromkeys(variant for item in items for variant in closed.variants(item)))


def _by_prefix(items: list[Item]) -> list[Item]:
    """Items with one prefix next to each other, prefixes in the order in which they first come."""
    places: dict[str, int] = {}
    for item in items:
        places.setdefault(closed.prefix(item), len(places))
    return sorted(items, key=lambda item: places[closed.prefix(item)])


def _prefix_number(item: Item) -> int:
    digest = hashlib.sha256(closed.prefix(item).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)


def _rotated(variants: tuple[Variant, ...], item: Item) -> tuple[Variant, ...]:
    start = hashlib.sha256(item.digest.encode()).digest()[0] % len(variants)
    return variants[start:] + variants[:start]


def _condition(loaded: LoadedStudy, model: Model, dataset: Dataset, form: ClosedFormat, variant: Variant) -> Condition:
    prompt = loaded.prompts[dataset.prompt]
    return Condition(dataset=dataset.name, model=model, format=form, variant=variant, prompt=prompt)


def _rules(loaded: LoadedStudy, model: Model, dataset: Dataset, form: ClosedFormat) -> Rules:
    study = loaded.study
    prompt = loaded.prompts[dataset.prompt]
    return Rules(model=model, format=form, prompt=prompt, retry=study.retry, bundles=study.bundles)
