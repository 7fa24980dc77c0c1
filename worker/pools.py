"""The gate before every call of a model with pools: limits hold for all workers together, by the clock of the broker.

`pool_gate.lua` decides; here is what it is asked. Without the broker nobody may call: no answer is a denial.
"""

import logging
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any
from uuid import uuid4

from redis import Redis
from redis.exceptions import RedisError

from contract.pool_state import PoolState, pool_states
from contract.pools import Pool
from worker.pool_line import Line
from worker.pool_script import PoolScript

THROTTLED = "told to slow down"
EXHAUSTED = "the day's quota is spent"

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 600.0
LONGEST_NAMED_S = 86_400.0
YOUNG_DAY_PAUSE_S = 60.0
BROKER_WAIT_S = 5.0
SHORTEST_SLEEP_S = 0.05
_COUNT_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Used:
    """What a pool's day has seen by the attempts that are stored: calls begun since it began, and whether it is spent.

    `exhausted`: one of them came back saying so. Such a word from the day's first two minutes may be about the day
    before and does not count.
    """

    requests: int
    exhausted: bool


@dataclass(frozen=True, kw_only=True)
class Permit:
    """One call may go, and must be settled. `tokens` of it were reserved; `granted_ms` is the broker's clock."""

    id: str
    pool: str
    tokens_in: int
    tokens_out: int
    tokens: int
    granted_ms: float


@dataclass(frozen=True, kw_only=True)
class Denied:
    """No call now; ask again after `wait_s`. The reason is that of the pool that told the shortest wait."""

    wait_s: float
    reason: str
    pool: str


