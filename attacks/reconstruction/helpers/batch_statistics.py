"""How far a candidate's statistics of batch normalisation are from those that its client sent (Yin et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fedarena.contracts.observation import Statistics


def distance_from(sent: Statistics) -> Callable[[Tensor], Tensor]:
    """R_BN(x) = Σ_l ‖μ_l(x) − μ_l‖ + ‖σ²_l(x) − σ²_l‖ of samples x [n, *shape], over layers l; a number."""

    def distance(x: Tensor) -> Tensor:
        found = sent.simulate(x)
        return torch.stack([torch.linalg.vector_norm(found[name] - t) for name, t in sent.target.items()]).sum()

    return distance
