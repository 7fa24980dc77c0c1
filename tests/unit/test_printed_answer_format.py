"""The tables of the answer-format paper as they are kept."""

from itertools import product

from analysis.published import papers
from analysis.published.answer_format import PrintedBias, PrintedDistances, printed_bias, printed_distances

FORMATS = ("closed", "likert", "open")
MODELS = ("Mistral-7B", "Llama-3.1-8B", "Gemma-3-12B")


def test_table_2_of_the_answer_format_paper_is_whole() -> None:
    cells = printed_bias()
    subsets = ("labels", "names", "combined")
    assert [(cell.model, cell.subset, cell.format) for cell in cells] == list(product(MODELS, subsets, FORMATS))
    assert cells[9] == PrintedBias(
        model="Llama-3.1-8B", subset="labels", format="closed", s_dis=6.2, s_amb=18.6, accuracy=49.4
    )
    assert cells[-2] == PrintedBias(
        model="Gemma-3-12B", subset="combined", format="likert", s_dis=5.0, s_amb=-0.1, accuracy=39.4
    )


def test_the_distances_of_the_answer_format_paper_are_whole() -> None:
    cells = printed_distances()
    assert [(cell.model, cell.format) for cell in cells] == list(product(MODELS, FORMATS))
    assert cells[4] == PrintedDistances(
        model="Llama-3.1-8B", format="likert", w_dist=0.121, js_dist=0.219, composite=0.170
    )
    assert all(abs(cell.composite - (cell.w_dist + cell.js_dist) / 2) <= 0.0011 for cell in cells)


def test_its_tables_are_not_offered_as_one_of_positions() -> None:
    assert papers() == ("positional-bias",)
