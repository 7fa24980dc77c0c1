"""How the pools stand, as the gate has left it in the broker; the file of pools is not needed for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from redis import Redis

from contract.pools import FIELDS, held_key, pool_key


@dataclass(frozen=True, kw_only=True)
class PoolState:
    """One pool just now.

    `paused_until` (UTC) and `reason` are None unless it is paused. `factor` is the part of its pace that it keeps since
    it was throttled, 1 if it was not. `used_today` counts the calls of its day, None where nobody counted; `held` the
    calls in flight.
    """

    paused_until: datetime | None
    paused_s: float
    reason: str | None
    factor: float
    used_today: int | None
    held: int


def pool_states(redis: Redis, names: Iterable[str]) -> dict[str, PoolState]:
    """The state of each named pool, in one round trip; a pool that was never used is not paused.

    `redis` must decode responses. Raises RedisError.
    """
    names = list(dict.fromkeys(names))
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.time()
        for name in names:
            pipeline.hmget(pool_key(name), list(FIELDS))
            pipeline.zrange(held_key(name), 0, -1, withscores=True)
        (seconds, microseconds), *replies = pipeline.execute()
    now = seconds * 1000 + microseconds / 1000
    return {
        name: _state(dict(zip(FIELDS, values, strict=True)), [end for _, end in held], now)
        for name, values, held in zip(names, replies[::2], replies[1::2], strict=True)
    }


def _state(fields: dict[str, str | None], ends: list[float], now: float) -> PoolState:
    until = float(fields["paused_until"] or 0)
    paused = until > now
    counted = float(fields["day_end"] or 0) > now
    return PoolState(
        paused_until=datetime.fromtimestamp(until / 1000, UTC) if paused else None,
        paused_s=max(0.0, until - now) / 1000,
        reason=fields["reason"] if paused else None,
        factor=float(fields["factor"] or 1),
        used_today=int(fields["used"] or 0) if counted else None,
        held=sum(end > now for end in ends),
    )
