"""How much a study asks, how long that takes and what it costs, before anything is written. Pure.

Jobs are counted by the plan's own rules, item by item and never job by job, so a million jobs cost no more than their
items. Prompts are measured by the text that would be sent, answers by their budget: an answer may be shorter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from contract.conditions import Condition
from contract.formats import Variant, asking
from contract.forms import Annotation, Form
from contract.models import GeminiModel, Model
from contract.pools import Pool
from contract.recorded import RecordedModel
from contract.tokens import estimate_tokens
from producer.loaded_study import LoadedStudy
from producer.plan import as_asked, plan_conditions

DAY_S = 86_400.0
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Volume:
    """The jobs of one condition, with the tokens of their prompts (estimated) and of their answers at most.

    Thinking that is billed as part of an answer counts as one.
    `prompt_tokens` is None where the data file is not at hand; then the number of jobs is what the dataset expects.
    """

    condition: Condition
    jobs: int
    prompt_tokens: int | None
    answer_tokens: int

    @property
    def expected(self) -> bool:
        """Whether the jobs are counted by expectation, without the file."""
        return self.prompt_tokens is None

    def left(self, done: int) -> "Volume":
        """What is left of it when `done` of its jobs are done, each taken for an average one."""
        share = 1 - min(done, self.jobs) / self.jobs if self.jobs else 0.0
        return Volume(
            condition=self.condition,
            jobs=max(0, self.jobs - done),
            prompt_tokens=None if self.prompt_tokens is None else round(self.prompt_tokens * share),
            answer_tokens=round(self.answer_tokens * share),
        )


def volumes(loaded: LoadedStudy) -> Iterator[Volume]:
    """The volume of every condition of the study, in plan order; nobody is sent anything for recorded answers."""
    measured: dict[tuple[str, Form, Variant], tuple[int, int]] = {}
    for condition, _ in plan_conditions(loaded).values():
        key = condition.dataset, condition.format, condition.variant
        if condition.dataset in loaded.expected:
            items, tokens = loaded.expected[condition.dataset], None
        else:
            if key not in measured:
                measured[key] = _measure(loaded, condition)
            items, tokens = measured[key]
        jobs = items * loaded.study.repeats
        sent = not isinstance(condition.model, RecordedModel)
        yield Volume(
            condition=condition,
            jobs=jobs,
            prompt_tokens=None if tokens is None else sent * tokens * loaded.study.repeats,
            answer_tokens=sent * jobs * (condition.format.sampling.max_tokens + _thinking(condition.model)),
        )


def _thinking(model: Model) -> int:
    """The tokens that an answer may spend on thinking beyond its own; rather too many where a name does not tell."""
    if not isinstance(model, GeminiModel):
        return 0
    name = model.model.removeprefix("models/")
    can_be_off = name.startswith("gemini-2.5-") and "-pro" not in name
    return 0 if can_be_off and model.options.thinking == "off" else model.options.room


def _measure(loaded: LoadedStudy, condition: Condition) -> tuple[int, int]:
    """How many jobs a repeat has, and the tokens of their prompts.

    What is shown of an earlier answer is not known yet and taken for as long as the first choice.
    """
    form, variant = condition.format, condition.variant
    jobs = tokens = 0
    for item in (as_asked(form, item) for item in loaded.items[condition.dataset]):
        if isinstance(form, Annotation) or variant in asking.variants(form, item):
            for part in asking.parts(form, item):
                sent = asking.render(form, item, variant, condition.prompt, earlier=item.choices[0], part=part)
                jobs, tokens = jobs + 1, tokens + estimate_tokens(sent)
    return jobs, tokens


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What there is to ask one model with: slots of workers, seconds a job takes in one of them, pools.

    `slots` is 0 where no worker serves it, `pace_s` None where no job of it was done. `used_today` counts the calls of
    each pool's day, `next_day_s` the seconds until the next one begins.
    """

    slots: int = 0
    pace_s: float | None = None
    pools: tuple[Pool, ...] = ()
    used_today: Mapping[str, int] = field(default_factory=dict)
    next_day_s: float = DAY_S


@dataclass(frozen=True, kw_only=True)
class Duration:
    """How long so many calls take, and what they wait for most."""

    seconds: float
    binding: str


