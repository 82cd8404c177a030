"""Krum (Blanchard et al. 2017, Section 4).

    s(i) = Σ_{j ∈ N(i)} ‖x_i − x_j‖²,  N(i) the n − f − 2 rows nearest to i, not counting i
    x_{i*},  i* = argmin_i s(i)

With one neighbour, two rows that are each other's nearest have equal scores. Then the one that is closer to all rows
wins (Σ_j ‖x_i − x_j‖², after that what the rows hold decides), so that the order of the uploads does not matter.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.geometry import Distances, Order, distances, parts


class Krum(Aggregator):
    """The one upload that lies closest to its neighbours. `used` is 1 for it and 0 for the others."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 3, "krum", n, f, "2f + 3 uploads or more")

    def picks(self, n: int, f: int) -> bool:
        return True

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        best = int(ranking(distances(x), call.f)[0])
        used = x.new_zeros(len(x))
        used[best] = 1
        return Aggregate(x[best].clone(), used)


def ranking(rows: Distances, f: int, among: Order | None = None) -> Order:
    """n rows, or those `among` them → [n]: their places in `among`, best score first.

    Scores count at least one neighbour.
    """
    squared = rows.squared if among is None else rows.squared[np.ix_(among, among)]
    neighbours = max(len(squared) - f - 2, 1)
    # A row's distance to itself adds 0.
    nearest = (np.sort(squared[some], axis=1)[:, : neighbours + 1].sum(axis=1) for some in parts(len(squared)))
    keys = squared.sum(axis=1), np.concatenate(list(nearest))
    order = np.lexsort(keys)
    if any((np.diff(key[order]) != 0).all() for key in keys):
        return order
    return np.lexsort((rows.rank if among is None else rows.rank[among], *keys))
