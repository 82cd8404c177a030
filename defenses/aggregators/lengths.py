"""Norms of uploads, and clipping to a bound. Norms are float64: squares of finite float32 values can overflow."""

from __future__ import annotations

import torch
from torch import Tensor


def lengths(x: Tensor) -> Tensor:
    """[n, d] → [n] float64: Euclidean norms of the rows."""
    norms: Tensor = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
    return norms


def median(values: Tensor) -> Tensor:
    """[n] → []: the middle value, or the mean of the two middle ones for even n."""
    n, ascending = len(values), values.sort().values
    return (ascending[(n - 1) // 2] + ascending[n // 2]) / 2


def clipping(norms: Tensor, bound: Tensor | float) -> Tensor:
    """[n] → [n]: min(1, bound/‖x_i‖), the factors that clip rows to a bound; 1 for a row of zeros."""
    return torch.where(norms > bound, bound / norms, torch.ones_like(norms))
