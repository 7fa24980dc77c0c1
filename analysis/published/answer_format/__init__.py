"""What "Effects of Answer Format Variation on Gender Bias in LLMs" (arXiv 2608.17516) prints, all formats together.

bbq: Table 2, each model, subset and format over all variants, in per cent. opinion-qa: Figure 5, each model and format
over all conditions. Both to their printed digits. Table 3 prints means of resamples instead, which lie higher.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class PrintedBias:
    """A cell of Table 2, in per cent: 100 times the score. Formats are closed, likert and open."""

    model: str
    subset: str
    format: str
    s_dis: float
    s_amb: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class PrintedDistances:
    """The distances of one model and format from the human shares, 0 to 1."""

    model: str
    format: str
    w_dist: float
    js_dist: float
    composite: float


def printed_bias() -> tuple[PrintedBias, ...]:
    """Table 2, row by row, each with its three formats."""
    return tuple(
        PrintedBias(
            model=line["model"],
            subset=line["subset"],
            format=line["format"],
            s_dis=float(line["s_dis"]),
            s_amb=float(line["s_amb"]),
            accuracy=float(line["accuracy"]),
        )
        for line in _lines("bbq.csv")
    )


def printed_distances() -> tuple[PrintedDistances, ...]:
    """The OpinionQA distances, model by model, each with its three formats."""
    return tuple(
        PrintedDistances(
            model=line["model"],
            format=line["format"],
            w_dist=float(line["w_dist"]),
            js_dist=float(line["js_dist"]),
            composite=float(line["composite"]),
        )
        for line in _lines("opinion-qa.csv")
    )


def _lines(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO((files(__name__) / name).read_text(encoding="utf-8")))
