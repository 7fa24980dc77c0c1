"""The report as one HTML page that needs nothing else: no script, no other file, no host."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from analysis.columns import COLUMNS, DASH, Line, Topic, dataset_name, lines, notes, titled
from analysis.pairing import View
from analysis.tables import Report

_UNSEEN = re.compile(
    r"<!--.*?-->|<metadata>.*?</metadata>|<title>.*?</title>|\s(?:xmlns(?::xlink)?|version)=\"[^\"]*\"", re.DOTALL
)
_NAMED = re.compile(r"\b(id=\"|href=\"#|url\(#)")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as SVG, its letters drawn as paths, for a screen and perhaps another for a phone, and its title."""

    title: str
    wide: bytes
    narrow: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """What follows the tables of position bias: a title, tables as text, and pictures."""

    title: str
    text: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A line of a table: the model, which answers it shows, and its figures with the name of each."""

    model: str
    answers: str | None
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class _Section:
    """The lines of one dataset."""

    dataset: str
    entries: tuple[_Entry, ...]


@dataclass(frozen=True, kw_only=True)
class _Table:
    title: str
    answers: bool
    headings: tuple[str, ...]
    sections: tuple[_Section, ...]
    notes: tuple[str, ...]


def to_html(
    report: Report,
    pictures: Iterable[Picture],
    *,
    study: Mapping[str, Any],
    title_note: str | None = None,
    parts: Sequence[Part] = (),
) -> str:
    """The page; `study` says what it is of (name, revision, planned, finished, made_at), a dash stands for the rest."""
    # Read as text, so that the template is found wherever the package lies.
    source = (files("analysis") / "templates" / "report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(
        study={key: _said(study.get(key)) for key in ("name", "revision", "planned", "finished", "made_at")},
        title_note=title_note,
        partial=partial(report, study),
        figures=[_figure(picture, at) for at, picture in enumerate(pictures)],
        tables=[_table(report, topic, title_note) for topic in COLUMNS] if report.rows else [],
        general=_notes(report, None) if report.rows else [],
        parts=[_part(part, at) for at, part in enumerate(parts)],
    )


def partial(report: Report, study: Mapping[str, Any]) -> str | None:
    """What to warn of where jobs are missing or failed; None where every job has its say in the figures."""
    jobs = [row.jobs for row in report.rows if row.view is View.FINAL]
    failed = sum(each.failed for each in jobs)
    planned, finished = (study.get(key) or 0 for key in ("planned", "finished"))
    missing = max(sum(each.missing for each in jobs), planned - finished)
    if not failed and not missing:
        return None
    total = max(sum(each.planned for each in jobs), planned)
    return (
        f"Of {total:,} jobs {missing:,} are missing and {failed:,} failed. They are in no figure, and may change them."
    )


def inlined(svg: bytes, *, name: str, title: str) -> Markup:
    """The SVG as part of a page: without names of hosts, its ids made its own, with a text for those who cannot see.

    No text from outside stays in it: comments and title go, and its letters are paths.
    """
    text = svg.decode("utf-8")
    drawn = _UNSEEN.sub("", text[text.index("<svg") :]).replace("xlink:href", "href")
    own = _NAMED.sub(rf"\g<1>{name}-", drawn).removeprefix("<svg")
    return Markup('<svg role="img" aria-label="{}"').format(title) + Markup(own)  # noqa: S704 - see above


def _figure(picture: Picture, at: int | str) -> dict[str, str | None]:
    wide = inlined(picture.wide, name=f"wide-{at}", title=picture.title)
    narrow = None if picture.narrow is None else inlined(picture.narrow, name=f"narrow-{at}", title=picture.title)
    return {"title": picture.title, "wide": wide, "narrow": narrow}


def _part(part: Part, at: int) -> dict[str, Any]:
    figures = [_figure(picture, f"{at}-{place}") for place, picture in enumerate(part.pictures)]
    return {"title": part.title, "text": part.text, "figures": figures}


def _said(value: object) -> str:
    return DASH if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _table(report: Report, topic: Topic, title_note: str | None) -> _Table:
    shown = lines(report)
    return _Table(
        title=titled(topic, title_note),
        answers=any(line.answers for line in shown),
        headings=tuple(column.name for column in COLUMNS[topic]),
        sections=tuple(
            _Section(dataset=dataset, entries=tuple(_entry(line, topic) for line in of_dataset))
            for dataset, of_dataset in groupby(shown, key=lambda line: dataset_name(line.row))
        ),
        notes=tuple(_notes(report, topic)),
    )


def _entry(line: Line, topic: Topic) -> _Entry:
    figures = tuple((column.name, column.cell(line.row)) for column in COLUMNS[topic])
    return _Entry(model=line.row.model, answers=line.answers, figures=figures)


def _notes(report: Report, topic: Topic | None) -> list[str]:
    return [" ".join(note.text.split()) for note in notes(report) if note.about is topic]
