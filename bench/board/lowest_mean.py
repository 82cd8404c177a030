"""An interval for the lowest of several means over seeds, which allows for the choice of the lowest.

Let cell i have the true mean μ_i, and let θ = min μ_i be the true worst case. With k cells, n_i seeds, means m_i and
standard deviations s_i, the interval is

    low  = min_i (m_i − t(n_i − 1, .975)·s_i/√n_i)
    high = min_i (m_i + t(n_i − 1, 1 − .025/k)·s_i/√n_i)

θ is the mean of one of the cells. That cell's own lower end is above θ in 2.5 % of cases, and `low` is no higher.
`high` is below θ only if some cell's upper end is below its own mean, for which Bonferroni allows 2.5 % in all. So the
interval holds θ in at least 95 % of cases where Student's interval holds a single mean, whatever the cells have in
common. The interval of the cell chosen fails: the lowest of many means is lower than θ.

A bootstrap over seeds of the whole minimum was measured beside it (`benchmarks/coverage.py`) and holds θ too seldom.
For 100 cells of equal means, intervals by percentiles hold θ in 0 % of cases, and basic ones in 33 to 48 %. A basic
one that is widened to Student's quantile holds it in 95 % with 3 seeds, 91 % with 5, and 70 % with 10. The interval of
the chosen cell does in 71, 52 and 35 %, and this one in 96 to 98 %. For 20 cells whose means lie 0.05 apart, the
widened one holds θ in 88 % with 3 seeds. This one holds it in 99 to 100 %, at 1.6 to 2.3 times the width.
The spread of a bootstrap does not grow with the number of cells as the winner's curse does. So none is used here.

Like Student's interval it has no width where a cell has the same score on all seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from fedarena.core.text.numbers import t_quantile

DECIMALS = 9
"""Decimals of the ends. The page's script adds in another order, which changes further ones."""


def lowest_mean_interval(cells: Iterable[Sequence[float]]) -> tuple[float, float] | None:
    """The 95 % interval of the lowest true mean.

    Args:
        cells: the scores of each cell, one a seed. Cells with equal scores, such as those of parties that read the
            same, count once. Cells with fewer than two seeds show no spread, and are left out.

    Returns:
        (low, high), or None where no cell shows its spread.
    """
    return _lowest_mean_interval(frozenset(tuple(scores) for scores in cells if len(scores) > 1))


@lru_cache(maxsize=10_000)  # a page shows the same cells under hundreds of filters
def _lowest_mean_interval(distinct: frozenset[tuple[float, ...]]) -> tuple[float, float] | None:
    ends = []
    for n in {len(scores) for scores in distinct}:
        scores = np.array([one for one in distinct if len(one) == n])
        middle, error = scores.mean(1), scores.std(1, ddof=1) / math.sqrt(n)
        low = middle - t_quantile(n - 1) * error
        high = middle + t_quantile(n - 1, len(distinct)) * error
        ends.append((float(low.min()), float(high.min())))
    if not ends:
        return None
    return round(min(low for low, _ in ends), DECIMALS), round(min(high for _, high in ends), DECIMALS)
