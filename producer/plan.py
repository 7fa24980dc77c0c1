"""The plan: which conditions a study has and which jobs, in which order. Pure; the same study gives the same plan."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from contract.conditions import Condition, Rules
from contract.formats import Variant, asking
from contract.items import Item
from contract.models import Model
from contract.orders import both_orders
from contract.study import Dataset, Form, Step
from producer.loaded_study import LoadedStudy


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
    for model, dataset, forms in _grid(loaded):
        for form in forms:
            for variant in _all_variants(loaded, dataset, form):
                condition = _condition(loaded, model, dataset, form, variant)
                planned[condition.digest] = (condition, _rules(loaded, model, dataset, form))
    return planned


def plan_jobs(loaded: LoadedStudy) -> Iterator[PlannedJob]:
    """The jobs in their fixed order: model, dataset, format, shared prefix, item, variant, repeat.

    The variants of an item start at a place that a hash of the item decides, so that no order is always the one that
    meets a cold prompt cache. The steps of a recipe share the heads of their prompts and are asked item by item.
    """
    for model, dataset, forms in _grid(loaded):
        digests: dict[tuple[Form, Variant], str] = {}
        for item in _by_prefix(forms[0], loaded.items[dataset.name]):
            prefix = _prefix_number(forms[0], item)
            for form, variant in _asked(forms, item):
                if (form, variant) not in digests:
                    digests[form, variant] = _condition(loaded, model, dataset, form, variant).digest
                for repeat in range(1, loaded.study.repeats + 1):
                    yield PlannedJob(condition=digests[form, variant], item=item, repeat=repeat, prefix=prefix)


def _grid(loaded: LoadedStudy) -> Iterator[tuple[Model, Dataset, tuple[Form, ...]]]:
    """Models, datasets, and the forms that are asked item by item: one format, or all the steps."""
    study = loaded.study
    together: list[tuple[Form, ...]] = [(form,) for form in study.formats] or [study.steps]
    for model in study.models:
        for dataset in study.datasets:
            for forms in together:
                yield model, dataset, forms


def _asked(forms: tuple[Form, ...], item: Item) -> Iterator[tuple[Form, Variant]]:
    for form in forms:
        for variant in _rotated(asking.variants(form, item), item):
            yield form, variant


def _all_variants(loaded: LoadedStudy, dataset: Dataset, form: Form) -> list[Variant]:
    """The variants of a dataset's items; those of two choices where its file is not at hand."""
    if isinstance(form, Step):
        return [Variant(step=form.step)]
    if dataset.name in loaded.expected:
        return [Variant(order=order) for order in both_orders(2)]
    items = loaded.items[dataset.name]
    return list(dict.fromkeys(variant for item in items for variant in asking.variants(form, item)))


def _by_prefix(form: Form, items: list[Item]) -> list[Item]:
    """Items with one prefix next to each other, prefixes in the order in which they first come."""
    places: dict[str, int] = {}
    for item in items:
        places.setdefault(asking.prefix(form, item), len(places))
    return sorted(items, key=lambda item: places[asking.prefix(form, item)])


def _prefix_number(form: Form, item: Item) -> int:
    digest = hashlib.sha256(asking.prefix(form, item).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)


def _rotated(variants: tuple[Variant, ...], item: Item) -> tuple[Variant, ...]:
    start = hashlib.sha256(item.digest.encode()).digest()[0] % len(variants)
    return variants[start:] + variants[:start]


def _condition(loaded: LoadedStudy, model: Model, dataset: Dataset, form: Form, variant: Variant) -> Condition:
    prompt = loaded.prompt(dataset, form)
    of = _earlier(loaded, model, dataset, form)
    return Condition(dataset=dataset.name, model=model, format=form, variant=variant, prompt=prompt, of=of)


def _earlier(loaded: LoadedStudy, model: Model, dataset: Dataset, form: Form) -> str | None:
    """The digest of the condition whose texts the prompts of this one show."""
    if not isinstance(form, Step) or form.after is None:
        return None
    step = next(step for step in loaded.study.steps if step.step == form.after)
    return _condition(loaded, model, dataset, step, Variant(step=step.step)).digest


def _rules(loaded: LoadedStudy, model: Model, dataset: Dataset, form: Form) -> Rules:
    study = loaded.study
    prompt = loaded.prompt(dataset, form)
    return Rules(model=model, format=form, prompt=prompt, retry=study.retry, bundles=study.bundles)
