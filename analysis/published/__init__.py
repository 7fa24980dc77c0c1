"""What papers print, as far as it can be set beside what was measured: one CSV file a paper.

positional-bias: Table 1 of "Positional Bias in Binary Question Answering", to its printed digits. `n` is the number of
jobs in each order. Figure 2 prints no numbers.
"""

import csv
import io
from dataclasses import dataclass
from importlib.resources import files

_SUFFIX = ".csv"


@dataclass(frozen=True, kw_only=True)
class PrintedHalf:
    """One half of a row of Table 1: accuracy over all jobs, with invalid ones as wrong, and how many were invalid."""

    accuracy: float
    invalid: int


@dataclass(frozen=True, kw_only=True)
class PrintedRow:
    """A row of Table 1: one model on one dataset, `n` jobs in each order."""

    dataset: str
    model: str
    n: int
    correct_first: PrintedHalf
    wrong_first: PrintedHalf


def papers() -> tuple[str, ...]:
    """The names that `printed` knows."""
    found = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def printed(paper: str) -> tuple[PrintedRow, ...]:
    """The rows of a paper's table, in its order; ValueError with the known names for another one."""
    if paper not in papers():
        raise ValueError(f"no paper {paper!r}; known: {', '.join(papers())}")
    text = (files(__name__) / f"{paper}{_SUFFIX}").read_text(encoding="utf-8")
    return tuple(
        PrintedRow(
            dataset=line["dataset"],
            model=line["model"],
            n=int(line["n"]),
            correct_first=_half(line, "correct_first"),
            wrong_first=_half(line, "wrong_first"),
        )
        for line in csv.DictReader(io.StringIO(text))
    )


def _half(line: dict[str, str], name: str) -> PrintedHalf:
    return PrintedHalf(accuracy=float(line[f"{name}_accuracy"]), invalid=int(line[f"{name}_invalid"]))
