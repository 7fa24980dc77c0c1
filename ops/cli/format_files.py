"""The part of a report that sets answer formats side by side, of the datasets that such scores can be made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ops.cli.needs import needing
from ops.cli.terminal import text_width

if TYPE_CHECKING:
    from analysis.format_load import FormatAnswers
    from analysis.page import Part

FOLDER = "formats"


@dataclass(frozen=True, kw_only=True)
class DatasetFormats:
    """What was written of one dataset: its files, its part of the page, and the same as plain values."""

    dataset: str
    part: "Part"
    paths: tuple[Path, ...]
    data: dict[str, Any]


def write_formats(database_url: str, study: str, out_dir: Path, *, title_note: str | None) -> list[DatasetFormats]:
    """Score the BBQ and OpinionQA datasets of `study` and write formats/DATASET in `out_dir`; perhaps there are none.

    The answers are the final ones, those that were asked for again included.
    """
    with needing("report"):
        from analysis.format_load import load_formats

    found = load_formats(database_url, study)
    return [_write(one, out_dir, title_note) for one in found if len(one.bias) or len(one.opinions)]


def _write(found: "FormatAnswers", out_dir: Path, title_note: str | None) -> DatasetFormats:
    from analysis.format_load import notes_of, scores_of
    from analysis.format_report import write_format_report
    from analysis.page import Part

    folder = out_dir / FOLDER / found.dataset
    files = write_format_report(*scores_of(found), folder, title_note=title_note, width=text_width())
    text = "\n".join([files.text.rstrip("\n"), *notes_of([found])]) + "\n"
    part = Part(title=f"Answer formats: {found.dataset}", text=text, pictures=files.maps)
    return DatasetFormats(dataset=found.dataset, part=part, paths=files.paths, data=files.data)
