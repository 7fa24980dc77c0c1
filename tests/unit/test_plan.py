"""The plan: the same study gives the same jobs in the same order, and no order of choices is always first."""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contract.conditions import Condition
from contract.items import Item
from contract.prompts import PromptSet
from contract.study import Study
from contract.yaml_lines import YamlDocument
from producer.loaded_study import LoadedStudy
from producer.plan import PlannedJob, plan_conditions, plan_jobs
from tests.builders import make_item

PATH = Path("study.yaml")
PROMPT = PromptSet(name="own", bodies={"*": "{context}\n{question}\n{choices}"})
CONTEXTS = st.lists(st.none() | st.sampled_from(["one", "two", "three"]), min_size=1, max_size=12)


def dataset(name: str) -> dict[str, Any]:
    """A dataset's entry in a study."""
    return {"name": name, "loader": "items", "path": "items.jsonl", "prompt": "own"}


def model(name: str) -> dict[str, Any]:
    """A model's entry in a study."""
    return {"name": name, "provider": "simulated"}


def load(*items: Item, models: tuple[str, ...] = ("sim",), **changes: Any) -> LoadedStudy:  # noqa: ANN401
    """A study on `items`, which tell their datasets by themselves."""
    names = list(dict.fromkeys(item.dataset for item in items))
    values: dict[str, Any] = {
        "study": "trial",
        "datasets": [dataset(name) for name in names],
        "models": [model(name) for name in models],
        "formats": [{"format": "closed"}],
    }
    return LoadedStudy(
        path=PATH,
        study=Study.model_validate(values | changes),
        items={name: [item for item in items if item.dataset == name] for name in names},
        prompts={"own": PROMPT},
        document=YamlDocument(PATH, "study: trial"),
    )


def items_in(contexts: list[str | None], dataset: str = "capitals") -> list[Item]:
    """One item a context, in this order."""
    return [make_item(f"q{number}", dataset=dataset, context=context) for number, context in enumerate(contexts)]


def conditions_of(loaded: LoadedStudy) -> dict[str, Condition]:
    """The planned conditions by digest."""
    return {digest: condition for digest, (condition, _) in plan_conditions(loaded).items()}


def told(loaded: LoadedStudy) -> list[tuple[str, str, str, str, int]]:
    """The planned jobs in their order, as model, dataset, item, order, repeat."""
    conditions = conditions_of(loaded)
    return [
        (found.model.name, found.dataset, job.item.source_id, found.variant.label, job.repeat)
        for job in plan_jobs(loaded)
        for found in (conditions[job.condition],)
    ]


def starts(loaded: LoadedStudy) -> dict[str, str]:
    """By item, the order that is asked first."""
    first: dict[str, str] = {}
    for _, _, item, order, _ in told(loaded):
        first.setdefault(item, order)
    return first


def test_every_item_is_asked_in_both_orders_of_every_model_in_every_repeat() -> None:
    items = [*items_in([None] * 3), *items_in([None] * 2, dataset="rivers")]
    loaded = load(*items, models=("one", "two"), repeats=3)

    jobs = told(loaded)

    assert len(jobs) == len(set(jobs)) == 5 * 2 * 2 * 3
    assert Counter(job[0] for job in jobs) == {"one": 30, "two": 30}
    assert Counter(job[3] for job in jobs) == {"12": 30, "21": 30}
    assert Counter(job[4] for job in jobs) == {1: 20, 2: 20, 3: 20}


def test_there_is_one_condition_a_model_dataset_and_order() -> None:
    loaded = load(make_item(dataset="a"), make_item(dataset="b"), models=("one", "two"), repeats=4)

    found = [(c.model.name, c.dataset, c.variant.label) for c in conditions_of(loaded).values()]

    assert found == [(m, d, order) for m in ("one", "two") for d in ("a", "b") for order in ("12", "21")]


def test_the_order_of_jobs_is_model_then_dataset_then_item_then_order_then_repeat() -> None:
    items = [*items_in([None] * 2), *items_in([None], dataset="rivers")]
    loaded = load(*items, models=("one", "two"), repeats=2)

    jobs = told(loaded)

    groups = [key for key, _ in groupby(jobs, key=lambda job: job[:4])]
    assert [key[:3] for key, _ in groupby(groups, key=lambda group: group[:3])] == [
        (name, dataset, item)
        for name in ("one", "two")
        for dataset, item in (("capitals", "q0"), ("capitals", "q1"), ("rivers", "q0"))
    ]
    assert len(groups) == 2 * 3 * 2
    assert [job[4] for job in jobs] == [1, 2] * 12


