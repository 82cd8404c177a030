"""The exact distribution of Stein's gradient estimate from K random directions, without computing a direction.

For small σ a loss difference is ΔL_k = σ z_kᵀ g with g the true gradient, and the estimate is a Wishart matrix times g:

    ĝ = (1/K) Σ_k z_k z_kᵀ g = ‖g‖ [ (X/K) e + (√X/K) z⊥ ]      e = g/‖g‖,  X ~ χ²_K,  z ~ N(0, I),  z⊥ = z − (zᵀe) e

because the components of the z_k along e are K standard normals, and those across e are independent of them. One draw
costs O(n) in place of K forward passes. Central and forward differences have the same distribution here, because it
ignores the curvature of the loss over a step σ, and rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor


def estimate(gradient: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """One draw of ĝ [n] for the true gradient [n] and K directions; 0 for a gradient of 0."""
    length = torch.linalg.vector_norm(gradient)
    if not length > 0:
        return torch.zeros_like(gradient)
    e = gradient / length
    chi = _chi_square(k, generator).to(gradient)
    z = torch.randn(gradient.numel(), generator=generator).to(gradient)
    across = z - (z @ e) * e
    draw: Tensor = length * (chi / k * e + chi.sqrt() / k * across)
    return draw


def _chi_square(k: int, generator: torch.Generator) -> Tensor:
    return torch.randn(k, generator=generator, dtype=torch.float64).square().sum()
