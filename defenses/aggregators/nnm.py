"""Nearest neighbour mixing, NNM (Allouah et al. 2023), a step before another rule.

y_i = mean of the n − f rows nearest to x_i, x_i being one of them.

Ties between equally distant rows are broken by what the rows hold, not by their positions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, require
from fedarena.defenses.aggregators.geometry import Geometry, geometry


class NNM(Wrapper):
    """`used`: the inner rule's weights of the y_i, shared out over the rows that they are means of."""

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "nnm", n, f, "2f + 1 uploads or more")
        super().check(n, f)

    def averages(self, n: int, f: int) -> bool:
        return f == 0 and self.inner.unanimous

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        mixing = neighbours(geometry(x), call.f).to(x)
        return self.inside(mixing @ x, call).through(mixing)


def neighbours(rows: Geometry, f: int) -> Tensor:
    """n rows → [n, n]: row i has 1/(n − f) at the n − f rows nearest to i."""
    n = len(rows.squared)
    order = rows.squared.argsort(axis=1, kind="stable")
    away = np.take_along_axis(rows.squared, order, axis=1)
    if f and (away[:, n - f - 1] == away[:, n - f]).any():
        order = np.lexsort((np.broadcast_to(rows.rank, (n, n)), rows.squared), axis=1)
    nearest = torch.from_numpy(order[:, : n - f])
    return torch.zeros(n, n, dtype=torch.float64).scatter_(1, nearest, 1 / (n - f))
