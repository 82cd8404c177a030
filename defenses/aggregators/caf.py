"""The covariance-bound agnostic filter, CAF (Allouah, Guerraoui & Stephan 2025, Algorithm 2).

c_i = 1; while Σ c_i > n − 2f:
    μ = Σ c_i x_i / Σ c_i
    (λ, v) = largest eigenvalue and its vector of (1/Σ c_i) Σ c_i (x_i − μ)(x_i − μ)ᵀ
    τ_i = ⟨x_i − μ, v⟩²;   c_i ← c_i (1 − τ_i / max_{j: c_j > 0} τ_j)
μ of the step with the smallest λ

Every μ is a weighted mean of the rows, and v lies in their span, so that one Gram matrix is all that the steps need.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.geometry import Matrix, by_content, geometry

ROUNDING = 1e-12
"""An eigenvalue up to this share of the largest square counts as 0: the rows that are left are equal."""


class CAF(Aggregator):
    """`used`: c_i / Σ c_i of the step with the smallest λ; the mean for f = 0."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "caf", n, f, "2f + 1 uploads or more")

    def averages(self, n: int, f: int) -> bool:
        return f == 0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        order = by_content(x) if call.f else np.arange(len(x))  # eigenvectors of equal eigenvalues depend on the order
        weights = np.full(len(x), 1 / len(x))
        if call.f:
            weights[order] = filtered(geometry(x).gram[np.ix_(order, order)], call.f)
        used = torch.from_numpy(weights).to(x)
        return Aggregate(used @ x, used)


def filtered(gram: Matrix, f: int) -> Matrix:
    """[n, n], products of the rows about any point → [n]: the weights. Every step takes one row's weight, at least."""
    n = len(gram)
    if not np.isfinite(gram).all():  # of a diverging model
        return np.full(n, 1 / n)
    left = np.ones(n)
    best, least = left / n, np.inf
    while left.sum() > n - 2 * f:
        share = left / left.sum()
        toward = gram @ share
        about = gram - toward[:, None] - toward[None] + share @ toward  # ⟨x_i − μ, x_j − μ⟩
        root = np.sqrt(share)
        values, vectors = np.linalg.eigh(root[:, None] * about * root[None])
        if values[-1] < least:
            best, least = share, values[-1]
        alive = left > 0
        if values[-1] <= ROUNDING * about.diagonal()[alive].max():
            break
        tau = (about @ (root * vectors[:, -1])) ** 2  # λ times the square of the projection
        left = np.where(alive, left * (1 - tau / tau[alive].max()), 0.0)
    return best
