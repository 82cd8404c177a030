"""Norms and directions of uploads, and clipping to a bound.

Norms are float64: squares of finite float32 values can overflow.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call

TINY = torch.finfo(torch.float32).tiny
"""Norms up to this count as 0: their inverse would overflow float32."""


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


def directions(x: Tensor, norms: Tensor) -> Tensor:
    """[n, d] → [n, d]: rows scaled to length 1; a row without a direction becomes 0, and so has a cosine of 0."""
    return x * torch.where(norms > TINY, 1 / norms, 0).to(x)[:, None]


def clipped(x: Tensor, factors: Tensor, inner: Aggregator, call: Call) -> Aggregate:
    """The inner rule on the rows times their factors [n].

    `used` is the inner rule's weight of each row times its factor; `votes` is the inner rule's weight in records.
    """
    done = inner(x * factors.to(x)[:, None], call)
    used = None if done.used is None else done.used * factors.to(done.used)
    return replace(done, used=used, votes=done.weight)
