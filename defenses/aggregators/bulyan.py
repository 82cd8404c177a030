"""Bulyan on Krum (El Mhamdi, Guerraoui & Rouault 2018).

1. θ = n − 2f times: take the row that Krum chooses among those left, and set it aside.
2. Every coordinate: the mean of those β = θ − 2f of the θ set aside that are closest to their median.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.coordinates import Values, by_coordinate, middle
from fedarena.defenses.aggregators.geometry import Distances, distances
from fedarena.defenses.aggregators.krum import ranking


class Bulyan(Aggregator):
    """`used` is 1/θ for the rows set aside: the second step weighs them coordinate by coordinate (on the CPU)."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 4 * f + 3, "bulyan", n, f, "4f + 3 uploads or more")

    def averages(self, n: int, f: int) -> bool:
        return f == 0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        chosen = select(distances(x), call.f)
        used = x.new_zeros(len(x))
        used[chosen] = 1 / len(chosen)
        count = len(chosen) - 2 * call.f
        return Aggregate(by_coordinate(x[chosen], lambda ascending: closest_mean(ascending, count)), used)


def select(rows: Distances, f: int) -> list[int]:
    """The θ = n − 2f rows of n that are set aside, in that order."""
    n = len(rows.squared)
    if f == 0:
        return list(range(n))
    left, chosen = np.arange(n), []
    for _ in range(n - 2 * f):
        best = int(ranking(rows, f, left)[0])
        chosen.append(int(left[best]))
        left = np.delete(left, best)
    return sorted(chosen)


def closest_mean(ascending: Values, count: int) -> Values:
    """[k, θ] → [k]: the mean of the `count` values closest to the median.

    In sorted order they are neighbours: a window of that length moves up as long as the value that enters is closer
    than the value that leaves. (The window whose farther end is nearest is not unique if colluders send equal values.)
    """
    center = middle(ascending)[:, None]
    last = ascending.shape[1] - count
    start = (center - ascending[:, :last] > ascending[:, count:] - center).sum(axis=1)
    # No difference of running sums: a value left out could be so large that the sums lose the others.
    mean: Values = np.take_along_axis(ascending, start[:, None] + np.arange(count), axis=1).mean(axis=1)
    return mean
