"""The tables of the answer-format paper beside what was measured."""

import pytest

from analysis.bbq_scores import SUBSETS
from analysis.format_comparison import compare_formats, printed_models
from tests.unit.test_format_tables import NOTHING, about, apart, bias

MISTRAL = "Mistral-7B"


def test_every_printed_figure_is_compared_and_what_was_not_measured_is_none() -> None:
    made = compare_formats([], [])
    assert len(made) == 3 * 3 * 3 * 3 + 3 * 3 * 3
    assert len({(each.dataset, each.model, each.figure) for each in made}) == len(made)
    assert {(each.measured_as, each.measured, each.n, each.inside) for each in made} == {(None, None, 0, None)}


def test_figures_of_the_same_model_subset_and_format_stand_beside_each_other() -> None:
    made = compare_formats([bias(MISTRAL, "closed", subset="labels", s_dis=about(0.09))], [])
    found = [each for each in made if each.measured_as]
    assert [each.figure for each in found] == ["s_DIS, closed", "s_AMB, closed", "accuracy, closed"]
    first, second, _ = found
    assert (first.dataset, first.model, first.n) == ("BBQ, labels", MISTRAL, 1080)
    assert (first.printed, first.measured, first.inside) == (0.08, 0.09, True)
    assert (second.printed, second.measured, second.inside) == (0.166, -0.1, False)


def test_distances_are_compared_as_they_are_printed() -> None:
    made = compare_formats([], [apart("Llama-3.1-8B", "likert", w_dist=about(0.2), js_dist=NOTHING)])
    found = {each.figure: each for each in made if each.measured_as}
    assert list(found) == ["WDist, Likert", "JSDist, Likert", "composite, Likert"]
    assert (found["WDist, Likert"].dataset, found["WDist, Likert"].printed) == ("OpinionQA", 0.121)
    assert found["WDist, Likert"].difference == pytest.approx(0.079)
    assert (found["JSDist, Likert"].measured, found["JSDist, Likert"].n) == (None, 0)


def test_only_pooled_variants_are_compared() -> None:
    made = compare_formats([bias(MISTRAL, variant="123")], [apart(MISTRAL, variant="123")])
    assert not any(each.measured_as for each in made)


def test_another_model_can_stand_for_a_printed_one() -> None:
    made = compare_formats([bias("mine", subset=subset) for subset in SUBSETS], [], {"mine": MISTRAL})
    assert {(each.model, each.measured_as) for each in made if each.measured_as} == {(MISTRAL, "mine")}
    assert printed_models() == (MISTRAL, "Llama-3.1-8B", "Gemma-3-12B")


def test_a_model_that_the_paper_has_not_is_refused_with_those_it_has() -> None:
    with pytest.raises(ValueError, match=r"the paper has no Mistral; it has: Mistral-7B, Llama-3\.1-8B, Gemma-3-12B"):
        compare_formats([bias("mine")], [], {"mine": "Mistral"})


def test_two_models_cannot_stand_for_one() -> None:
    with pytest.raises(ValueError, match="Mistral-7B and mine both stand for Mistral-7B"):
        compare_formats([bias(MISTRAL), bias("mine")], [], {"mine": MISTRAL})
