"""The exact interval of a share."""

from __future__ import annotations

import pytest
from scipy.stats import binom, binomtest

from fedarena.core.binomial import binomial_interval, share_ends


@pytest.mark.parametrize(("found", "among"), [(0, 1), (1, 1), (3, 10), (199, 200), (200, 200)])
def test_it_is_clopper_and_pearsons(found: int, among: int) -> None:
    exact = binomtest(found, among).proportion_ci(0.95, method="exact")
    assert binomial_interval(found, among) == (pytest.approx(exact.low), pytest.approx(exact.high))


@pytest.mark.parametrize("n", [1, 40])
def test_the_interval_of_none_and_of_all_ends_there(n: int) -> None:
    assert binomial_interval(0, n) == (0.0, pytest.approx(1 - 0.025 ** (1 / n)))
    assert binomial_interval(n, n) == (pytest.approx(0.025 ** (1 / n)), 1.0)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
@pytest.mark.parametrize("among", [5, 60])
def test_it_holds_the_truth_in_19_of_20_cases(share: float, among: int) -> None:
    chances = binom.pmf(range(among + 1), among, share)
    ends = [binomial_interval(k, among) for k in range(among + 1)]
    assert sum(p for p, (low, high) in zip(chances, ends, strict=True) if low <= share <= high) >= 0.95


def test_counts_need_not_be_whole() -> None:
    lows = [binomial_interval(found, 10.5)[0] for found in (4, 4.5, 5)]
    assert lows == sorted(lows)


def test_what_cannot_be_is_refused() -> None:
    for found, among in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="found among"):
            binomial_interval(found, among)
    assert share_ends("x", 0.0, 0) == {}
