"""What the gate's script in the broker is told: the numbers of a pool, and when its days begin."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from redis import Redis

from contract.pools import Pool, day_start, held_key, next_boundaries, pool_key, tokens_key

SPENT = "the day's requests are spent"

LOG_WINDOWS = 1.05
"""Granted tokens are remembered so much longer than a window, for calls that arrive later than others."""


class PoolScript:
    """`pool_gate.lua` for the pools of a file. The client loads it again where the broker has lost it."""

    def __init__(self, redis: Redis, pools: Mapping[str, Pool]) -> None:
        self._script = redis.register_script((files("worker") / "pool_gate.lua").read_text(encoding="utf-8"))
        self._limits = {name: _limits(pool) for name, pool in pools.items()}
        self._days: dict[str, tuple[datetime, datetime, datetime]] = {}

    def tell(self, name: str, verb: str, **more: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
        """What the script answers to `verb` for the pool `name`; None is left out, instants become ms. RedisError."""
        asked = json.dumps(self._limits[name] | _known(more), default=_milliseconds)
        keys = [pool_key(name), held_key(name), tokens_key(name)]
        return list(self._script(keys=keys, args=[verb, asked]))

    def days(self, pool: Pool) -> tuple[datetime, datetime, datetime]:
        """When the present day began and when the next two begin, by this clock; the broker's may differ."""
        now, days = datetime.now(UTC), self._days.get(pool.name)
        if days is None or not days[0] <= now < days[1]:
            days = self._days[pool.name] = (day_start(pool, now), *next_boundaries(pool, now))
        return days


def _limits(pool: Pool) -> dict[str, Any]:
    """The pool in the script's numbers: milliseconds for each request and token; what is absent is not limited."""
    window_ms = 1000 * pool.window_s
    limits = {
        "window_ms": window_ms,
        "log_ms": LOG_WINDOWS * window_ms,
        "burst_ms": pool.burst * window_ms,
        "request_ms": window_ms / (pool.pace_share * pool.rpm) if pool.rpm else None,
        "token_ms": window_ms / (pool.pace_share * pool.tpm) if pool.tpm else None,
        "tokens_alone": pool.tokens_alone,
        "tokens_most": pool.tokens_most,
        "concurrency": pool.concurrency,
        "requests_a_day": pool.requests_a_day,
        "spent": SPENT,
    }
    return _known(limits)


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _milliseconds(instant: datetime) -> float:
    return instant.timestamp() * 1000
