"""What is left of each pool: its limits from the file, how it stands from the broker, who uses it from Postgres."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection, Engine, text

from contract.database import postgres_errors
from contract.errors import StackError
from contract.pool_state import PoolState, pool_states
from contract.pools import Pool, day_start, next_boundaries

_USED_BY = text("""
    SELECT pool, array_agg(DISTINCT condition.model ORDER BY condition.model) AS models
    FROM condition JOIN study ON study.id = condition.study CROSS JOIN LATERAL jsonb_array_elements_text(
        CASE jsonb_typeof(rules -> 'model' -> 'pools') WHEN 'array' THEN rules -> 'model' -> 'pools' ELSE '[]' END
    ) AS pool
    WHERE study.state <> 'cancelled' GROUP BY pool ORDER BY pool
""")
_TODAY = text("""
    SELECT (SELECT count(*) FROM attempt WHERE pool = :pool AND started_at >= :since)
         + (SELECT count(*) FROM canary WHERE pool = :pool AND started_at >= :since) AS calls
""")


@dataclass(frozen=True, kw_only=True)
class PoolSeen:
    """One pool: `limits` is None where the file here does not have it.

    `used_today` counts the calls of its day, `left_today` what the share leaves of it (None without a daily limit);
    `day_ends` is when the next day begins.
    """

    name: str
    limits: Pool | None
    models: tuple[str, ...]
    state: PoolState
    used_today: int | None
    left_today: int | None
    day_ends: datetime | None


def read_pools_seen(engine: Engine, broker: Redis, pools: Mapping[str, Pool]) -> list[PoolSeen]:
    """The pools of the file and those that studies name; StackError without a broker."""
    with postgres_errors(engine), engine.connect() as connection:
        used_by = {row.pool: tuple(row.models) for row in connection.execute(_USED_BY)}
    names = sorted({*pools, *used_by})
    try:
        states = pool_states(broker, names)
    except RedisError as error:
        raise StackError(
            f"the broker does not answer ({type(error).__name__}); what is left of pools is there"
        ) from None
    return [_seen(engine, name, pools.get(name), used_by.get(name, ()), states[name]) for name in names]


def _seen(engine: Engine, name: str, limits: Pool | None, models: tuple[str, ...], state: PoolState) -> PoolSeen:
    used = state.used_today
    left = ends = None
    if limits is not None and limits.requests_a_day is not None:
        now = datetime.now(UTC)
        used = _calls_since(engine, name, day_start(limits, now)) if used is None else used
        left, ends = max(0, limits.requests_a_day - used), next_boundaries(limits, now)[0]
    return PoolSeen(
        name=name, limits=limits, models=models, state=state, used_today=used, left_today=left, day_ends=ends
    )


def _calls_since(engine: Engine, name: str, since: datetime) -> int:
    """The calls of a day that no worker has counted yet, as they are stored."""
    with postgres_errors(engine), engine.connect() as connection:
        return calls_since(connection, name, since)


def calls_since(connection: Connection, name: str, since: datetime) -> int:
    """The calls through a pool that are stored, jobs' and first contacts'."""
    calls: int = connection.execute(_TODAY, {"pool": name, "since": since}).scalar_one()
    return calls
