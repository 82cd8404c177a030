"""Random directions on the unit sphere, and the gradient estimate from loss differences along them (FedZO, Fang et al.
2022, mini-batch estimator).

    v_k = z_k/‖z_k‖,  z_k ~ N(0, I_d)                                           k = 1 … b2
    g = (d/μ) (1/b2) Σ_k v_k ΔL_k,   ΔL_k = L(W + μ v_k) − L(W)

L is the mean loss of b1 samples, so that 1/(b1 b2) of the paper is 1/b2 here. The factor d makes g unbiased for small
μ, because E[v vᵀ] = I/d.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fedarena.defenses.baffle.directions import directions


def sphere_directions(seed: int, d: int) -> Iterator[Tensor]:
    """v_1, v_2, … without end: uniform on the unit sphere of R^d, float32, on the CPU, each a tensor of its own.

    Args:
        seed: 0 ≤ seed < 2³². d: the number of parameters.

    Raises:
        UserError: a seed that does not fit into 4 bytes.
    """
    return (z.div_(torch.linalg.vector_norm(z)) for z in directions(seed, d))


def sphere_estimate(seed: int, d: int, differences: Tensor, mu: float) -> Tensor:
    """g [d] of the module's docstring, with the directions of `sphere_directions(seed, d)` drawn again.

    Args:
        differences: ΔL_1 … ΔL_b2 [b2].
        mu: μ.

    Returns:
        In double precision if the differences are, else in single; on their device.
    """
    total = torch.zeros(d, dtype=torch.promote_types(differences.dtype, torch.float32))
    weights = differences.detach().to(total) * (d / (mu * len(differences)))
    for weight, v in zip(weights.tolist(), sphere_directions(seed, d), strict=False):
        total.add_(v, alpha=weight)
    return total.to(differences.device)
