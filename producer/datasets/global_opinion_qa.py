"""GlobalOpinionQA: survey questions with the shares of their options among the people of one country; none is right.

Source: Durmus et al., Towards Measuring the Representation of Subjective Global Opinions in Language Models (2023). The
hub's file (Anthropic/llm_global_opinions) has a row for each question: question, options and selections, a mapping from
countries to shares, which are text in it. Tables made of it have a row for each question and country: id, question,
options, country, distribution.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from contract.items import Item, canonical_digest
from producer.datasets.faults import DatasetFieldError
from producer.datasets.human_shares import TOLERANCE
from producer.datasets.layouts import read_rows
from producer.datasets.rows import Row, listed, near_miss
from producer.datasets.written import list_of, mapping_of, share, texts_of

LANGUAGE = "en"
_SELECTIONS = "selections"


def global_opinion_qa_items(dataset: str, path: Path, country: str) -> Iterator[tuple[Item, Row]]:
    """The items of `country` in file order, each with its row; a question is a cluster, whatever the country.

    An item is known by its id; without one by the digest of question and options, numbered where they stand again.
    `traits`: `country`, and `shares`, that of each option.
    """
    countries: dict[str, None] = {}
    digests: Counter[str] = Counter()
    for row in read_rows(path):
        chosen = _of_country(row, country, countries)
        if chosen is None:
            continue
        options = texts_of(row, "options")
        question = row.text("question")
        digest = canonical_digest([question, options])[:16]
        digests[digest] += 1
        item = Item(
            dataset=dataset,
            source_id=_id(row) or (digest if digests[digest] == 1 else f"{digest}-{digests[digest]}"),
            question=question,
            choices=options,
            target=None,
            cluster=canonical_digest(question)[:16],
            language=LANGUAGE,
            traits={"country": country, "shares": _shares(chosen, len(options))},
        )
        yield item, replace(row, names={"choices": "options"})
    if countries and country not in countries:
        problem = f"{path} has no {country!r:.80}{near_miss(country, countries)}; it has {listed(sorted(countries))}"
        raise DatasetFieldError(("country",), problem)


def _of_country(row: Row, country: str, countries: dict[str, None]) -> Row | None:
    """The row with what is said of `country` as its distribution, None if nothing is; adds to `countries`.

    A row of the hub's file without a question (it has one) is no item.
    """
    if _SELECTIONS not in row.values:
        found = row.text("country")
        countries[found] = None
        return row if found == country else None
    selections: Mapping[str, object] = mapping_of(row, _SELECTIONS)
    countries.update(dict.fromkeys(selections))
    if country not in selections or row.values.get("question") is None:
        return None
    names = {"distribution": f"{_SELECTIONS}.{country}"}
    return replace(row, values={**row.values, "distribution": selections[country]}, names=names)


def _shares(row: Row, options: int) -> list[float]:
    shares = [share(row, f"distribution[{place}]", entry) for place, entry in enumerate(list_of(row, "distribution"))]
    if len(shares) != options:
        raise row.refuse("distribution", f"{len(shares)} shares for {options} options; each has one")
    if abs(sum(shares) - 1) > TOLERANCE:
        problem = f"the shares sum up to {sum(shares):.3f}; they must be within {TOLERANCE} of 1"
        raise row.refuse("distribution", problem)
    return shares


def _id(row: Row) -> str | None:
    """The row's id, which may be a number."""
    value = row.values.get("id")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else row.optional_text("id")
