"""Arguments that many commands share, and the study's name behind what a person typed."""

from pathlib import Path
from typing import Annotated

import typer

from contract.errors import UsageError

StudyFile = Annotated[Path, typer.Argument(help="The study file (YAML).", show_default=False)]
StudyName = Annotated[str, typer.Argument(help="A study's name, or its file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
OneModel = Annotated[str | None, typer.Option(help="Only this model, by the name that the study gives it.")]
Models = Annotated[list[str] | None, typer.Option("--model", help="Only this model; may be given several times.")]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset; may be given several times.")]


DataPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--data", metavar="NAME=PATH", help="Where the file of a dataset is, or its address; may be repeated."
    ),
]


def study_name(study: str) -> str:
    """A name as it is; a study file by what it says."""
    if not study.endswith((".yaml", ".yml")):
        return study
    from producer.study_file import study_name as name_in

    return name_in(Path(study))


def listed(values: list[str] | None) -> tuple[str, ...] | None:
    """What an option that may be given several times holds; None if it was not given."""
    return tuple(values) if values else None


def data_paths(data: list[str] | None) -> dict[str, str]:
    """The paths or addresses that --data names, by dataset; UsageError for an entry of another form."""
    paths = {}
    for entry in data or ():
        name, separator, path = entry.partition("=")
        if not (name and separator and path):
            raise UsageError(f"--data takes NAME=PATH, with the dataset's name; not {entry!r}")
        paths[name] = path
    return paths
