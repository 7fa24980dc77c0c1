"""Distances computed from recorded answers of the answer-format paper, and its questions with their human shares.

The files are not part of this repository. BOTHWAYS_SHARED_DATA names the folder that holds `oracles/`, `opinion_qa/`
and `answer_format/`; without it these tests are skipped.
"""

import ast
import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.opinion_scores import OpinionQuestion, aligned, composite, distances, shares_of_ratings, w_dist
from analysis.published.answer_format import printed_distances

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with the recorded answers")
PRINTED = 1.01e-6  # the figures are written with six decimals
MODELS = {"mistral7b": "Mistral-7B", "llama8b": "Llama-3.1-8B", "gemma12b": "Gemma-3-12B"}


@cache
def oracles() -> dict[str, Any]:
    """All expected figures."""
    return dict(json.loads((Path(FOLDER or "") / "oracles" / "opinion_qa.json").read_text(encoding="utf-8")))


def answer_format(name: str) -> pl.DataFrame:
    return pl.read_csv(Path(FOLDER or "") / "answer_format" / name)


@cache
def choices() -> dict[str, tuple[list[str], list[float]]]:
    """The choices of each of the 158 questions, and their ordinals without that of the last one."""
    rows = answer_format("opinion_qa_gender_158_ordinal.csv.gz").iter_rows(named=True)
    return {row["key"]: (ast.literal_eval(row["options"]), ast.literal_eval(row["option_ordinal"])) for row in rows}


@cache
def human() -> dict[str, dict[str, float]]:
    """The human shares of each of the 158 questions, by text."""
    shares: dict[str, dict[str, float]] = {key: {} for key in choices()}
    for key, text, share in answer_format("opinion_qa_weighted_distributions.csv.gz").iter_rows():
        shares[key][text] = share
    return shares


def question(case: dict[str, Any], shares: list[float]) -> OpinionQuestion:
    ordinals = (*case["ordinals"], None)
    texts = tuple(str(at) for at in range(len(ordinals)))
    return OpinionQuestion(key="q", choices=texts, ordinals=ordinals, human=tuple(shares), refused=len(texts) - 1)


def test_made_up_shares_have_their_worked_distances() -> None:
    assert len(oracles()["toy"]) == 7
    for case in oracles()["toy"]:
        found = distances(question(case, case["human"]), case["model"])
        assert found.w_dist == pytest.approx(case["w_dist"], abs=PRINTED)
        assert found.js_dist == pytest.approx(case["js_dist"], abs=PRINTED)
        assert found.composite == pytest.approx(case["composite"], abs=PRINTED)


def test_recorded_shares_have_their_recorded_distances() -> None:
    assert len(oracles()["real_examples"]) == 6
    for case in oracles()["real_examples"]:
        found = distances(question(case, case["human_full_precision"]), case["model_full_precision"])
        assert found.w_dist == pytest.approx(case["w_dist"], abs=PRINTED)
        assert found.js_dist == pytest.approx(case["js_dist"], abs=PRINTED)
        assert found.composite == pytest.approx(case["composite"], abs=PRINTED)


def test_recorded_examples_have_the_human_shares_of_their_questions() -> None:
    for case in oracles()["real_examples"]:
        texts, ordinals = choices()[case["key"]]
        assert ordinals == case["ordinals"]
        assert aligned(texts, human()[case["key"]]) == pytest.approx(case["human_full_precision"], abs=PRINTED)


def test_mean_agreements_in_the_recorded_proportions_give_the_recorded_shares() -> None:
    """The ratings themselves are not at hand: 100 of each statement, half as strong as the share, stand for them."""
    for case in oracles()["real_examples"]:
        model = case["model_full_precision"]
        found = shares_of_ratings([50 * share for share in model], [100] * len(model), refused=len(model) - 1)
        assert found == pytest.approx(model, abs=PRINTED)


def test_the_recorded_means_of_both_distances_give_the_recorded_composite() -> None:
    """Means over the 158 questions of ratings that are not at hand: only how they hang together can be looked at."""
    assert len(oracles()["likert_overall"]) == 33
    for case in oracles()["likert_overall"]:
        assert composite(case["w_dist"], case["js_dist"]) == pytest.approx(case["composite"], abs=PRINTED)


def test_the_recorded_means_are_those_that_the_paper_prints() -> None:
    printed = {(cell.model, cell.format): cell for cell in printed_distances()}
    for case in oracles()["likert_overall"]:
        if case["scale"] == "all":
            cell = printed[MODELS[case["model"]], "likert"]
            assert case["w_dist"] == pytest.approx(cell.w_dist, abs=0.0006)
            assert case["js_dist"] == pytest.approx(cell.js_dist, abs=0.0006)
            assert case["composite"] == pytest.approx(cell.composite, abs=0.0006)


def test_five_questions_of_the_paper_have_human_texts_that_are_no_choice() -> None:
    mismatched = oracles()["human_option_text_mismatch_keys"]
    assert len(mismatched) == 5
    for key, (texts, _) in choices().items():
        if key in mismatched:
            with pytest.raises(ValueError, match="match none of the choices"):
                aligned(texts, human()[key])
        else:
            assert sum(aligned(texts, human()[key])) == pytest.approx(1.0)


def test_equal_ordinals_and_choices_without_one_are_met_in_opinion_qa() -> None:
    equal = unplaced = 0
    with gzip.open(
        Path(FOLDER or "") / "opinion_qa" / "opinionqa_questions_494.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        for row in map(json.loads, lines):
            n = len(row["options"])
            places = (*row["ordinal"], *[None] * (n - len(row["ordinal"])))
            first, last = [1.0, *[0.0] * (n - 1)], [*[0.0] * (n - 1), 1.0]
            highest = [1.0 if at == row["ordinal"].index(max(row["ordinal"])) else 0.0 for at in range(n)]
            assert w_dist(first, last, places) == 0.0
            assert 0.0 <= w_dist(first, highest, places) <= 1.0
            equal += w_dist(first, highest, places) == 0.0 and len(set(row["ordinal"])) == 1
            unplaced += places.count(None) == 2
    assert (equal, unplaced) == (8, 12)
