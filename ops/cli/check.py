"""Is everything there that a study needs? Green and red lines, with what to do."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from redis.exceptions import RedisError
from rich.text import Text

from contract.database import place
from contract.errors import InputError, StackError
from contract.models import pools_of
from contract.settings import state_folder
from ops.check import (
    Line,
    State,
    check_clocks,
    check_data,
    check_disk,
    check_pools,
    check_schema,
    check_workers,
    ok,
)
from ops.check_models import check_models
from ops.cli.connect import connect
from ops.cli.machines import known_pools
from ops.cli.names import DataPaths, Json, StudyFile, data_paths
from ops.cli.terminal import Exit, out, print_json, visible
from ops.hosts import read_workers
from producer.study_file import read_study

_COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red"}


def check(
    study: StudyFile,
    data: DataPaths = None,
    calls: Annotated[bool, typer.Option(help="Ask each model of an API one question, as a worker would first.")] = True,
    as_json: Json = False,
) -> None:
    """Look whether all that a study needs is there: file, data, stack, clocks, disk, quotas, keys, models.

    Costs at most one call for each model of an API. Models of GPU hosts are looked for in what the hosts' workers tell.
    What was stopped and goes well now is started again. Ends with 2 for a mistake in a file, with 3 without a stack,
    with 4 where something else is red.

    \b
    bothways check studies/demo.yaml
    bothways check study.yaml --no-calls --json
    """
    lines: list[Line] = []
    code = Exit.DONE
    try:
        for line in _looked_at(study, data_paths(data), calls=calls):
            lines.append(line)
            if line.state is State.FAIL:
                code = code or (Exit.USAGE if line.about.startswith("data ") else Exit.STUCK)
    except InputError as error:
        code = Exit.USAGE
        lines.append(Line(state=State.FAIL, about="file", said=str(error), remedy="mend it"))
    except (StackError, RedisError) as error:
        code = Exit.NO_STACK
        lines.append(Line(state=State.FAIL, about="stack", said=str(error)))
    _tell(lines, as_json=as_json)
    raise typer.Exit(code)


def _looked_at(study: Path, data: dict[str, str], *, calls: bool) -> Iterator[Line]:
    """The lines, one after the other; InputError or StackError where nothing more can be seen."""
    loaded = read_study(study, data=data, may_lack_data=True)
    yield ok("study file", str(study))
    yield from check_data(loaded)
    pools = known_pools()
    if pools:
        yield ok("pools file", f"{len(pools)} pools")
    connected = connect(tables=False)
    yield ok("Postgres", place(connected.engine))
    schema = check_schema(connected.engine)
    yield schema
    broker = connected.broker()
    yield ok("broker", "answers")
    yield from check_clocks(connected.engine, broker)
    if "BOTHWAYS_DATABASE_URL" not in os.environ:
        yield check_disk(loaded, state_folder())
    if schema.state is not State.OK:
        return
    workers = [worker for worker in read_workers(connected.engine) if not worker.gone]
    yield from check_workers(connected.engine, len(workers))
    used = list(dict.fromkeys(name for model in loaded.study.asked_models for name in pools_of(model)))
    yield from check_pools(broker, used, pools, dict(os.environ))
    yield from check_models(connected.engine, connected.settings, broker, loaded, pools, calls=calls)


def _tell(lines: list[Line], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    for line in lines:
        told = Text(f"{line.state:<5}", style=_COLOURS[line.state])
        told.append(visible(f"{line.about}: {line.said}"), style="default")
        if line.remedy is not None:
            told.append(visible(f"\n      {line.remedy}"), style="default")
        out.print(told)
