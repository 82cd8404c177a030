"""Nearest neighbour mixing, NNM (Allouah et al. 2023), a step before another rule.

y_i = mean of the n − f rows nearest to x_i, x_i being one of them.

Ties between equally distant rows are broken by what the rows hold, not by their positions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, require
from fedarena.defenses.aggregators.geometry import Distances, Matrix, Order, distances, parts


class NNM(Wrapper):
    """`used`: the inner rule's weights of the y_i, shared out over the rows that they are means of."""

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "nnm", n, f, "2f + 1 uploads or more")
        super().check(n, f)

    def averages(self, n: int, f: int) -> bool:
        return f == 0 and self.inner.unanimous

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        mixing = neighbours(distances(x), call.f)
        return self.inside(mixing @ x, call).through(mixing)


def neighbours(rows: Distances, f: int) -> Tensor:
    """n rows → [n, n], of the rows' type and device: row i has 1/(n − f) at the n − f rows nearest to i."""
    n = len(rows.squared)
    mixing = rows.x.new_zeros(n, n)
    for some in parts(n):
        away = rows.squared[some]
        nearest = torch.from_numpy(_nearest(away, rows, n - f)).to(mixing.device)
        mixing[some].scatter_(1, nearest, 1 / (n - f))
    return mixing


def _nearest(away: Matrix, rows: Distances, count: int) -> Order:
    """The places of the `count` least of each row of distances [m, n]; ties are broken by what the rows hold."""
    n = away.shape[1]
    if count == n:
        return np.tile(np.arange(n), (len(away), 1))
    order: Order = away.argpartition((count - 1, count), axis=1)
    last, next_one = np.take_along_axis(away, order[:, count - 1 : count + 1], axis=1).T
    if not (last < next_one).all():  # a tie at the edge, or a distance that is no number
        order = np.lexsort((np.broadcast_to(rows.rank, away.shape), away), axis=1)
    return order[:, :count]
