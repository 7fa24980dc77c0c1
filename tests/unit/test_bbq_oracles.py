"""Recorded answers of the answer-format paper and of GPT-4o to BBQ, as counts, and the scores computed from them.

Answers are made up to have the recorded counts. The files are not part of this repository. BOTHWAYS_SHARED_DATA names
the folder that holds `oracles/` and `bbq/`; without it these tests are skipped.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.answer_rows import ALL, LIKERT
from analysis.bbq_scores import ANSWER_SCHEMA, BiasScores, OffScale, score
from analysis.published.answer_format import printed_bias
from analysis.tables import Estimate
from contract.items import UNKNOWN

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with the recorded answers")
PRINTED = 1.01e-6  # the figures are written with six decimals, the counts behind them are whole
QUESTIONS = {"labels": "1", "names": "26"}
MODELS = {"mistral7b": "Mistral-7B", "llama8b": "Llama-3.1-8B", "gemma12b": "Gemma-3-12B"}

Entry = dict[str, Any]
Row = dict[str, Any]
Keys = tuple[str, str, str, str]


@cache
def oracles() -> dict[str, Any]:
    """All expected figures."""
    return dict(json.loads((Path(FOLDER or "") / "oracles" / "bbq.json").read_text(encoding="utf-8")))


def frame(rows: list[Row]) -> pl.DataFrame:
    """`rows`, each as often as its `times` says."""
    times = np.array([row.pop("times") for row in rows])
    once = pl.DataFrame(rows, schema=ANSWER_SCHEMA)
    return once[np.repeat(np.arange(len(rows)), times)]


def halves(times: int, *, reinforcing: bool) -> Iterator[tuple[str, str, int]]:
    """Groups and question polarities that reinforce, or counter, a stereotype about F, in two halves."""
    yield ("F", "neg", times // 2) if reinforcing else ("M", "neg", times // 2)
    yield ("M", "nonneg", times - times // 2) if reinforcing else ("F", "nonneg", times - times // 2)


def choices(base: Row, *, reinforcing: int, countering: int, unknown: int, right: int | None = None) -> Iterator[Row]:
    """Answers that name groups; `right` of them are right, where a group is right at all."""
    left = right or 0
    for kind, number in ((True, reinforcing), (False, countering)):
        for group, polarity, times in halves(number, reinforcing=kind):
            named = base | {"outcome": "answered", "group": group, "question_polarity": polarity}
            hits = min(left, times)
            left -= hits
            other = "M" if group == "F" else "F"
            target, wrong = (UNKNOWN, UNKNOWN) if right is None else (group, other)
            yield named | {"target_group": target, "times": hits}
            yield named | {"target_group": wrong, "times": times - hits}
    asked = base | {"outcome": "answered", "group": UNKNOWN, "question_polarity": "neg"}
    yield asked | {"target_group": UNKNOWN if right is None else "F", "times": unknown}


def ratings(base: Row, agreements: list[tuple[int, int]]) -> Iterator[Row]:
    """Ratings on the scale of `base`: pairs of a place on a scale where the last reinforces most, and how many."""
    points, negative = base["points"], base["polarity"] == "negative"
    for place, number in agreements:
        for kind in (True, False):
            for group, polarity, times in halves(number // 2 + (number % 2 if kind else 0), reinforcing=kind):
                agreed = place if kind else points + 1 - place
                x = points + 1 - agreed if negative else agreed
                yield base | {
                    "outcome": "answered",
                    "group": group,
                    "question_polarity": polarity,
                    "rating": x,
                    "times": times,
                }


def of_choices(entry: Entry) -> Iterator[Row]:
    amb, dis, base = entry["ambig"], entry["disambig"], base_of(entry, entry["format"], entry["condition"])
    counts = {"reinforcing": amb["biased"], "countering": amb["non_unknown"] - amb["biased"], "unknown": amb["unknown"]}
    yield from choices(base | {"context": "ambig"}, **counts)
    counts = {"reinforcing": dis["biased"], "countering": dis["non_unknown"] - dis["biased"]}
    unknown = dis["responses"] - dis["non_unknown"]
    yield from choices(base | {"context": "disambig"}, **counts, unknown=unknown, right=dis["correct"])


def of_ratings(entry: Entry) -> Iterator[Row]:
    points, polarity = entry["scale"].split("_")
    k, amb, dis = int(points), entry["ambig"], entry["disambig"]
    base = base_of(entry, LIKERT, entry["scale"]) | {"points": k}
    base |= {"polarity": "negative" if polarity == "neg" else "positive"}
    polarised = round(amb["polarisation_valid"] * (amb["responses"] - amb["invalid"]))
    mild, middle = k // 2 + 2, (k + 1) // 2  # the first place beyond the middle, where there is one
    counts = [
        (k, polarised),
        (mild, amb["reinforcing"] - polarised),
        (1, amb["non_unknown_valid"] - amb["reinforcing"]),
    ]
    yield from ratings(base | {"context": "ambig"}, [*counts, (middle, amb["functional_unknown"])])
    off = {"outcome": "invalid", "context": "ambig", "group": "F", "question_polarity": "neg"}
    yield base | off | {"times": amb["invalid"]}
    yield from ratings(base | {"context": "disambig"}, adding_up_to(dis["s_dis"], dis["responses"], k))


def adding_up_to(mean: float, n: int, k: int) -> list[tuple[int, int]]:
    """Places of n ratings of k points whose mean bias is the recorded one: both ends, and one rating for the rest."""
    total = round(mean * n * (k - 1))  # in steps of 1 / (k - 1), of which each rating has k - 1, k - 3, ... 1 - k
    surplus = 2 * round((total / (k - 1) - (n - 1)) / 2) + (n - 1)
    rest = total - (k - 1) * surplus
    return [(k, (n - 1 + surplus) // 2), (1, (n - 1 - surplus) // 2), ((rest + k + 1) // 2, 1)]


def base_of(entry: Entry, made: str, variant: str) -> Row:
    names = {"model": entry["model"], "format": made, "variant": variant, "subset": entry["subset"]}
    return names | {"question": QUESTIONS[entry["subset"]], "item": 0, "part": 0, "repeat": 1, "stereotyped": "F"}


def measured(
    made: Callable[[Entry], Iterator[Row]], entries: list[Entry], off_scale: OffScale
) -> dict[Keys, BiasScores]:
    """The scores of answers made for each variant and subset; those of all variants and both subsets are pooled."""
    rows = [
        row for entry in entries if ALL not in entry.values() and entry["subset"] in QUESTIONS for row in made(entry)
    ]
    found = score(frame(rows), off_scale=off_scale)
    return {(each.model, each.format, each.variant, each.subset): each for each in found}


@cache
def of_closed_and_open() -> dict[Keys, BiasScores]:
    return measured(of_choices, oracles()["categorical"], OffScale.LEFT_OUT)


@cache
def of_likert(off_scale: OffScale) -> dict[Keys, BiasScores]:
    return measured(of_ratings, oracles()["likert"], off_scale)


def value(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.value is not None
    return estimate.value


def close(expected: float) -> object:
    return pytest.approx(expected, abs=PRINTED)


def test_every_recorded_condition_of_choices_has_its_scores() -> None:
    found, expected = of_closed_and_open(), oracles()["categorical"]
    assert len(expected) == len(found) == 90
    for entry in expected:
        scores = found[entry["model"], entry["format"], entry["condition"], entry["subset"]]
        amb, dis = entry["ambig"], entry["disambig"]
        assert (scores.accuracy.n, scores.s_amb.n, scores.s_dis.n) == (*[amb["responses"]] * 2, dis["non_unknown"])
        assert value(scores.accuracy) == close(amb["accuracy"])
        assert value(scores.s_amb) == close(amb["s_amb"])
        assert value(scores.s_dis) == close(dis["s_dis"])
        assert value(scores.accuracy_disambiguated) == close(dis["correct"] / dis["responses"])


def test_every_recorded_scale_has_its_scores_without_off_scale_ratings() -> None:
    found, expected = of_likert(OffScale.LEFT_OUT), oracles()["likert"]
    assert len(expected) == len(found) == 99
    for entry in expected:
        scores, amb = found[entry["model"], LIKERT, entry["scale"], entry["subset"]], entry["ambig"]
        assert scores.accuracy.n == scores.s_amb.n == amb["responses"] - amb["invalid"]
        assert scores.jobs.invalid == amb["invalid"]
        assert value(scores.accuracy) == close(amb["accuracy_valid"])
        assert value(scores.s_amb) == close(amb["s_amb_valid"])
        assert value(scores.polarisation) == close(amb["polarisation_valid"])


def test_every_recorded_scale_has_the_published_scores_with_off_scale_ratings() -> None:
    found = of_likert(OffScale.AS_PUBLISHED)
    for entry in oracles()["likert"]:
        scores, amb = found[entry["model"], LIKERT, entry["scale"], entry["subset"]], entry["ambig"]
        assert scores.accuracy.n == scores.s_amb.n == amb["responses"]
        assert value(scores.accuracy) == close(amb["accuracy_published_convention"])
        assert value(scores.s_amb) == close(amb["s_amb_published_convention"])
        assert value(scores.polarisation) == close(amb["polarisation_published_convention"])


def test_s_dis_of_all_scales_is_that_of_their_pooled_ratings() -> None:
    """A single scale's ratings were made to have it, as its counts do not tell it; the rule is tested elsewhere."""
    found = of_likert(OffScale.LEFT_OUT)
    for entry in oracles()["likert"]:
        scores = found[entry["model"], LIKERT, entry["scale"], entry["subset"]]
        assert scores.s_dis.n == entry["disambig"]["responses"]
        assert value(scores.s_dis) == close(entry["disambig"]["s_dis"])


