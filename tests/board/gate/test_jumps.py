"""Leaps: the bound is one, and gaps are counted right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.board.gate.jumps import Leaps, bound, gap


@given(st.integers(2, 8), st.floats(0.001, 0.999))
def test_chance_of_a_lucky_row_is_within_its_bound(n: int, p: float) -> None:
    u = p * (1 - p)
    mixed = 1 - p**n - (1 - p) ** n
    assert 2 * u**n <= bound(n) * mixed * (1 + 1e-9)


def test_the_bound_is_reached_by_fair_coins() -> None:
    for n in (2, 3, 5):
        assert bound(n) * (1 - 2 * 0.5**n) == pytest.approx(2 * 0.25**n)
    assert bound(3) == pytest.approx(1 / 24)
    assert bound(5) == pytest.approx(1 / 480)


def test_a_gap_needs_all_seeds_of_one_side_above_the_other() -> None:
    assert gap([0.1, 0.2], [0.5, 0.9]) == pytest.approx(0.3)
    assert gap([0.5, 0.9], [0.1, 0.2]) == pytest.approx(0.3)
    assert gap([0.1, 0.6], [0.5, 0.9]) == 0
    assert gap([0.5, 0.5], [0.5, 0.9]) == 0


def test_the_share_counts_sides_that_leap() -> None:
    leaps = Leaps([0.0, 0.3, 0.3, 0.9], [0.0] * 10 + [0.3, 0.3, 0.9])
    assert leaps.share(0.3) == pytest.approx((3 + 3.5 / 14) / 5)
    assert leaps.share(0.5) == pytest.approx((1 + 1.5 / 14) / 5)
    assert leaps.share(1.0) == pytest.approx((0 + 0.5 / 14) / 5)
    assert leaps.chance(0.5, 3) == pytest.approx(leaps.share(0.5) / 24)
    assert leaps.chance(0.0, 3) == 1
