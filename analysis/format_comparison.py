"""What the answer-format paper prints beside what was measured, figure by figure. Pure.

All scores stand as they are measured, -1 to 1 or 0 to 1; Table 2 prints a hundred times as much.
"""

from collections.abc import Iterator, Mapping, Sequence

from analysis.answer_rows import ALL
from analysis.bbq_scores import BiasScores
from analysis.comparison import Compared
from analysis.format_tables import BBQ, BIAS, DISTANCES, FORMATS, OPINION_QA, Score, Scored, subset_of
from analysis.opinion_tables import OpinionScores
from analysis.published.answer_format import printed_bias, printed_distances
from analysis.tables import Estimate

PAPER = "answer-format"


def compare_formats(
    bias: Sequence[BiasScores], distances: Sequence[OpinionScores], names: Mapping[str, str] | None = None
) -> list[Compared]:
    """Every figure of Table 2 and of the OpinionQA distances, in their order, beside that of the same model.

    `names` says which printed model a measured one stands for; others go by their own name. All variants of a format
    pooled are compared, as the paper prints them. ValueError names what is no printed model, and two models that would
    stand for one.
    """
    stands_for = names or {}
    strangers = sorted(set(stands_for.values()) - set(printed_models()))
    if strangers:
        raise ValueError(f"the paper has no {', '.join(strangers)}; it has: {', '.join(printed_models())}")
    measured = _by_place(bias, stands_for), _by_place(distances, stands_for)
    return [*_biases(measured[0]), *_distances(measured[1])]


def printed_models() -> tuple[str, ...]:
    """The models of the paper, by the names that it prints."""
    return tuple(dict.fromkeys(cell.model for cell in printed_bias()))


def _by_place(records: Sequence[Scored], names: Mapping[str, str]) -> dict[tuple[str, ...], Scored]:
    """The pooled records by printed model, subset and format."""
    found: dict[tuple[str, ...], Scored] = {}
    for record in records:
        if record.variant == ALL:
            place = (names.get(record.model, record.model), *subset_of(record), record.format)
            if place in found:
                raise ValueError(f"{found[place].model} and {record.model} both stand for {place[0]}: choose one")
            found[place] = record
    return found


def _biases(measured: Mapping[tuple[str, ...], Scored]) -> Iterator[Compared]:
    for cell in printed_bias():
        record = measured.get((cell.model, cell.subset, cell.format))
        for score in BIAS:
            value = float(getattr(cell, score.field)) / 100
            yield _compared(f"{BBQ}, {cell.subset}", cell.model, cell.format, record, score, value)


def _distances(measured: Mapping[tuple[str, ...], Scored]) -> Iterator[Compared]:
    for cell in printed_distances():
        record = measured.get((cell.model, cell.format))
        for score in DISTANCES:
            yield _compared(OPINION_QA, cell.model, cell.format, record, score, float(getattr(cell, score.field)))


def _compared(dataset: str, model: str, form: str, record: Scored | None, score: Score, value: float) -> Compared:
    estimate: Estimate | None = None if record is None else getattr(record, score.field)
    return Compared(
        dataset=dataset,
        model=model,
        measured_as=None if record is None else record.model,
        figure=f"{score.name}, {FORMATS[form]}",
        printed=value,
        measured=None if estimate is None else estimate.value,
        n=0 if estimate is None else estimate.n,
        low=None if estimate is None else estimate.interval.low,
        high=None if estimate is None else estimate.interval.high,
    )
