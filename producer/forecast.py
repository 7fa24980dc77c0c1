"""How much a study asks, how long that takes and what it costs, before anything is written. Pure.

Jobs are counted by the plan's own rules, item by item and never job by job, so a million jobs cost no more than their
items. Prompts are measured by the text that would be sent, answers by their budget: an answer may be shorter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contract.conditions import Condition
from contract.formats import Variant, closed
from contract.pools import Pool
from contract.tokens import estimate_tokens
from producer.plan import plan_conditions
from producer.study_file import LoadedStudy

DAY_S = 86_400.0
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Volume:
    """The jobs of one condition, with the tokens of their prompts (estimated) and of their answers at most.

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
    """The volume of every condition of the study, in plan order."""
    measured: dict[tuple[str, Variant], tuple[int, int]] = {}
    for condition, _ in plan_conditions(loaded).values():
        key = condition.dataset, condition.variant
        if condition.dataset in loaded.expected:
            items, tokens = loaded.expected[condition.dataset], None
        else:
            if key not in measured:
                measured[key] = _measure(loaded, condition)
            items, tokens = measured[key]
        jobs = items * loaded.study.repeats
        yield Volume(
            condition=condition,
            jobs=jobs,
            prompt_tokens=None if tokens is None else tokens * loaded.study.repeats,
            answer_tokens=jobs * condition.format.sampling.max_tokens,
        )


def _measure(loaded: LoadedStudy, condition: Condition) -> tuple[int, int]:
    """How many items have the condition's variant, and the tokens of their prompts."""
    items = [item for item in loaded.items[condition.dataset] if condition.variant in closed.variants(item)]
    texts = (closed.render(item, condition.variant, condition.prompt) for item in items)
    return len(items), sum(estimate_tokens(text) for text in texts)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What there is to ask one model with: slots of workers, seconds a job takes in one of them, pools.

    `slots` is 0 where no worker serves it, `pace_s` None where no job of it was done. `used_today` counts the calls of
    each pool's day.
    """

    slots: int = 0
    pace_s: float | None = None
    pools: tuple[Pool, ...] = ()
    used_today: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Duration:
    """How long so many calls take, and what they wait for most."""

    seconds: float
    binding: str


def duration(jobs: int, prompt_tokens: int | None, answer_tokens: int, capacity: Capacity) -> Duration | None:
    """The time that `jobs` calls take with this capacity, all of it theirs; None where nothing is known of it.

    Several pools are used together. Where the requests of a day bind, days are what is left of today and whole ones.
    """
    found = [*_of_pools(jobs, prompt_tokens, answer_tokens, capacity), *_of_slots(jobs, capacity)]
    return max(found, key=lambda each: each.seconds, default=None)


def cost(prompt_tokens: int | None, answer_tokens: int, pools: Sequence[Pool]) -> tuple[float, float] | None:
    """US dollars for the prompts alone and with answers at their budgets, at the dearest of the pools' prices.

    None where no price or no prompt is known.
    """
    prices = [pool.prices for pool in pools if pool.prices is not None]
    if not prices or prompt_tokens is None:
        return None
    prompts = prompt_tokens * max(price.input for price in prices) / MILLION
    return prompts, prompts + answer_tokens * max(price.output for price in prices) / MILLION


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
        yield Duration(seconds=_days(jobs, capacity) * DAY_S, binding=f"requests a day of {names}")
    if capacity.pace_s and all(pool.concurrency for pool in pools):
        places = sum(pool.concurrency or 0 for pool in pools)
        yield Duration(seconds=jobs * capacity.pace_s / places, binding=f"calls at once of {names}")


def _of_slots(jobs: int, capacity: Capacity) -> Iterator[Duration]:
    if capacity.slots and capacity.pace_s:
        yield Duration(seconds=jobs * capacity.pace_s / capacity.slots, binding=f"{capacity.slots} slots of workers")


def _days(jobs: int, capacity: Capacity) -> float:
    """The days that pass until the last call may be made; 0 if today is enough."""
    a_day = sum(pool.requests_a_day or 0 for pool in capacity.pools)
    used = sum(min(pool.requests_a_day or 0, capacity.used_today.get(pool.name, 0)) for pool in capacity.pools)
    return max(0.0, (jobs - (a_day - used)) / a_day)
