"""The page: one file that needs nothing else, in which nothing from outside is more than text."""

import re
from collections import Counter
from html.parser import HTMLParser

import polars as pl
import pytest

from analysis.drawing import encoded
from analysis.figures import PHONE, figure_two
from analysis.page import Picture, inlined, partial, to_html
from analysis.pairing import RESULT_SCHEMA
from analysis.tables import Report, build
from tests.unit.test_figures import MEASURED, UNMEASURED, grid
from tests.unit.test_tables import jobs, report

STUDY = {"name": "trial", "revision": 3, "planned": 1440, "finished": 1440, "made_at": "2026-01-02T03:04:05+00:00"}
EVIL = "<script>alert('1')</script>\" onload=\"x"
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """What a page consists of: its tags with their attributes, and its text by tag; unbalanced tags are an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._open[-1] if self._open else "", data.strip()))

    def all(self, tag: str) -> list[str]:
        return [text for of, text in self.texts if of == tag]


def page(made: Report, *, title_note: str | None = None, **study: object) -> str:
    wide, narrow = (encoded(figure_two(made, widest=widest), "svg", EVIL) for widest in (9.0, PHONE))
    pictures = [Picture(title=f"Figure {at} {EVIL}", wide=wide, narrow=narrow) for at in (1, 2)]
    return to_html(made, pictures, study=STUDY | study, title_note=title_note)


def test_names_from_outside_are_text_and_nothing_else() -> None:
    made = page(grid(2, 2, EVIL + "{}", "--></svg><b>{}"), title_note=EVIL, name=EVIL)
    read = Reader(made)
    assert not {"script", "b", "iframe", "object", "link"} & {tag for tag, _ in read.tags}
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    assert f"{EVIL}0" in read.all("th")
    assert "--></svg><b>1" in read.all("th")
    assert read.all("h1") == [f"{EVIL}: position bias ({EVIL})"]


def test_the_page_refers_to_nothing_outside_itself() -> None:
    made = page(MEASURED)
    assert "//" not in made.replace("</", "")
    assert not re.search(r"@import|\bsrc=|javascript:|data:", made)
    for tag, attributes in Reader(made).tags:
        for name in ("href", "src", "xlink:href", "action", "poster", "xmlns"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", made))
    assert "default-src 'none'" in made


def test_every_id_stands_once_and_every_reference_finds_its_own() -> None:
    made = page(grid(2, 5))
    ids = Counter(attributes["id"] for _, attributes in Reader(made).tags if "id" in attributes)
    assert max(ids.values()) == 1
    targets = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", made))
    assert targets
    assert targets <= set(ids)


def test_a_figure_has_a_text_for_those_who_cannot_see() -> None:
    labels = [attributes["aria-label"] for tag, attributes in Reader(page(MEASURED)).tags if tag == "svg"]
    assert labels == [f"Figure {at} {EVIL}" for at in (1, 1, 2, 2)]


def test_an_inlined_figure_keeps_no_text_of_the_file() -> None:
    svg = (
        b'<?xml version="1.0"?><svg version="1.1"><!-- - <i> --><title>t</title><metadata>m</metadata><g id="a"/></svg>'
    )
    assert inlined(svg, name="one", title="a & b") == '<svg role="img" aria-label="a &amp; b"><g id="one-a"/></svg>'


def test_the_page_says_what_it_is_of() -> None:
    read = Reader(page(MEASURED))
    assert read.all("dd") == ["trial", "3", "1,440 / 1,440", "2026-01-02 03:04:05+00:00"]
    unknown = to_html(MEASURED, [], study={})
    assert Reader(unknown).all("dd") == ["–", "–", "– / –", "–"]


def test_the_four_tables_have_their_figures_and_their_own_notes() -> None:
    read = Reader(page(MEASURED))
    titles = [title for title in read.all("h2") if title.startswith("Table")]
    assert [title[:7] for title in titles] == ["Table 1", "Table 2", "Table 3", "Table 4"]
    assert "0.900 [.699, .972]" in read.all("td")
    assert "-0.300 [-.550, -.100]" in read.all("td")
    notes = read.all("li")
    assert len(set(notes)) == len(notes)
    assert sum("# invalid (with refused) is wrong" in note for note in notes) == 1


def test_a_cell_that_stands_alone_bears_its_name() -> None:
    names = [attributes.get("data-name") for tag, attributes in Reader(page(MEASURED)).tags if tag == "td"]
    assert names[:4] == [
        "Correct-first accuracy",
        "Correct-first # invalid",
        "Wrong-first accuracy",
        "Wrong-first # invalid",
    ]


def test_the_note_is_in_the_title_of_every_table() -> None:
    read = Reader(page(MEASURED, title_note="a trial"))
    assert [title for title in read.all("h2") if title.startswith("Table") and not title.endswith(" (a trial)")] == []
    assert read.all("title") == ["trial: position bias (a trial)"]
    assert "(" not in Reader(page(MEASURED)).all("h1")[0]


def test_absence_is_a_dash() -> None:
    read = Reader(page(UNMEASURED))
    assert read.all("td")[:4] == ["–", "0", "–", "0"]


@pytest.mark.parametrize(
    ("codes", "planned", "finished", "expected"),
    [
        (["AB", "AA"], 4, 4, None),
        (["AB", "NR"], None, None, None),
        (["AB", "A-"], 4, 3, "Of 4 jobs 1 are missing and 0 failed."),
        (["AB", "AF"], 4, 4, "Of 4 jobs 0 are missing and 1 failed."),
        (["AB", "AA"], 10, 4, "Of 10 jobs 6 are missing and 0 failed."),
    ],
)
def test_figures_are_called_partial_where_jobs_are_missing_or_failed(
    codes: list[str], planned: int | None, finished: int | None, expected: str | None
) -> None:
    made = report(*(jobs(code, item=i) for i, code in enumerate(codes)))
    study = {"planned": planned, "finished": finished}
    assert (partial(made, study) or "").startswith(expected or "")
    assert (partial(made, study) is None) == (expected is None)
    assert ("These figures are partial." in to_html(made, [], study=study)) == (expected is not None)


def test_without_results_the_page_says_so() -> None:
    nothing = build(pl.DataFrame(schema=RESULT_SCHEMA))
    read = Reader(to_html(nothing, [], study=STUDY | {"planned": 0, "finished": 0}))
    assert read.all("p") == ["No results."]
    assert read.all("h2") == []
