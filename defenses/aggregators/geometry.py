"""Distances between uploads, all from one Gram matrix, in a way that no upload can spoil for the others.

‖x_i − x_j‖² = ‖x_i − c‖² + ‖x_j − c‖² − 2⟨x_i − c, x_j − c⟩ for any c. One matrix product is far cheaper than n²
differences, but its rounding error is about ε(‖x_i − c‖² + ‖x_j − c‖²). If c is far from most rows, this error hides
the distances among them. A sender could cause that (one row of 1e6 moves the mean away). So c is the origin if that is
near enough, and else a row that is close to most others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from torch import Tensor

Matrix = npt.NDArray[np.float64]
Order = npt.NDArray[np.intp]

NEAR = 100.0
"""A centre is near enough if most rows are within √NEAR times their spread of it: relative error ≤ 1e-5."""
PASSES = 3
"""Products at most. After the second the centre is a row that half of the rows are close to."""


@dataclass(frozen=True)
class Geometry:
    """Products and distances of n rows, in float64 on the CPU for rows of any device and type.

    Attributes:
        gram: [n, n], ⟨x_i − c, x_j − c⟩ about some point c.
        squared: [n, n], ‖x_i − x_j‖², zero on the diagonal.
        x: the rows [n, d].
    """

    gram: Matrix
    squared: Matrix
    x: Tensor

    @cached_property
    def rank(self) -> Order:
        """[n]: the rank of each row by what it holds, which breaks ties."""
        return by_content(self.x).argsort()


def by_content(x: Tensor) -> Order:
    """An order of the rows of x [n, d] that depends on what they hold, not on their positions.

    They are sorted by Σ_j cos(j) x_ij, j from 1, which differs for different rows except by chance.
    """
    values = x.detach().double().cpu().numpy()
    order: Order = (values * np.cos(np.arange(1, values.shape[1] + 1))).sum(axis=1).argsort(kind="stable")
    return order


def geometry(x: Tensor) -> Geometry:
    """Gram matrix and squared distances of the rows of x [n, d], finite; exact to about 1e-5 in float32."""
    center: int | None = None
    for _ in range(PASSES):
        gram = _gram(x, center)
        squares = gram.diagonal()
        squared = np.maximum(squares[:, None] + squares[None] - 2 * gram, 0)
        np.fill_diagonal(squared, 0)
        spread = np.median(squared, axis=1)
        middle = int(spread.argmin())
        if np.median(squares) <= NEAR * spread[middle]:
            break
        center = middle
    return Geometry(gram, squared, x)


def _gram(x: Tensor, center: int | None) -> Matrix:
    """[n, n]; rows whose squares overflow float32 are multiplied in float64."""
    z = x if center is None else x - x[center]
    gram: Matrix = (z @ z.T).double().cpu().numpy()
    if not np.isfinite(gram).all():
        x = x.double()
        z = x if center is None else x - x[center]
        gram = (z @ z.T).cpu().numpy()
    return (gram + gram.T) / 2
