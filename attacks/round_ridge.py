"""A linear classifier for one round, from few simulated updates in many coordinates, with public noise reckoned in.

Updates x_i [d] with labels y_i = ±1, simulated without noise; each coordinate is divided by √(s_j² + σ²), s_j² its
variance within the two classes and σ² that of the protocol's noise. Ridge regression in its dual form,

    α = (K_c + λ n I)⁻¹ y_c,   w = X_cᵀ α,   score(x) = wᵀ(x − mean)

with K_c = X_c X_cᵀ the centred Gram matrix (n ≪ d), is Fisher's discriminant with covariances shrunk towards the
identity. Each sample is scored by the classifier of all the others; with m₊, m₋ the classes' mean scores and v their
pooled variance plus the variance Σ_j w_j² σ²/(s_j² + σ²) that noise adds, λ is the one whose (m₊ − m₋)²/v is largest.
What is returned is the log likelihood ratio of two normal laws,

    (score − (m₊ + m₋)/2)·(m₊ − m₋)/v

so that rounds can be compared with each other: it is small where the round's classifier tells little, and 0 where its
scores of other samples than its own point the wrong way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""λ tried, as multiples of the mean diagonal of K_c over n."""


@dataclass(frozen=True)
class Told:
    """Log likelihood ratios, of which more than 0 speaks for the property.

    Attributes:
        target: of the update that was seen.
        own: [n], of the simulated ones, each by a classifier that was trained on the others.
    """

    target: float
    own: Tensor


@dataclass(frozen=True)
class _Law:
    """Where scores of the two classes lie."""

    middle: float
    gap: float
    variance: float

    @property
    def told(self) -> float:
        """(m₊ − m₋)²/v; 0 where they point the wrong way."""
        return self.gap * max(0.0, self.gap) / self.variance

    def ratio(self, score: Tensor) -> Tensor:
        """Log likelihood ratio of a score."""
        return (score - self.middle) * max(0.0, self.gap) / self.variance


def round_ridge(x: Tensor, y: Tensor, target: Tensor, noise_std: float = 0.0) -> Told:
    """Classify one update by simulated ones of the same round.

    Args:
        x: simulated updates [n, d], without noise; at least 3 of either kind.
        y: which of them have the property, [n] (bool).
        target: the update that was seen, [d], noise included.
        noise_std: σ, of the noise on each of its coordinates.
    """
    spread = torch.cat([x[k] - x[k].mean(0) for k in (y, ~y)]).square().sum(0) / (len(y) - 2) + noise_std**2
    scale = spread.sqrt()
    scale = torch.where(scale > 0, scale, torch.inf)  # a coordinate that never changes tells nothing
    every = (torch.cat([x, target[None]]) / scale).double()
    gram = every @ every.T
    # What noise adds to the variance of wᵀx, as a quadratic form in α: X diag(σ²/scale²) Xᵀ.
    weighted = every[:-1] * (noise_std / scale).double()
    noisy = weighted @ weighted.T if noise_std else torch.zeros_like(gram[:-1, :-1])
    found = [_told(gram, noisy, y, strength) for strength in STRENGTHS]
    law, own, score = max(found, key=lambda f: f[0].told)
    return Told(float(law.ratio(score)), law.ratio(own))


def _told(gram: Tensor, noisy: Tensor, y: Tensor, strength: float) -> tuple[_Law, Tensor, Tensor]:
    """At one λ: the law of the scores, those of the simulated updates [n], each left out, and the target's."""
    n = len(y)
    own, noise = gram.new_zeros(n), 0.0
    for i in range(n):
        others = torch.tensor([j for j in range(n) if j != i])
        alpha, centre = _dual(gram[others][:, others], y[others], strength)
        own[i] = _score(gram[others], alpha, centre, i)
        noise += float(alpha @ _centred(noisy[others][:, others]) @ alpha) / n
    gap = float(own[y].mean() - own[~y].mean())
    within = torch.cat([own[k] - own[k].mean() for k in (y, ~y)]).square().sum() / (n - 2)
    law = _Law(float(own[y].mean() + own[~y].mean()) / 2, gap, float(within) + noise or 1.0)
    alpha, centre = _dual(gram[:-1, :-1], y, strength)
    return law, own, _score(gram[:-1], alpha, centre, n)


def _dual(gram: Tensor, y: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """α, and the mean row of the Gram matrix, by which scores are centred."""
    signs = y.to(gram) * 2 - 1
    centred = _centred(gram)
    penalty = strength * float(centred.diagonal().mean()) or 1.0
    eye = torch.eye(len(y), dtype=gram.dtype, device=gram.device)
    alpha: Tensor = torch.linalg.solve(centred + penalty * eye, signs - signs.mean())
    return alpha - alpha.mean(), gram.mean(0)


def _score(gram: Tensor, alpha: Tensor, centre: Tensor, i: int) -> Tensor:
    """wᵀ(x_i − mean); with α of sum 0 centring the training samples is done."""
    return alpha @ (gram[:, i] - centre)


def _centred(gram: Tensor) -> Tensor:
    """Of X Xᵀ that of the rows of X less their mean."""
    rows = gram - gram.mean(0)
    return rows - rows.mean(1, keepdim=True)