def test_scores_are_those_that_the_paper_prints() -> None:
    found = of_closed_and_open() | of_likert(OffScale.AS_PUBLISHED)
    names = {printed: model for model, printed in MODELS.items()}
    assert len(printed_bias()) == 27
    for cell in printed_bias():
        scores = found[names[cell.model], cell.format, ALL, cell.subset]
        half = 0.0501  # a half of the last printed digit, which may have been rounded either way
        assert 100 * value(scores.s_dis) == pytest.approx(cell.s_dis, abs=half)
        assert 100 * value(scores.s_amb) == pytest.approx(cell.s_amb, abs=half)
        assert 100 * value(scores.accuracy) == pytest.approx(cell.accuracy, abs=half)


def test_scales_are_scored_as_the_papers_figure_prints_them() -> None:
    found = of_likert(OffScale.AS_PUBLISHED)
    for entry in oracles()["likert"]:
        if entry["scale"] != ALL:
            scores = found[entry["model"], LIKERT, entry["scale"], entry["subset"]]
            assert 100 * value(scores.s_dis) == pytest.approx(entry["published_pct"]["s_dis"], abs=0.00501)
            assert 100 * value(scores.s_amb) == pytest.approx(entry["published_pct"]["s_amb"], abs=0.00501)


def test_leaving_off_scale_ratings_out_turns_a_printed_score_round() -> None:
    key = ("mistral7b", LIKERT, "2_neg", "labels")
    assert value(of_likert(OffScale.AS_PUBLISHED)[key].s_amb) == close(-0.011364)
    assert value(of_likert(OffScale.LEFT_OUT)[key].s_amb) == close(0.038806)


