"""A linear classifier for one round, from few simulated updates in many coordinates. It accounts for public noise.

Updates x_i [d] with labels y_i = ±1 are simulated without the protocol's noise, of variance σ². Each coordinate is
divided by √(s_j² + σ²), s_j² its variance within the two classes. Ridge regression in its dual form,

    α = (K_c + (λ k + n ν) I)⁻¹ y_c,   w = X_cᵀ α,   score(x) = wᵀ(x − mean)

with K_c = X_c X_cᵀ the centred Gram matrix (n ≪ d), k its mean diagonal and ν the mean of σ²/(s_j² + σ²), is Fisher's
discriminant with covariances shrunk towards the identity; n ν is the share of the noise in that. It is trained on
updates without noise, because another draw of noise would only blur them.
"""

from __future__ import annotations

import torch
from torch import Tensor

STRENGTHS = (0.01, 1.0, 100.0)
"""λ. At the last one w is the difference of the classes' means."""


def ridge_scores(x: Tensor, y: Tensor, updates: Tensor, noise_std: float = 0.0) -> list[Tensor]:
    """Scores [m] of updates at each of `STRENGTHS`; higher: more likely to have the property.

    Args:
        x: simulated updates [n, d], without noise; at least 2 of either kind.
        y: which of them have the property, [n] (bool).
        updates: those to be scored [m, d], noise included.
        noise_std: σ.
    """
    n = len(y)
    within = torch.cat([x[k] - x[k].mean(0) for k in (y, ~y)]).square().sum(0) / (n - 2)
    scale = (within + noise_std**2).sqrt()
    scale = torch.where(scale > 0, scale, torch.inf)  # a coordinate that never changes has no information
    centre = x.mean(0)
    samples, queries = ((x - centre) / scale).double(), ((updates - centre) / scale).double()
    gram, cross = samples @ samples.T, queries @ samples.T
    signs = y.to(gram) * 2 - 1
    blur = n * float((noise_std / scale).square().mean())
    eye = torch.eye(n, dtype=gram.dtype, device=gram.device)
    penalties = [strength * float(gram.diagonal().mean()) + blur or 1.0 for strength in STRENGTHS]
    return [cross @ torch.linalg.solve(gram + penalty * eye, signs - signs.mean()) for penalty in penalties]
