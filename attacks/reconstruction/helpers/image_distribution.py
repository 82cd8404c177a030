"""An attacker's prior over samples, for what its equations leave open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.first_layer import Affine

LEAST = 1e-4
"""Singular values below this share of the largest count as 0: A is known to the digits of float32."""
FLOOR = 1e-6
"""Least variance of what was seen, as a share of what the distribution expects."""

ROUNDING = 1e-3
"""How far a pixel may lie outside [0, 1]."""


class ImageDistribution(Protocol):
    """Most likely samples given what was seen of them."""

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        """[s] → [d]; `variance`: of the noise in each entry seen."""

    def surprise(self, seen: Tensor, of: Affine, variance: float) -> float:
        """−log p of what was seen [s], up to a constant."""

    def left_open(self, of: Affine, variance: float) -> float:
        """The share of the variance of samples that stays, once something of this kind was seen."""


class LeastNorm:
    """No distribution: the sample of least norm among those that give what was seen, A⁺(r − c).

    Its probabilities are those of N(0, I), of whose samples it is the mean.
    """

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        return seen - of.c if of.a is None else torch.linalg.pinv(of.a, rtol=LEAST) @ (seen - of.c)

    def surprise(self, seen: Tensor, of: Affine, variance: float) -> float:
        return _standard(of).surprise(seen, of, variance)

    def left_open(self, of: Affine, variance: float) -> float:
        return _standard(of).left_open(of, variance)


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
    _factors: dict[float, tuple[Tensor, Tensor]] = field(default_factory=dict, compare=False, repr=False)
    """The LU factors of C + λI for the last λ: samples that are seen exactly share the least λ."""

    @classmethod
    def of(cls, x: Tensor) -> GaussianImages:
        """The distribution of samples [n, d]. C is shrunk (Ledoit & Wolf 2004): samples may be fewer than pixels."""
        from sklearn.covariance import LedoitWolf

        fitted = LedoitWolf().fit(x.double().cpu().numpy())
        return cls(torch.from_numpy(fitted.location_).to(x.device), torch.from_numpy(fitted.covariance_).to(x.device))

    def root(self) -> Tensor:
        """C^½ [d, d], symmetric."""
        values, vectors = torch.linalg.eigh(self.covariance)
        root: Tensor = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
        return root

    def __call__(self, seen: Tensor, of: Affine, variance: float) -> Tensor:
        pixels = torch.eye(len(self.mean)).to(self.mean)
        a, r = self._map(of), seen - of.c
        noise = torch.full_like(r, variance)
        inside = torch.ones_like(self.mean, dtype=torch.bool)
        x = self._seen_whole(r, variance) if of.a is None else self._given(a, r, noise)
        while bool((left := inside & ((x < -ROUNDING) | (x > 1 + ROUNDING))).any()):
            inside &= ~left
            a, r = torch.cat([a, pixels[left]]), torch.cat([r, x[left].clamp(0, 1)])
            noise = torch.cat([noise, torch.zeros_like(x[left])])
            x = self._given(a, r, noise)
        return x

    def _seen_whole(self, r: Tensor, variance: float) -> Tensor:
        """The mean given x + N(0, variance) = r."""
        noise = max(variance, FLOOR * float(self.covariance.diagonal().mean()))
        if noise not in self._factors:
            self._factors.clear()
            lu, pivots = torch.linalg.lu_factor(self.covariance + noise * torch.eye(len(r)).to(r))
            self._factors[noise] = lu, pivots
        weights: Tensor = torch.linalg.lu_solve(*self._factors[noise], (r - self.mean)[:, None])
        return self.mean + self.covariance @ weights[:, 0]

    def surprise(self, seen: Tensor, of: Affine, variance: float) -> float:
        a = self._map(of)
        expected = self._expected(a, seen.new_full(seen.shape, variance))
        r = seen - of.c - a @ self.mean
        return float(0.5 * (r @ torch.linalg.solve(expected, r) + torch.linalg.slogdet(expected).logabsdet))

    def left_open(self, of: Affine, variance: float) -> float:
        a = self._map(of)
        cross = self.covariance @ a.T
        told = torch.linalg.solve(self._expected(a, cross.new_full((len(a),), variance)), cross.T)
        return 1 - float((cross * told.T).sum() / self.covariance.trace())

    def _map(self, of: Affine) -> Tensor:
        return torch.eye(len(self.mean)).to(self.mean) if of.a is None else of.a

    def _expected(self, a: Tensor, noise: Tensor) -> Tensor:
        """A C Aᵀ + noise, [s, s]."""
        of_samples = a @ self.covariance @ a.T
        least = max(FLOOR * float(of_samples.diagonal().mean()), torch.finfo(a.dtype).tiny)
        return of_samples + noise.clamp_min(least).diag()

    def _given(self, a: Tensor, r: Tensor, noise: Tensor) -> Tensor:
        """The mean given A x + N(0, noise) = r."""
        weights: Tensor = torch.linalg.solve(self._expected(a, noise), r - a @ self.mean)
        return self.mean + self.covariance @ a.T @ weights


def prior_of(x: Tensor | None, d: int) -> tuple[ImageDistribution, Tensor]:
    """The prior by samples [n, *shape], and its mean [d]; without samples the least norm, and mid-grey."""
    if x is None:
        return LeastNorm(), torch.full((d,), 0.5, dtype=torch.float64)
    gaussian = GaussianImages.of(x.flatten(1))
    return gaussian, gaussian.mean


def _standard(of: Affine) -> GaussianImages:
    """N(0, I) of as many pixels as a map takes."""
    d = len(of.c) if of.a is None else of.a.shape[1]
    return GaussianImages(of.c.new_zeros(d), torch.eye(d).to(of.c))