def gpt4o(block: str) -> BiasScores:
    """The scores of answers with the counts of one block."""
    rows: list[Row] = []
    for context in ("ambig", "disambig"):
        counts = oracles()["gpt4o_full_gender_identity"][block][context]
        kinds = {
            "reinforcing": counts["biased"],
            "countering": counts["non_unknown"] - counts["biased"],
            "unknown": counts["unknown"],
        }
        entry = {"model": "gpt4o", "subset": "labels" if block == "label" else "names"}
        right = None if context == "ambig" else counts["correct"]
        rows += choices(base_of(entry, "closed", "as given") | {"context": context}, **kinds, right=right)
    return score(frame(rows))[-1]


@pytest.mark.parametrize("block", ["label", "name", "all"])
def test_gpt4o_on_all_of_bbq_has_the_scores_of_the_published_calculation(block: str) -> None:
    found, expected = gpt4o(block), oracles()["gpt4o_full_gender_identity"][block]
    assert found.jobs.answered == expected["ambig"]["n"] + expected["disambig"]["n"]
    assert value(found.accuracy) == close(expected["ambig"]["acc"])
    assert value(found.accuracy_disambiguated) == close(expected["disambig"]["acc"])
    assert value(found.s_amb) == close(expected["ambig"]["score"])
    assert value(found.s_dis) == close(expected["disambig"]["score"])


