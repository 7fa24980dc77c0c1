"""Recorded judgements of Shi et al. 2024 (arXiv 2406.07791) and the figures computed from them elsewhere.

The files are not part of this repository. BOTHWAYS_SHARED_DATA names the folder that holds `oracles/` and
`position_bias_judgments/`; without it these tests are skipped.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.metrics import (
    PairCounts,
    count_pairs,
    position_consistency,
    preference_fairness,
    preference_fairness_valid,
    repetition_consistency,
)
from analysis.pairing import RESULT_SCHEMA, View
from analysis.tables import Row, build

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with the recorded judgements")
CLASSES = ("primacy", "recency", "consistent", "invalid")
PRINTED = 1.5e-6  # the figures are written with six decimals


@cache
def oracles() -> dict[str, list[dict[str, Any]]]:
    """All expected figures."""
    return dict(json.loads((Path(FOLDER or "") / "oracles" / "position_bias.json").read_text(encoding="utf-8")))


@cache
def judgments(name: str) -> pl.DataFrame:
    """One file of recorded letters or scores."""
    return pl.read_csv(Path(FOLDER or "") / "position_bias_judgments" / name)


@cache
def pairs(name: str) -> pl.DataFrame:
    """Each comparison once: the letter with the models as named, then with them swapped."""
    rows = judgments(name)
    keys = [key for key in ("benchmark", "judge", "repetition", "task", "question") if key in rows.columns]
    swapped = rows.rename({"model_a": "model_b", "model_b": "model_a", "choice": "choice_swapped"})
    both = rows.with_row_index("at").join(
        swapped.with_row_index("at_swapped"), on=[*keys, "model_a", "model_b"], validate="1:1"
    )
    once = both.filter(pl.col("at") < pl.col("at_swapped"))
    assert 2 * once.height == rows.height
    return once.with_columns((pl.col("choice") + pl.col("choice_swapped")).alias("code"))


def counted(codes: Iterable[str]) -> PairCounts:
    return count_pairs(Counter(codes))


def close(expected: float | None, within: float = PRINTED) -> object:
    return None if expected is None else pytest.approx(expected, abs=within)


def test_every_judge_has_the_recorded_counts_and_figures() -> None:
    groups = {key: counted(part["code"]) for key, part in pairs("judgments_full.csv.gz").group_by("benchmark", "judge")}
    assert len(groups) == len(oracles()["judges_full"])
    for expected in oracles()["judges_full"]:
        counts = groups[expected["benchmark"], expected["judge"]]
        assert asdict(counts) == {name: expected[name] for name in CLASSES}
        assert counts.n == expected["pairs"]
        assert position_consistency(counts) == close(expected["pc_valid"])
        assert preference_fairness(counts) == close(expected["pf_all_pairs"])
        assert preference_fairness_valid(counts) == close(expected["pf_valid_pairs"])


def test_every_judge_goes_through_the_whole_report() -> None:
    part = pairs("judgments_full.csv.gz").filter(pl.col("benchmark") == "DevBench").with_row_index("item")
    rows = {row.model: row for row in build(as_results(part)).rows if row.view is View.FINAL}
    for expected in oracles()["judges_full"]:
        if expected["benchmark"] == "DevBench":
            row = rows[expected["judge"]]
            assert asdict(row.bias.counts) == {name: expected[name] for name in CLASSES}
            assert row.bias.fairness.value == close(expected["pf_all_pairs"])
            assert row.bias.consistency.value == close(expected["pc_valid"])
            assert slot_balance(row) == close(expected["pf_all_pairs"], within=0.002)


def as_results(part: pl.DataFrame) -> pl.DataFrame:
    """Two-choice judgements as results: model_a is choice 0, a question with its answers is a cluster."""
    orders = []
    for order, column, choices in (("12", "choice", {"A": 0, "B": 1}), ("21", "choice_swapped", {"A": 1, "B": 0})):
        choice = pl.col(column).replace_strict(choices, default=None, return_dtype=pl.Int32)
        outcome = pl.when(choice.is_null()).then(pl.lit("invalid")).otherwise(pl.lit("answered"))
        views = {f"{view}_{what}": value for view in View for what, value in (("outcome", outcome), ("choice", choice))}
        fixed = {"repeat": pl.lit(0), "order": pl.lit(order), "choices": pl.lit(2), "target": pl.lit(None)}
        named = {"dataset": pl.col("benchmark"), "model": pl.col("judge"), "item": pl.col("item")}
        orders.append(part.select(**named, cluster=pl.col("question"), **fixed, **views))
    return pl.concat(orders).cast(RESULT_SCHEMA).select(RESULT_SCHEMA.names())


def slot_balance(row: Row) -> float:
    """PF from the slot totals of both orders alone; near the paired PF where little is invalid."""
    first, second = row.correct_first.counts, row.wrong_first.counts
    second_slot = first.answered - first.correct + second.correct
    first_slot = first.correct + second.answered - second.correct
    return (second_slot - first_slot) / (2 * row.bias.counts.n)


def test_every_unit_has_the_scores_of_the_published_calculation() -> None:
    part, scores = pairs("judgments_full.csv.gz"), judgments("unit_scores_reference.csv.gz")
    codes = unit_codes(part, scores)
    by_judge: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for unit in scores.iter_rows(named=True):
        counts = counted(codes[unit["benchmark"], unit["judge"], unit["model"], unit["task"]])
        pc, pf = position_consistency(counts), preference_fairness(counts)
        assert (counts.primacy, counts.recency) == (unit["primacy_count"], unit["recency_count"])
        assert (pc or 0.0) == close(unit["pc"])
        assert pf == close(unit["pf"])
        by_judge[unit["benchmark"], unit["judge"]].append((pc or 0.0, pf or 0.0))
    for expected in oracles()["judges_full"]:
        units = np.array(by_judge[expected["benchmark"], expected["judge"]])
        assert len(units) == expected["units"]
        assert units[:, 1].mean() == close(expected["pf_unit_mean"])
        assert units.std(axis=0).tolist() == [close(expected["pc_unit_std"]), close(expected["pf_unit_std"])]


def unit_codes(part: pl.DataFrame, scores: pl.DataFrame) -> dict[tuple[str, ...], list[str]]:
    """The pair codes of each judge, model and task; the model is the one of the two that is not the baseline."""
    units = set(scores.select("benchmark", "judge", "model", "task").iter_rows())
    codes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in part.iter_rows(named=True):
        (unit,) = {(row["benchmark"], row["judge"], row[side], row["task"]) for side in ("model_a", "model_b")} & units
        codes[unit].append(row["code"])
    return codes


def test_every_repetition_has_the_recorded_counts_and_figures() -> None:
    parts = pairs("judgments_repetition.csv.gz").group_by("benchmark", "judge", "repetition")
    groups = {key: counted(part["code"]) for key, part in parts}
    assert len(groups) == len(oracles()["judges_repetition"])
    for expected in oracles()["judges_repetition"]:
        counts = groups[expected["benchmark"], expected["judge"], expected["repetition"]]
        assert asdict(counts) == {name: expected[name] for name in CLASSES}
        assert position_consistency(counts) == close(expected["pc_valid"])
        assert preference_fairness(counts) == close(expected["pf_all_pairs"])


def test_repetition_consistency_is_as_recorded() -> None:
    rows = judgments("judgments_repetition.csv.gz")
    instance = ["benchmark", "judge", "task", "question", "model_a", "model_b"]
    letters = rows.group_by(instance, maintain_order=True).agg("choice")
    for expected in oracles()["repetition_consistency"]:
        part = letters.filter(benchmark=expected["benchmark"], judge=expected["judge"])["choice"].to_list()
        assert len(part) == expected["instances"]
        assert repetition_consistency(part) == close(expected["repetition_consistency"])


def test_made_up_cases_come_out_as_worked() -> None:
    for case in oracles()["synthetic"]:
        counts = count_pairs(case["pairs"])
        assert asdict(counts) == {name: case[name] for name in CLASSES}
        assert position_consistency(counts) == close(case["pc_valid"])
        assert preference_fairness(counts) == close(case["pf_all_pairs"])
        assert preference_fairness_valid(counts) == close(case["pf_valid_pairs"])


def test_printed_accuracies_give_the_marginal_pf() -> None:
    assert len(oracles()["seed_table1_marginals"]) == 25
    for row in oracles()["seed_table1_marginals"]:
        n = row["n"]
        chose_right_first, chose_right_second = row["acc_correct_first"] * n, row["acc_correct_second"] * n
        first_slot = chose_right_first + (n - chose_right_second - row["invalid_second"])
        second_slot = chose_right_second + (n - chose_right_first - row["invalid_first"])
        valid = 2 * n - row["invalid_first"] - row["invalid_second"]
        assert first_slot / valid == close(row["first_slot_share_of_valid"], within=6e-5)
        assert (second_slot - first_slot) / (2 * n) == close(row["marginal_pf_over_all"], within=6e-5)
        assert (second_slot - first_slot) / valid == close(row["marginal_pf_over_valid"], within=6e-5)
