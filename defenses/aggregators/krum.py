"""Krum (Blanchard et al. 2017, Section 4).

    s(i) = Σ_{j ∈ N(i)} ‖x_i − x_j‖²,  N(i) the n − f − 2 rows nearest to i, not counting i
    x_{i*},  i* = argmin_i s(i)

With one neighbour, two rows that are each other's nearest have equal scores. Then the one that is closer to all rows
wins (Σ_j ‖x_i − x_j‖², after that the first), so that the order of the uploads does not matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fedarena.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.geometry import Matrix, geometry


class Krum(Aggregator):
    """The one upload that lies closest to its neighbours. `used` is 1 for it and 0 for the others."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 3, "krum", n, f, "2f + 3 uploads or more")

    def picks(self, n: int, f: int) -> bool:
        return True

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        best = int(ranking(geometry(x).squared, call.f)[0])
        used = x.new_zeros(len(x))
        used[best] = 1
        return Aggregate(x[best].clone(), used)


def ranking(squared: Matrix, f: int) -> npt.NDArray[np.intp]:
    """[n, n] squared distances → [n]: the rows, best score first; scores count at least one neighbour."""
    neighbours = max(len(squared) - f - 2, 1)
    scores = np.sort(squared, axis=1)[:, : neighbours + 1].sum(axis=1)  # a row's distance to itself adds 0
    return np.lexsort((squared.sum(axis=1), scores))