class Gate:
    """The pools of a file, as all workers share them.

    `redis` decodes responses, has time-outs of its own and may be used by all threads. `used` tells what a pool has
    seen since its day began; it is asked when the broker does not know, and what it raises is raised here.
    """

    def __init__(self, redis: Redis, pools: Mapping[str, Pool], used: Callable[[Pool, datetime], Used]) -> None:
        self.pools = pools
        self._redis = redis
        self._used = used
        self._script = PoolScript(redis, pools)
        self._told: dict[str, tuple[float, Denied]] = {}
        self._lines: dict[tuple[str, ...], Line] = {}

    def permit(self, names: Sequence[str], *, tokens_in: int, tokens_out: int, lease_s: float) -> Permit | Denied:
        """A permit of whichever named pool can go first, by the tokens that the call is expected to take.

        A place among the calls at once is free again after `lease_s`, whatever becomes of the caller. A denial changes
        nothing. KeyError for a pool that the file lacks; the broker's absence is a denial.
        """
        told: list[Denied] = []
        for name in sorted(names, key=self._known_wait):
            try:
                outcome = self._ask(name, tokens_in, tokens_out, lease_s)
            except RedisError as error:
                reason = f"the broker does not answer ({type(error).__name__})"
                return Denied(wait_s=BROKER_WAIT_S, reason=reason, pool=name)
            if isinstance(outcome, Permit):
                self._told.pop(name, None)
                return outcome
            self._told[name] = (time.monotonic() + outcome.wait_s, outcome)
            told.append(outcome)
        return min(told, key=lambda denied: denied.wait_s)

    def await_permit(
        self,
        names: Sequence[str],
        *,
        tokens_in: int,
        tokens_out: int,
        lease_s: float,
        longest_s: float,
        stopping: Event,
    ) -> Permit | Denied:
        """`permit`, waited for in place while it takes `longest_s` at most; a longer wait is told at once.

        Threads of this process that name the same pools take turns, first come, first served; who wants to wait for
        nothing asks beside them.
        """
        if longest_s <= 0:
            return self.permit(names, tokens_in=tokens_in, tokens_out=tokens_out, lease_s=lease_s)
        until = time.monotonic() + longest_s
        line = self._lines.setdefault(tuple(names), Line())
        with line.turn(until, stopping) as ours:
            if not ours:
                return self._not_reached(names, stopping)
            while True:
                outcome = self.permit(names, tokens_in=tokens_in, tokens_out=tokens_out, lease_s=lease_s)
                if isinstance(outcome, Permit) or outcome.wait_s > until - time.monotonic():
                    return outcome
                if stopping.wait(max(SHORTEST_SLEEP_S, outcome.wait_s)):
                    return outcome

    def states(self, names: Collection[str]) -> dict[str, PoolState]:
        """How these pools stand; empty where the broker does not answer."""
        try:
            return pool_states(self._redis, names)
        except RedisError:
            return {}

    def settle(self, permit: Permit, *, tokens_in: int | None, tokens_out: int | None) -> None:
        """The call gave a completion: what it really took replaces what was reserved; None where nobody told."""
        known = (
            permit.tokens_in if tokens_in is None else tokens_in,
            permit.tokens_out if tokens_out is None else tokens_out,
        )
        self._end(permit, "settled", difference=self.pools[permit.pool].tokens(*known) - permit.tokens)

    def throttled(self, permit: Permit, wait_s: float | None) -> None:
        """The provider asked for a pause of `wait_s`, or of nothing in particular: pause the pool and slow it down."""
        named = None if wait_s is None else 1000 * min(LONGEST_NAMED_S, max(1.0, wait_s))
        pauses = {"first_ms": 1000 * FIRST_PAUSE_S, "longest_ms": 1000 * LONGEST_PAUSE_S, "wait_ms": named}
        self._end(permit, "throttled", reason=THROTTLED, jitter=random.uniform(1.0, 1.1), **pauses)

    def exhausted(self, permit: Permit) -> None:
        """The provider says that the day is spent: pause until the next one, or a minute if this one has just begun."""
        days = self._script.days(self.pools[permit.pool])
        self._end(permit, "exhausted", reason=EXHAUSTED, young_ms=1000 * YOUNG_DAY_PAUSE_S, days=days)

    def release(self, permit: Permit) -> None:
        """The call failed in another way: its place is free, the request and its estimate stay counted."""
        self._end(permit, "released")

    def _known_wait(self, name: str) -> float:
        until, _ = self._told.get(name, (0.0, None))
        return max(0.0, until - time.monotonic())

    def _not_reached(self, names: Sequence[str], stopping: Event) -> Denied:
        """For who waited in line and whose time is over: what the line was told last."""
        told = [self._told[name][1] for name in names if name in self._told]
        soonest = min(told, key=lambda denied: self._known_wait(denied.pool), default=None)
        pool = names[0] if soonest is None else soonest.pool
        reason = "others were first" if soonest is None else soonest.reason
        wait_s = max(1.0, self._known_wait(pool))
        return Denied(wait_s=wait_s, reason="the worker is stopping" if stopping.is_set() else reason, pool=pool)

    def _ask(self, name: str, tokens_in: int, tokens_out: int, lease_s: float) -> Permit | Denied:
        pool = self.pools[name]
        call, tokens = uuid4().hex, pool.tokens(tokens_in, tokens_out)
        for _ in range(_COUNT_TRIES):
            days = self._script.days(pool)
            verdict, *told = self._script.tell(
                name, "permit", id=call, tokens=tokens, lease_ms=1000 * lease_s, days=days
            )
            if verdict == "granted":
                return Permit(
                    id=call,
                    pool=name,
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                    tokens=tokens,
                    granted_ms=float(told[0]),
                )
            if verdict == "denied":
                return Denied(wait_s=told[0] / 1000, reason=told[1], pool=name)
            self._count(pool, days[told[0] - 1], days[told[0]])
        return Denied(wait_s=1.0, reason="the day is just beginning", pool=name)

    def _count(self, pool: Pool, begins: datetime, ends: datetime) -> None:
        """Tell the broker what a day of the pool has seen so far, unless somebody was first."""
        used = self._used(pool, begins)
        day = {"day_end": ends, "used": used.requests, "exhausted": used.exhausted, "reason": EXHAUSTED}
        self._script.tell(pool.name, "count", **day)

    def _end(self, permit: Permit, verb: str, **more: Any) -> None:  # noqa: ANN401 - any JSON value
        """Tell what became of a call, once. Without the broker its lease ends by itself and the estimate stands."""
        known = {"id": permit.id, "tokens": permit.tokens, "granted_ms": permit.granted_ms}
        try:
            self._script.tell(permit.pool, verb, **known, **more)
        except RedisError as error:
            log.warning("pool %s was not told of a call that %s (%s)", permit.pool, verb, type(error).__name__)
