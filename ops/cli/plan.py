"""What a study will take, told before it is run."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from contract.errors import StackError
from ops.cli.connect import Connected, connect
from ops.cli.machines import known_pools
from ops.cli.names import DataPaths, Json, StudyFile, data_paths
from ops.cli.terminal import err, out, print_json, text_width, visible
from ops.cli.view import print_duration
from ops.forecast import Forecast, ModelForecast, Planned, forecast
from producer.loaded_study import LoadedStudy
from producer.study_file import read_study

DAYS_FROM_S = 2 * 86_400.0


def plan(
    study: StudyFile,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items of each dataset.")] = None,
    data: DataPaths = None,
    as_json: Json = False,
) -> None:
    """Say what a study asks, how long that takes and what it costs; writes nothing, asks nobody.

    Jobs are counted from the data files, or from what a dataset says to expect where its file is not at hand. Prompts
    are measured by their text, answers by their budget. What is done is taken off. Time is that of the workers and
    quotas at hand, all of them for this study: of each model as if it were alone, and of all of them together.

    \b
    bothways plan studies/demo.yaml
    bothways plan study.yaml --json
    """
    tell_plan(read_study(study, limit=limit, data=data_paths(data), may_lack_data=True), as_json=as_json)


def tell_plan(loaded: LoadedStudy, *, as_json: bool) -> None:
    """Print what `loaded` asks and takes."""
    connected = _connected()
    made = forecast(loaded, None if connected is None else connected.engine, known_pools(), now=datetime.now(UTC))
    if as_json:
        print_json(_json(made))
        return
    out.print(_table(made), width=text_width())
    for line in _lines(made):
        out.print(visible(line))
    if not made.known:
        err.print("no stack is up here: nothing counts as done, and of workers nothing is known")


def _connected() -> Connected | None:
    """The stack, if there is one: a plan needs none."""
    try:
        return connect()
    except StackError:
        return None


def _table(made: Forecast) -> Table:
    """A line for each model, dataset and format: its orders are one line where they have equally many jobs."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("model", "dataset", "format", "variants"):
        table.add_column(heading, overflow="fold")
    for heading in ("jobs", "done", "to do", "prompt tokens", "answer tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    for _, group in groupby(made.planned, key=_cell):
        table.add_row(*map(Text, _row(list(group))))
    return table


def _cell(planned: Planned) -> tuple[str, str, str]:
    condition = planned.volume.condition
    return condition.model.name, condition.dataset, condition.format.format


def _row(group: list[Planned]) -> tuple[str, ...]:
    left = [planned.left for planned in group]
    prompts = [each.prompt_tokens for each in left]
    known = [tokens for tokens in prompts if tokens is not None]
    expected = any(planned.volume.expected for planned in group)
    return (
        *_cell(group[0]),
        ", ".join(planned.volume.condition.variant.label for planned in group),
        f"{sum(planned.volume.jobs for planned in group):,}{' (expected)' if expected else ''}",
        f"{sum(planned.done for planned in group):,}",
        f"{sum(each.jobs for each in left):,}",
        f"{sum(known):,}" if len(known) == len(prompts) else "–",
        f"<= {sum(each.answer_tokens for each in left):,}",
    )


def _lines(made: Forecast) -> Iterator[str]:
    yield ""
    for model in made.models:
        yield f"{model.model}: {_told(model)}"
    yield f"in all: {_in_all(made)}"
    if any(planned.volume.expected for planned in made.planned):
        yield "(expected): the data file is not at hand; the number is what the dataset says to expect"


def _in_all(made: Forecast) -> str:
    told = f"{sum(model.jobs for model in made.models):,} jobs to do"
    if made.takes is not None:
        told += f", {_time(made.takes.seconds)} by {made.takes.binding}"
    elif made.untimed:
        told += f", how long is not known because of {', '.join(made.untimed)}"
    dollars = [model.dollars for model in made.models if model.dollars is not None]
    if dollars:
        told += f"; {_dollars(sum(low for low, _ in dollars), sum(high for _, high in dollars))}"
        told += f", without {', '.join(made.unpriced)}, whose costs are not known" if made.unpriced else ""
    return told


def _told(model: ModelForecast) -> str:
    if not model.jobs:
        return "nothing left to do"
    parts = [f"{model.jobs:,} jobs"]
    if model.takes is None:
        parts.append("how long is not known: no worker has told its pace, and no pool limits it")
    else:
        parts.append(f"alone {_time(model.takes.seconds)} by {model.takes.binding}")
    if model.dollars is not None:
        parts.append(_dollars(*model.dollars))
    if model.retries:
        parts.append(f"and up to {model.retries} more calls for each answer that cannot be read")
    return ", ".join(parts)


def _time(seconds: float) -> str:
    return f"about {seconds / 86_400:.1f} days" if seconds >= DAYS_FROM_S else f"about {print_duration(seconds)}"


def _dollars(low: float, high: float) -> str:
    return f"${low:,.2f} for the prompts, at most ${high:,.2f} with answers and retries"


def _json(made: Forecast) -> dict[str, Any]:
    return {
        "study": made.study,
        "known": made.known,
        "conditions": [
            {
                "model": planned.volume.condition.model.name,
                "dataset": planned.volume.condition.dataset,
                "format": planned.volume.condition.format.format,
                "variant": planned.volume.condition.variant.label,
                "stage": planned.volume.condition.stage,
                "jobs": planned.volume.jobs,
                "expected": planned.volume.expected,
                "done": planned.done,
                "to_do": planned.left.jobs,
                "prompt_tokens": planned.left.prompt_tokens,
                "answer_tokens_at_most": planned.left.answer_tokens,
            }
            for planned in made.planned
        ],
        "models": [asdict(model) for model in made.models],
        "takes": None if made.takes is None else asdict(made.takes),
        "time_not_known_of": made.untimed,
        "costs_not_known_of": made.unpriced,
    }
