"""The geometric median by the smoothed Weiszfeld algorithm (RFA, Pillutla, Kakade & Harchaoui 2022).

    z ← Σ_i w_i x_i,  w_i = (1/r_i) / Σ_j (1/r_j),  r_i = max(‖x_i − z‖, eps)

Every z is a weighted mean of the rows, so that the iterations need no vector longer than n: with G the Gram matrix
about any point, ‖x_i − z‖² = G_ii − 2 (G w)_i + wᵀ G w. One product of uploads before, one after.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.geometric_median import Options
from fedarena.defenses.aggregators.geometry import Geometry, Matrix, geometry


class GeometricMedian(Aggregator):
    """The point with the smallest sum of distances to the uploads. `used`: the last w."""

    options: Options

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "geometric-median", n, f, "2f + 1 uploads or more")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        used = torch.from_numpy(weiszfeld(geometry(x), self.options.iterations, self.options.eps)).to(x)
        return Aggregate(used @ x, used)


def weiszfeld(of: Geometry, iterations: int, eps: float) -> Matrix:
    """[n]: the weights after so many iterations.

    The first weights are 1/(median distance of the row to all rows), not equal ones. From the mean, an iteration
    brings z nearer to the honest rows by no more than a factor f/(n − f), however far away it starts.
    """
    gram, squares = of.gram, of.gram.diagonal()
    reach = np.median(np.sqrt(of.squared), axis=1)
    weights = _shares(reach, eps)
    for _ in range(iterations):
        toward = gram @ weights
        weights = _shares(np.sqrt(np.maximum(squares - 2 * toward + weights @ toward, 0)), eps)
    return weights


def _shares(distances: Matrix, eps: float) -> Matrix:
    inverse = 1 / np.maximum(distances, eps)
    shares: Matrix = inverse / inverse.sum()
    return shares
