"""A retry that changes what is measured is told; one that changes nothing beyond chance is not."""

from analysis.render import to_json, to_text
from analysis.shifts import shifts
from analysis.tables import Report
from tests.unit.test_tables import jobs, report

FIRST_SLOT_TWICE = {"12": 0, "21": 1}
"""The choice behind letter A in each order."""


def asked_again(answered: dict[str, int], *, unreadable: int, read: int = 30, cluster: str | None = None) -> Report:
    """Items that always chose the same choice, and `unreadable` ones that after a retry chose what `answered` says."""
    made = [jobs("AB", item=number, cluster=cluster) for number in range(read)]
    for number in range(read, read + unreadable):
        pair = jobs("NN", item=number, cluster=cluster)
        for job in pair:
            job |= {"final_outcome": "answered", "final_choice": answered[str(job["order"])]}
        made.append(pair)
    return report(*made)


def test_what_a_retry_moves_out_of_its_interval_is_told_with_both_figures() -> None:
    made = asked_again(FIRST_SLOT_TWICE, unreadable=30)

    moved = {shift.figure: (shift.first.value, shift.final.value) for shift in shifts(made)}

    assert moved["PF"] == (0.0, -0.5)
    assert moved["PC"] == (1.0, 0.5)
    text = to_text(made)
    assert "Warning: the invalid retries move PF of m on d from" in " ".join(text.split())
    assert "to -0.500, out of its interval" in " ".join(text.split())
    assert {shift["figure"] for shift in to_json(made)["moved_by_retries"]} == set(moved)


def test_what_a_retry_leaves_within_its_interval_is_no_warning() -> None:
    made = asked_again(FIRST_SLOT_TWICE, unreadable=1)

    assert shifts(made) == ()
    assert "Warning" not in to_text(made)


def test_without_retries_nothing_moves() -> None:
    assert shifts(report(*(jobs("AB", item=number) for number in range(30)))) == ()


def test_without_an_interval_nothing_is_claimed() -> None:
    assert shifts(asked_again(FIRST_SLOT_TWICE, unreadable=30, cluster="the only one")) == ()
