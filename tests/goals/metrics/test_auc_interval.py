"""The score interval of an AUC."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.goals.metrics.auc_interval import score_interval

COUNTS = st.integers(1, 500)


def variance(a: float, m: int, n: int) -> float:
    """Newcombe's method 5, written once more."""
    more = (m + n) / 2 - 1
    q1, q2 = (1 - a) / (2 - a), a / (1 + a)
    return a * (1 - a) * (1 + more * q1 + more * q2) / (m * n)


@given(st.floats(0.01, 0.99), COUNTS, COUNTS)
def test_its_ends_are_z_standard_errors_away(auc: float, m: int, n: int) -> None:
    for end in score_interval(auc, m, n):
        if 1e-9 < end < 1 - 1e-9:
            assert abs(auc - end) == pytest.approx(1.96 * math.sqrt(variance(end, m, n)), rel=1e-4)


@given(st.floats(0.01, 0.99), COUNTS, COUNTS, st.integers(2, 9))
def test_several_that_hold_together_are_wider(auc: float, m: int, n: int, together: int) -> None:
    (low, high), (lower, higher) = score_interval(auc, m, n), score_interval(auc, m, n, together)
    assert lower <= low
    assert high <= higher
    assert lower < low or higher > high or auc in (low, high)


@given(st.floats(0, 1), COUNTS, COUNTS)
def test_the_interval_is_symmetric(auc: float, m: int, n: int) -> None:
    (low, high), (other_low, other_high) = score_interval(auc, m, n), score_interval(1 - auc, m, n)
    assert (low, high) == (pytest.approx(1 - other_high, abs=1e-6), pytest.approx(1 - other_low, abs=1e-6))
    assert 0 <= low <= auc <= high <= 1


@given(st.floats(0, 1), st.floats(0, 1), COUNTS, COUNTS)
def test_a_better_ranking_promises_more(one: float, other: float, m: int, n: int) -> None:
    (low, _), (better, _) = score_interval(min(one, other), m, n), score_interval(max(one, other), m, n)
    assert low <= better + 1e-9


def test_more_rounds_promise_more() -> None:
    found = [score_interval(1.0, m, 4 * m)[0] for m in (2, 20, 200)]
    assert found == sorted(found)
    assert found[1] == pytest.approx(0.938, abs=0.001)


@pytest.mark.parametrize(("auc", "m", "n"), [(1.1, 3, 3), (-0.1, 3, 3), (0.5, 0, 3), (0.5, 3, 0), (math.nan, 3, 3)])
def test_impossible_rankings_are_refused(auc: float, m: int, n: int) -> None:
    with pytest.raises(ValueError, match="positives and"):
        score_interval(auc, m, n)