@given(CONTEXTS, st.integers(1, 3))
def test_the_same_study_gives_the_same_plan(contexts: list[str | None], repeats: int) -> None:
    first, second = (load(*items_in(contexts), repeats=repeats) for _ in range(2))

    assert list(plan_jobs(first)) == list(plan_jobs(second))
    assert plan_conditions(first) == plan_conditions(second)


@given(CONTEXTS, st.integers(1, 3))
def test_nothing_is_lost_and_nothing_doubled(contexts: list[str | None], repeats: int) -> None:
    loaded = load(*items_in(contexts), models=("one", "two"), repeats=repeats)

    jobs = list(plan_jobs(loaded))

    assert len(jobs) == len({(job.condition, job.item, job.part, job.repeat) for job in jobs})
    assert len(jobs) == len(contexts) * 2 * 2 * repeats
    assert {job.condition for job in jobs} == set(plan_conditions(loaded))


@given(CONTEXTS, st.integers(1, 3))
def test_both_orders_of_an_item_follow_each_other(contexts: list[str | None], repeats: int) -> None:
    jobs = list(plan_jobs(load(*items_in(contexts), repeats=repeats)))

    runs = [(item, len(list(jobs))) for item, jobs in groupby(jobs, key=lambda job: job.item.source_id)]

    assert len(runs) == len(contexts)
    assert {length for _, length in runs} == {2 * repeats}


@given(CONTEXTS)
def test_items_that_share_a_context_follow_each_other(contexts: list[str | None]) -> None:
    def context(job: PlannedJob) -> str:
        return job.item.context or job.item.source_id

    jobs = list(plan_jobs(load(*items_in(contexts))))

    groups = [key for key, _ in groupby(jobs, key=context)]
    assert len(groups) == len(set(groups))
    assert groups == list(dict.fromkeys(shared or f"q{number}" for number, shared in enumerate(contexts)))


@given(CONTEXTS, st.randoms(use_true_random=False))
def test_which_order_comes_first_does_not_depend_on_where_the_item_stands(
    contexts: list[str | None],
    random: Any,  # noqa: ANN401
) -> None:
    items = items_in(contexts)
    shuffled = random.sample(items, len(items))

    assert starts(load(*items)) == starts(load(*shuffled))


def test_which_order_comes_first_depends_on_the_content_and_on_nothing_else() -> None:
    contents = [{"question": f"Which is right, number {number}?"} for number in range(20)]
    plain = load(*(make_item(f"q{n}", **content) for n, content in enumerate(contents)))
    moved = load(
        *(make_item(f"q{n}", dataset="rivers", cluster="c", **content) for n, content in enumerate(contents)),
        models=("other",),
        repeats=2,
    )

    assert starts(plain) == starts(moved)


def test_no_order_is_always_the_one_that_meets_a_cold_cache() -> None:
    first = Counter(starts(load(*(make_item(f"q{number}") for number in range(400)))).values())

    assert first["12"] + first["21"] == 400
    assert 150 < first["12"] < 250


def test_raising_the_repeats_keeps_every_job_that_was_planned() -> None:
    items = items_in(["one", "two", "one"])

    one, three = (set(plan_jobs(load(*items, repeats=repeats))) for repeats in (1, 3))

    assert one < three
    assert {job.repeat for job in three - one} == {2, 3}


def test_rules_follow_the_study_and_leave_the_conditions_alone() -> None:
    before, after = (
        plan_conditions(load(make_item(), retry={"invalid": invalid}, bundles={"size": size}))
        for invalid, size in ((0, 4), (3, 8))
    )

    assert before.keys() == after.keys()
    assert [(rules.retry.invalid, rules.bundles.size) for _, rules in before.values()] == [(0, 4)] * 2
    assert [(rules.retry.invalid, rules.bundles.size) for _, rules in after.values()] == [(3, 8)] * 2
