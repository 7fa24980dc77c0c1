"""Agreement of two judges, by hand."""

import pytest

from analysis.agreement import agreement


def test_the_share_and_kappa_are_those_worked_out_by_hand() -> None:
    judged = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15

    found = agreement(judged)

    assert (found.n, found.agreed, found.share) == (50, 35, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.7 < found.high


def test_agreement_that_chance_alone_would_bring_has_no_kappa() -> None:
    assert agreement([("yes", "yes")] * 3).kappa is None
    assert agreement([("yes", "no")] * 3).kappa == 0.0


def test_nothing_judged_is_no_agreement_of_nought() -> None:
    found = agreement([])

    assert (found.n, found.share, found.kappa) == (0, None, None)
