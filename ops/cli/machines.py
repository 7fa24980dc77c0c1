"""Commands about who serves and what may be used: hosts, their health, and pools."""

import socket
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from contract.pools import Pool, read_pools
from contract.settings import pools_file
from ops.cli.connect import connect
from ops.cli.names import Json
from ops.cli.terminal import Exit, err, out, print_json, text_width, visible
from ops.cli.view import print_duration
from ops.hosts import WorkerSeen, read_workers
from ops.pools import PoolSeen, read_pools_seen
from ops.presence import heard_of
from ops.waiting import listed

SHOWN_MODELS = 12


def hosts(as_json: Json = False) -> None:
    """Show who serves what, since when and how fast, and what is left alone and why.

    \b
    bothways hosts
    bothways hosts --json
    """
    workers = read_workers(connect().engine)
    if as_json:
        print_json([asdict(worker) | {"gone": worker.gone} for worker in workers])
        return
    if not workers:
        err.print("no worker was seen in the last hour: start `bothways up`, or `bothways worker` on each host")
        return
    table = _table("worker", "host", "up for", "slots", "serves", "jobs/min")
    for worker in workers:
        table.add_row(*map(Text, _worker_cells(worker)))
    out.print(table, width=text_width())
    for line in _worker_lines(workers):
        out.print(visible(line))


def health(
    name: Annotated[
        str | None, typer.Option(help="Only the worker of this name; the dispatcher is called dispatcher.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say whether the workers and dispatchers of this machine live, for a container's health check.

    Ends with 4 when none was heard of in the last half minute.

    \b
    bothways health
    bothways health --name dispatcher
    """
    connected = connect()
    machine = connected.settings.machine or socket.gethostname()
    heard = heard_of(connected.engine, machine, name)
    if as_json:
        print_json([asdict(each) for each in heard])
    for each in heard if not as_json else ():
        out.print(visible(f"{each.name}: {each.age_s:.0f} s ago"))
    if not heard:
        wanted = name or "worker or dispatcher"
        err.print(visible(f"no {wanted} of {machine} was heard of in the last half minute"))
        raise typer.Exit(Exit.STUCK)


def pools(as_json: Json = False) -> None:
    """Show what is left of each quota, and which are paused, until when and why.

    \b
    bothways pools
    bothways pools --json
    """
    connected = connect()
    seen = read_pools_seen(connected.engine, connected.broker(), known_pools())
    if as_json:
        print_json([_pool_json(pool) for pool in seen])
        return
    if not seen:
        err.print("no pool: a pools.yaml here, or BOTHWAYS_POOLS, names them (docs/pools.md)")
        return
    table = _table("pool", "used by", "a minute", "today", "at once", "pace", "state")
    for pool in seen:
        table.add_row(*map(Text, _pool_cells(pool)))
    out.print(table, width=text_width())


def known_pools() -> dict[str, Pool]:
    """The pools of the file in force; none where there is no file."""
    path = pools_file()
    return {} if path is None else read_pools(path)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _worker_cells(worker: WorkerSeen) -> tuple[str, ...]:
    up_s = (datetime.now(UTC) - worker.since).total_seconds()
    since = f"silent for {print_duration(worker.age_s)}" if worker.gone else print_duration(up_s)
    serves = "\n".join(served.queue for served in worker.serves) or "nothing now"
    rates = (served.jobs_a_minute for served in worker.serves)
    speeds = "\n".join("–" if rate is None else f"{rate:,.0f}" for rate in rates)
    return visible(worker.worker), worker.endpoint or "–", since, str(worker.slots), serves, speeds


def _worker_lines(workers: list[WorkerSeen]) -> Iterator[str]:
    """What a table has no room for: models of hosts, what rests, what a person should know."""
    for worker in workers:
        if worker.models is not None:
            yield f"{worker.endpoint} has {listed(worker.models, SHOWN_MODELS)}"
        for rest in worker.resting:
            yield f"{worker.worker} leaves {rest.queue} alone until {_instant(rest.until)}: {rest.reason}"
        yield from (f"{worker.worker}: {note}" for note in worker.notes)


def _pool_cells(pool: PoolSeen) -> tuple[str, ...]:
    limits, state = pool.limits, pool.state
    minute = "not in the file here"
    if limits is not None:
        window = "" if limits.window_s == 60 else f" in {limits.window_s:g} s"
        told = [f"{limit:,} {word}" for limit, word in ((limits.rpm, "requests"), (limits.tpm, "tokens")) if limit]
        minute = "".join(f"{each}{window}\n" for each in told).rstrip() or "–"
    today = "–"
    if pool.used_today is not None:
        left = "" if pool.left_today is None or pool.day_ends is None else f", {pool.left_today:,} left"
        until = "" if pool.day_ends is None else f" until {_instant(pool.day_ends)}"
        today = f"{pool.used_today:,} used{left}{until}"
    at_once = f"{state.held:,}" + (f" of {limits.concurrency:,}" if limits and limits.concurrency else "")
    paused = state.paused_until
    how = "open" if paused is None else f"paused until {_instant(paused)}: {state.reason}"
    share = f"{state.factor:.0%}" + (f" of {limits.share:.0%}" if limits else "")
    return pool.name, ", ".join(pool.models) or "–", minute, today, at_once, share, visible(how)


def _pool_json(pool: PoolSeen) -> dict[str, Any]:
    limits = None if pool.limits is None else pool.limits.model_dump(mode="json", exclude={"api_key_env"})
    return asdict(pool) | {"limits": limits}


def _instant(instant: datetime) -> str:
    """An instant as people here read their clocks."""
    local = instant.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d %H:%M}"
