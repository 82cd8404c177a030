"""An attacker's prior over samples, for what its equations leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.first_layer import Affine

Array = npt.NDArray[np.float64]

LEAST = 1e-4
"""Singular values below this share of the largest count as 0: A is known to the digits of float32."""
FLOOR = 1e-6
"""Least variance of what was seen, as a share of what the distribution expects."""

ROUNDING = 1e-3
"""How far a pixel may lie outside [0, 1]."""

BLOCK = 1000
"""Sums over the entries of a matrix are taken by blocks of so many rows and columns."""


class ImageDistribution(Protocol):
    """Most likely samples given what was seen of them."""

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        """[s] → [d]; `variance`: of the noise in each entry seen."""


class LeastNorm:
    """No distribution: the sample of least norm among those that give what was seen, A⁺(r − c)."""

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        return seen - of.c if of.a is None else torch.linalg.pinv(of.a, rtol=LEAST) @ (seen - of.c)


@dataclass(frozen=True)
class GaussianImages:
    """N(μ, C), restricted to [0, 1].

    x̂ = μ + C Aᵀ (A C Aᵀ + λI)⁻¹ (r − c − A μ), with λ the variance of what was seen. Pixels that would leave [0, 1] are
    then fixed at the nearest end, which adds an equation for each. This is repeated until no pixel leaves [0, 1].

    Attributes:
        mean: μ [d]. covariance: C [d, d]; double precision.
    """

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, x: Tensor) -> GaussianImages:
        """The distribution of samples [n, d]. C is shrunk (Ledoit & Wolf 2004): samples may be fewer than pixels."""
        values = x.double().cpu().numpy()
        mean = values.mean(0)
        return cls(*(torch.from_numpy(found).to(x.device) for found in (mean, shrunk_covariance(values - mean))))

    def root(self) -> Tensor:
        """C^½ [d, d], symmetric."""
        values, vectors = torch.linalg.eigh(self.covariance)
        root: Tensor = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
        return root

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        pixels = torch.eye(len(self.mean)).to(self.mean)
        a, r = pixels if of.a is None else of.a, seen - of.c
        noise = torch.full_like(r, variance)
        inside = torch.ones_like(self.mean, dtype=torch.bool)
        while True:
            x = self._given(a, r, noise)
            left = inside & ((x < -ROUNDING) | (x > 1 + ROUNDING))
            if not bool(left.any()):
                return x
            inside &= ~left
            a, r = torch.cat([a, pixels[left]]), torch.cat([r, x[left].clamp(0, 1)])
            noise = torch.cat([noise, torch.zeros_like(x[left])])

    def _given(self, a: Tensor, r: Tensor, noise: Tensor) -> Tensor:
        """The mean given A x + N(0, noise) = r."""
        cross = self.covariance @ a.T
        expected = a @ cross
        noise = noise.clamp_min(FLOOR * float(expected.diagonal().mean()))
        weights: Tensor = torch.linalg.solve(expected + noise.diag(), r - a @ self.mean)
        return self.mean + cross @ weights


def shrunk_covariance(x: Array) -> Array:
    """The covariance of centred samples [n, d], shrunk towards a multiple of the identity (Ledoit & Wolf 2004): [d, d].

    (1 − s) C + s μ I with C = XᵀX/n, μ = tr C/d. The operations are those of scikit-learn's `LedoitWolf`, in its order,
    so that results are equal to the last bit. To import it takes every worker a second, and it inverts the matrix.
    """
    n, d = x.shape
    squares = x**2
    variances = squares.sum(0) / n
    mean = variances.sum() / d
    blocks = [slice(start, start + BLOCK) for start in range(0, d, BLOCK)]
    fourth = size = 0.0  # sums of the entries of X²ᵀX², and of the squared entries of XᵀX
    for rows in blocks:
        for columns in blocks:
            fourth += np.dot(squares.T[rows], squares[:, columns]).sum()
            size += (np.dot(x.T[rows], x[:, columns]) ** 2).sum()
    size /= n**2
    error = 1.0 / (d * n) * (fourth / n - size)
    distance = (size - 2.0 * mean * variances.sum() + d * mean**2) / d
    error = min(error, distance)
    share = 0.0 if error == 0 or d == 1 else error / distance
    covariance = np.dot(x.T, x) / n
    shrunk: Array = (1.0 - share) * covariance
    shrunk.flat[:: d + 1] += share * (np.trace(covariance) / d)
    return shrunk