def group(name: str) -> str:
    """BBQ's groups as the scores compare them: people who are transgender are one group, whatever their gender."""
    whole = {"man": "M", "boy": "M", "woman": "F", "girl": "F", "unknown": UNKNOWN}
    return whole.get(name, "trans" if name.startswith("trans") else "nonTrans" if name.startswith("nonTrans") else name)


@cache
def bbq() -> list[tuple[Row, list[str], int, int]]:
    """Each example that has a target: what its jobs share, the groups of its slots, its right slot and its target's."""
    folder, found = Path(FOLDER or "") / "bbq", []
    targets = pl.read_csv(folder / "gender_identity_metadata.csv.gz", infer_schema_length=0).to_dicts()
    with gzip.open(folder / "Gender_identity.jsonl.gz", "rt", encoding="utf-8") as lines:
        for example, told in zip(map(json.loads, lines), targets, strict=True):
            assert str(example["example_id"]) == told["example_id"]
            if told["target_loc"] is not None:
                groups = [group(example["answer_info"][f"ans{slot}"][1]) for slot in range(3)]
                right, known = int(example["label"]), told["Known_stereotyped_groups"]
                shared = asked(example, stereotyped="trans" if "trans" in known else known, target_group=groups[right])
                found.append((shared, groups, right, int(told["target_loc"])))
    return found


def asked(example: Row, **named: str) -> Row:
    """An answered job of an example, but for what it chose."""
    subset = "labels" if int(example["question_index"]) <= 25 else "names"
    entry = {"model": "m", "subset": subset}
    return (
        base_of(entry, "closed", "as given")
        | {"question": example["question_index"], "item": example["example_id"], "outcome": "answered"}
        | {"context": example["context_condition"], "question_polarity": example["question_polarity"]}
        | named
    )


def always(slot: Callable[[int, int], int]) -> BiasScores:
    """The scores of who chooses the slot that is made of the right one and the target's."""
    rows = [shared | {"group": groups[slot(right, target)]} for shared, groups, right, target in bbq()]
    return score(pl.DataFrame(rows, schema=ANSWER_SCHEMA))[-1]


def test_who_always_chooses_the_first_slot_has_no_bias_on_all_of_bbq() -> None:
    found = always(lambda _right, _target: 0)
    assert len(bbq()) == 5656
    assert (found.s_dis.value, found.s_dis.n, found.s_amb.value) == (0.0, 1858, 0.0)
    assert found.accuracy.value == pytest.approx((2828 - 1858) / 2828)


def test_who_always_chooses_the_target_is_biased_through_and_through() -> None:
    found = always(lambda _right, target: target)
    assert (found.s_dis.value, found.s_amb.value, found.accuracy.value) == (1.0, 1.0, 0.0)
    assert value(found.accuracy_disambiguated) == 0.5


def test_who_is_always_right_has_no_bias_on_all_of_bbq() -> None:
    found = always(lambda right, _target: right)
    assert (found.s_dis.value, found.s_dis.n, found.s_amb.value) == (0.0, 2828, 0.0)
    assert (found.accuracy.value, value(found.accuracy_disambiguated)) == (1.0, 1.0)
