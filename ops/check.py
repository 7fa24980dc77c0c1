"""Is everything there that a study needs? Looked at before it is run: one line each, with what to do about it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, text

from contract.pool_state import pool_states
from contract.pools import Pool
from ops.presence import why_nobody_dispatches
from ops.schema import pending_migrations
from producer.forecast import volumes
from producer.loaded_study import LoadedStudy

CLOCKS_MAY_DIFFER_S = 2.0
BYTES_A_JOB = 4_000
"""What a job with its attempts and indexes takes in Postgres, roughly; the texts of long answers come on top."""
LEAST_FREE = 1_000_000_000


class State(StrEnum):
    """How a line of the check came out."""

    OK = "ok"
    WARN = "warn"  # the study can run, but a person should know
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that was looked at. `remedy` is what to do, None where nothing is."""

    state: State
    about: str
    said: str
    remedy: str | None = None


def ok(about: str, said: str) -> Line:
    """All is well."""
    return Line(state=State.OK, about=about, said=said)


def check_data(loaded: LoadedStudy) -> Iterator[Line]:
    """The study's datasets, which were read."""
    for dataset in loaded.study.datasets:
        expected, found = loaded.expected.get(dataset.name), loaded.files[dataset.name]
        if expected is not None and found.to_fetch:
            said = f"must be fetched from {found.to_fetch[0].shown}; {expected:,} items are expected"
            remedy = "`bothways run` fetches it, `bothways fetch` does so before"
            yield Line(state=State.WARN, about=f"data {dataset.name}", said=said, remedy=remedy)
            continue
        if expected is not None:
            remedy = f"give the file with --data {dataset.name}=PATH (of build: --from PATH)"
            said = f"its file is not at hand; {expected:,} items are expected"
            yield Line(state=State.FAIL, about=f"data {dataset.name}", said=said, remedy=remedy)
            continue
        as_said = "" if dataset.expect is None else ", as expected"
        fetched = ", fetched already" if any(file.fetched for file in found.all) else ""
        yield ok(f"data {dataset.name}", f"{len(loaded.items[dataset.name]):,} items{as_said}{fetched}")


def check_schema(engine: Engine) -> Line:
    """Whether the tables are those of this version."""
    missing = pending_migrations(engine)
    if not missing:
        return ok("tables", "up to date")
    remedy = "run `bothways migrate`"
    return Line(state=State.FAIL, about="tables", said=f"{missing} changes behind this version", remedy=remedy)


def check_clocks(engine: Engine, broker: Redis) -> Iterator[Line]:
    """Whether this clock, that of Postgres and that of the broker agree: days of quotas begin by them."""
    for about, theirs in (("Postgres", _postgres_now(engine)), ("the broker", _broker_now(broker))):
        off_s = abs((datetime.now(UTC) - theirs).total_seconds())
        if off_s <= CLOCKS_MAY_DIFFER_S:
            yield ok("clocks", f"{about} is {off_s:.1f} s off")
        else:
            remedy = "let both machines set their clocks by the network (NTP)"
            yield Line(state=State.FAIL, about="clocks", said=f"{about} is {off_s:.0f} s off", remedy=remedy)


def check_disk(loaded: LoadedStudy, folder: Path) -> Line:
    """Whether the disk of the embedded stack, which keeps its state in `folder`, has room for the study's results."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free, jobs = shutil.disk_usage(place).free, sum(volume.jobs for volume in volumes(loaded))
    needed = max(LEAST_FREE, jobs * BYTES_A_JOB)
    said = f"{free / 1e9:,.1f} GB free at {place}, some {needed / 1e9:,.1f} GB may be needed"
    if free > needed:
        return ok("disk", said)
    return Line(
        state=State.FAIL, about="disk", said=said, remedy="make room, or name another folder with BOTHWAYS_STATE"
    )


def check_workers(engine: Engine, workers: int) -> Iterator[Line]:
    """Whether somebody would ask, and somebody would queue."""
    if workers:
        yield ok("workers", f"{workers} at work")
    else:
        remedy = "start `bothways up`, or `bothways worker` on each host"
        yield Line(state=State.WARN, about="workers", said="none is at work", remedy=remedy)
    with engine.connect() as connection:
        problem = why_nobody_dispatches(connection)
    if problem is None:
        yield ok("dispatcher", "at work")
    else:
        remedy = "`bothways run --wait`, `bothways up` or `bothways dispatch` brings one"
        yield Line(state=State.WARN, about="dispatcher", said=problem, remedy=remedy)


def check_pools(broker: Redis, used: list[str], pools: dict[str, Pool], environment: dict[str, str]) -> Iterator[Line]:
    """Whether the pools that the study's models name are there, have their keys here, and are open."""
    states = pool_states(broker, used)
    for name in used:
        pool, state = pools.get(name), states[name]
        if pool is None:
            known = ", ".join(pools) or "there is none here"
            remedy = f"add it to the pools file, or name another pool ({known})"
            yield Line(state=State.FAIL, about=f"pool {name}", said="is not in the pools file", remedy=remedy)
        elif pool.api_key_env is not None and not environment.get(pool.api_key_env, "").strip():
            remedy = "set it where the workers run"
            said = f"its key's variable {pool.api_key_env} is not set here"
            yield Line(state=State.WARN, about=f"pool {name}", said=said, remedy=remedy)
        elif state.paused_until is not None:
            said = f"paused until {state.paused_until:%Y-%m-%d %H:%M:%S} UTC: {state.reason}"
            yield Line(state=State.WARN, about=f"pool {name}", said=said, remedy="it goes on by itself")
        else:
            yield ok(f"pool {name}", "open")


def _postgres_now(engine: Engine) -> datetime:
    with engine.connect() as connection:
        now: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    return now


def _broker_now(broker: Redis) -> datetime:
    seconds, microseconds = broker.time()
    return datetime.fromtimestamp(seconds + microseconds / 1e6, UTC)


def answers(broker: Redis) -> bool:
    """Whether the broker does."""
    try:
        return bool(broker.ping())
    except RedisError:
        return False
