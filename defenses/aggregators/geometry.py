"""Distances between uploads, all from one Gram matrix, in a way that no upload can spoil for the others.

‖x_i − x_j‖² = ‖x_i − c‖² + ‖x_j − c‖² − 2⟨x_i − c, x_j − c⟩ for any c. One matrix product is far cheaper than n²
differences, but its rounding error is about ε(‖x_i − c‖² + ‖x_j − c‖²). If c is far from most rows, this error hides
the distances among them. A sender could cause that (one row of 1e6 moves the mean away). So c is the origin if that is
near enough, and else a row that is close to most others.

Of many rows some are worked on at a time. Then nothing of the size [n, d] or [n, n] is made beside what is returned,
and every product is computed once for both of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
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
AT_ONCE = 512
"""Rows that are multiplied with as many others at a time. Products of up to so many rows are one product."""


@dataclass(frozen=True)
class Distances:
    """Distances of n rows, in float64 on the CPU for rows of any device and type.

    Attributes:
        squared: [n, n], ‖x_i − x_j‖², zero on the diagonal.
        x: the rows [n, d].
    """

    squared: Matrix
    x: Tensor

    @cached_property
    def rank(self) -> Order:
        """[n]: the rank of each row by what it holds, which breaks ties."""
        return by_content(self.x).argsort()


@dataclass(frozen=True)
class Geometry(Distances):
    """Distances, and the products that they come from.

    Attributes:
        gram: [n, n], ⟨x_i − c, x_j − c⟩ about some point c.
    """

    gram: Matrix


def parts(n: int) -> Iterator[slice]:
    """The slices of n rows that are worked on at a time."""
    return (slice(first, first + AT_ONCE) for first in range(0, n, AT_ONCE))


def by_content(x: Tensor) -> Order:
    """An order of the rows of x [n, d] that depends on what they hold, not on their positions.

    They are sorted by Σ_j cos(j) x_ij, j from 1, which differs for different rows except by chance.
    """
    factors = np.cos(np.arange(1, x.shape[1] + 1))
    keys = [(some.double().cpu().numpy() * factors).sum(axis=1) for some in x.detach().split(AT_ONCE)]
    order: Order = np.concatenate(keys).argsort(kind="stable")
    return order


def distances(x: Tensor) -> Distances:
    """Squared distances of the rows of x [n, d], finite; exact to about 1e-5 in float32."""
    _, squared = _about_a_centre(x, products=False)
    return Distances(squared, x)


def geometry(x: Tensor) -> Geometry:
    """As `distances`, with the Gram matrix."""
    gram, squared = _about_a_centre(x, products=True)
    return Geometry(squared, x, gram)


def _about_a_centre(x: Tensor, products: bool) -> tuple[Matrix, Matrix]:
    """The Gram matrix about a centre that is near enough, unless squared distances take its place; and these."""
    center: int | None = None
    for _ in range(PASSES):
        gram = _gram(x, center)
        squares = gram.diagonal().copy()
        squared = _squared(gram, np.empty_like(gram) if products else gram)
        spread = np.concatenate([np.median(squared[rows], axis=1) for rows in parts(len(x))])
        middle = int(spread.argmin())
        if np.median(squares) <= NEAR * spread[middle]:
            break
        center = middle
    return gram, squared


def _squared(gram: Matrix, out: Matrix) -> Matrix:
    """Squared distances from products [n, n], written to `out`, which may be the products."""
    squares = gram.diagonal().copy()
    for rows in parts(len(gram)):
        out[rows] = np.maximum(squares[rows, None] + squares[None] - 2 * gram[rows], 0)
    np.fill_diagonal(out, 0)
    return out


def _gram(x: Tensor, center: int | None) -> Matrix:
    """[n, n]; rows whose squares overflow float32 are multiplied in float64."""
    gram = _products(x, center)
    return gram if np.isfinite(gram).all() else _products(x.double(), center)


def _products(x: Tensor, center: int | None) -> Matrix:
    """⟨x_i − c, x_j − c⟩ for all pairs of rows, in the precision of x."""
    gram = np.empty((len(x), len(x)))
    for rows in parts(len(x)):
        mine = x[rows] if center is None else x[rows] - x[center]
        for others in parts(rows.start):
            theirs = x[others] if center is None else x[others] - x[center]
            gram[rows, others] = (mine @ theirs.T).double().cpu().numpy()
            gram[others, rows] = gram[rows, others].T
        own = (mine @ mine.T).double().cpu().numpy()
        gram[rows, rows] = (own + own.T) / 2
    return gram
