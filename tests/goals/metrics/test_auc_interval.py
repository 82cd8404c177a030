"""The interval of an AUC."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from fedarena.core.rng import Rng
from fedarena.goals.metrics.auc_interval import AucEstimate, auc_interval, estimate_auc, score_interval

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


def drawn(seed: int, groups: int, half: int, shift: float, level: float = 0.0, alike: bool = True) -> AucEstimate:
    """Normal scores, of which those of members lie `shift` higher, and those of a group share a level."""
    generator = Rng(seed).torch()
    values = torch.randn(groups, 2 * half, generator=generator).double()
    values += level * torch.randn(groups, 1, generator=generator)
    return estimate_auc([*(values[:, :half] + shift)], [*values[:, half:]], alike)


@pytest.mark.parametrize("auc", [0.8, 0.98, 0.99])
@pytest.mark.parametrize(
    ("groups", "half", "level", "alike"), [(1, 20, 0, False), (25, 1, 0, True), (25, 4, 0.5, True), (12, 4, 1, True)]
)
def test_it_holds_the_truth_near_certainty_too(auc: float, groups: int, half: int, level: float, alike: bool) -> None:
    """`benchmarks/coverage.py` has the whole table."""
    shift = math.sqrt(2 + 2 * level**2) * norm.ppf(auc)
    truth = auc + (norm.cdf(shift / math.sqrt(2)) - auc) / groups if alike else auc
    ends = [auc_interval(drawn(seed, groups, half, shift, level, alike)) for seed in range(200)]
    assert all(low < high for low, high in ends)
    assert sum(low <= truth <= high for low, high in ends) / 200 >= 0.93


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 25])
def test_certainty_is_not_certain(groups: int, alike: bool) -> None:
    for shift, certain in ((100.0, 1.0), (-100.0, 0.0)):
        estimate = drawn(0, groups, 3, shift, alike=alike)
        low, high = auc_interval(estimate)
        assert estimate.auc == certain == (high if certain else low)
        assert high - low > 0.02


def test_alike_groups_in_perfect_order_count_as_fewer_candidates() -> None:
    apart, alike = (drawn(1, 20, 5, 100.0, level) for level in (0.0, 3.0))
    assert apart.auc == alike.auc == 1
    assert 70 < apart.members <= 100
    assert 20 <= alike.members < 30


def test_equal_scores_have_an_interval_about_chance() -> None:
    same = [torch.zeros(2)] * 5
    low, high = auc_interval(estimate_auc(same, same, True))
    assert low < 0.5 < high
