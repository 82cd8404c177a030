"""The interval of a worst case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedarena.board.lowest_mean import lowest_mean_interval
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import mean, t_quantile


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("cells", [2, 20, 100])
def test_it_holds_the_lowest_true_mean(seeds: int, cells: int) -> None:
    """Of cells with equal means, where the lowest is most often lower than the truth by chance."""
    scores = 0.5 + 0.1 * Rng(0).child("lowest mean", seeds, cells).numpy().normal(size=(200, cells, seeds))
    ends = [lowest_mean_interval(one.tolist()) for one in scores]
    assert sum(e is not None and e[0] <= 0.5 <= e[1] for e in ends) / 200 >= 0.93


def test_the_chosen_cell_s_own_interval_does_not() -> None:
    scores = 0.5 + 0.1 * Rng(0).child("lowest mean", 5, 20).numpy().normal(size=(200, 20, 5))
    own = [mean(min(one.tolist(), key=np.mean)).interval for one in scores]
    assert sum(e is not None and e[0] <= 0.5 <= e[1] for e in own) / 200 < 0.9


def test_it_equals_one_computed_by_hand() -> None:
    cells = [[0.2, 0.3, 0.4], [0.5, 0.5, 0.6, 0.6], [0.2, 0.3, 0.4], [0.1]]
    low, high = lowest_mean_interval(cells) or (0.0, 0.0)
    error = 0.1 / math.sqrt(3)
    assert low == pytest.approx(0.3 - t_quantile(2) * error)
    other = 0.55 + t_quantile(3, 2) * float(np.std(cells[1], ddof=1)) / 2
    assert high == pytest.approx(min(0.3 + t_quantile(2, 2) * error, other))


def test_one_cell_has_student_s_interval() -> None:
    assert lowest_mean_interval([[0.2, 0.3, 0.7]]) == pytest.approx(mean([0.2, 0.3, 0.7]).interval)


def test_without_spread_there_is_no_interval() -> None:
    assert lowest_mean_interval([]) is lowest_mean_interval([[0.5], [0.4]]) is None