def duration(jobs: int, prompt_tokens: int | None, answer_tokens: int, capacity: Capacity) -> Duration | None:
    """The time that `jobs` calls take with this capacity, all of it theirs; None where nothing is known of it.

    Several pools are used together. Where the requests of a day bind, it is the time until the last day begins.
    """
    found = [*_of_pools(jobs, prompt_tokens, answer_tokens, capacity), *_of_slots(jobs, capacity)]
    return max(found, key=lambda each: each.seconds, default=None)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What is left to ask one model, and what there is to ask it with.

    `in_turn`: it shares its hosts with all models of which that is said, one at a time.
    """

    model: str
    jobs: int
    prompt_tokens: int | None
    answer_tokens: int
    capacity: Capacity
    in_turn: bool = False

    @property
    def alone(self) -> Duration | None:
        """The time that it takes while no other model is asked; None where nothing is known of it."""
        return duration(self.jobs, self.prompt_tokens, self.answer_tokens, self.capacity) if self.jobs else None


def together(loads: Sequence[Load]) -> tuple[Duration | None, tuple[str, ...]]:
    """The time of all loads, and the models of which none is known; with any of those it is None.

    Models that share pools use all of them for the sum of their jobs, those that take turns wait for each other, and
    the slowest of these groups is what is waited for. Models that share nothing but workers are taken for independent.
    """
    left = [load for load in loads if load.jobs]
    unknown = tuple(load.model for load in left if load.alone is None)
    found = [] if unknown else [_of_group(group) for group in _groups(left)]
    return max(found, key=lambda each: each.seconds, default=None), unknown


def _groups(loads: Sequence[Load]) -> list[list[Load]]:
    """The loads, those that share hosts or pools together, be it through a third one."""
    groups: list[list[Load]] = []
    for load in loads:
        met = [group for group in groups if any(_share(load, other) for other in group)]
        apart = [group for group in groups if not any(_share(load, other) for other in group)]
        groups = [*apart, [*(other for group in met for other in group), load]]
    return groups


def _share(one: Load, other: Load) -> bool:
    names = {pool.name for pool in one.capacity.pools}
    return (one.in_turn and other.in_turn) or any(pool.name in names for pool in other.capacity.pools)


def _of_group(group: Sequence[Load]) -> Duration:
    """The time of loads that are all known; one after the other where the pools do not tell it for all at once."""
    alone = [load.alone for load in group if load.alone is not None]
    if len(alone) == 1:
        return alone[0]
    names = " and ".join(load.model for load in group)
    one_by_one = Duration(seconds=sum(each.seconds for each in alone), binding=f"{names} in turn")
    shared = None if any(load.in_turn for load in group) else _of_shared_pools(group)
    return max(shared or one_by_one, *alone, key=lambda each: each.seconds)


def _of_shared_pools(group: Sequence[Load]) -> Duration | None:
    prompts = [load.prompt_tokens for load in group if load.prompt_tokens is not None]
    paces = [load.jobs * load.capacity.pace_s for load in group if load.capacity.pace_s is not None]
    jobs = sum(load.jobs for load in group)
    pools = {pool.name: pool for load in group for pool in load.capacity.pools}
    capacity = Capacity(
        pace_s=sum(paces) / jobs if len(paces) == len(group) else None,
        pools=tuple(pools.values()),
        used_today={name: used for load in group for name, used in load.capacity.used_today.items()},
        next_day_s=max(load.capacity.next_day_s for load in group),
    )
    all_prompts = sum(prompts) if len(prompts) == len(group) else None
    return duration(jobs, all_prompts, sum(load.answer_tokens for load in group), capacity)


def cost(
    prompt_tokens: int | None, answer_tokens: int, pools: Sequence[Pool], *, retries: int = 0
) -> tuple[float, float] | None:
    """US dollars for the prompts alone and at most, at the dearest of the pools' prices.

    At most: every answer at its budget, and every job asked again `retries` times. None where no price or no prompt is
    known.
    """
    prices = [pool.prices for pool in pools if pool.prices is not None]
    if not prices or prompt_tokens is None:
        return None
    prompts = prompt_tokens * max(price.input for price in prices) / MILLION
    answers = answer_tokens * max(price.output for price in prices) / MILLION
    return prompts, (prompts + answers) * (1 + retries)


def _of_pools(jobs: int, prompt_tokens: int | None, answer_tokens: int, capacity: Capacity) -> Iterator[Duration]:
    pools = capacity.pools
    if not pools:
        return
    names = " and ".join(pool.name for pool in pools)
    if all(pool.rpm for pool in pools):
        rate = sum(pool.pace_share * (pool.rpm or 0) / pool.window_s for pool in pools)
        yield Duration(seconds=jobs / rate, binding=f"requests a minute of {names}")
    if prompt_tokens is not None and all(pool.tpm for pool in pools):
        tokens = max(pool.tokens(prompt_tokens, answer_tokens) for pool in pools)
        rate = sum(pool.pace_share * (pool.tpm or 0) / pool.window_s for pool in pools)
        yield Duration(seconds=tokens / rate, binding=f"tokens a minute of {names}")
    if all(pool.requests_a_day for pool in pools):
        yield Duration(seconds=_wait(jobs, capacity), binding=f"requests a day of {names}")
    if capacity.pace_s and all(pool.concurrency for pool in pools):
        places = sum(pool.concurrency or 0 for pool in pools)
        yield Duration(seconds=jobs * capacity.pace_s / places, binding=f"calls at once of {names}")


def _of_slots(jobs: int, capacity: Capacity) -> Iterator[Duration]:
    if capacity.slots and capacity.pace_s:
        yield Duration(seconds=jobs * capacity.pace_s / capacity.slots, binding=f"{capacity.slots} slots of workers")


def _wait(jobs: int, capacity: Capacity) -> float:
    """The seconds until the day begins on which the last call may be made; 0 if today is enough."""
    a_day = sum(pool.requests_a_day or 0 for pool in capacity.pools)
    used = sum(min(pool.requests_a_day or 0, capacity.used_today.get(pool.name, 0)) for pool in capacity.pools)
    days = ceil((jobs - (a_day - used)) / a_day)
    return capacity.next_day_s + (days - 1) * DAY_S if days > 0 else 0.0
