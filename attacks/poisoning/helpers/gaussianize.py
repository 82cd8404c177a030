"""An upload in any direction whose values look like Gaussian noise.

A server that tests whether an upload's d coordinates look like draws from N(0, σ²) tests their values, and not the
order in which they stand. Among all orders of the same values, the one sorted like v agrees most with a direction v:
Σ_j g_π(j) v_j is largest when g and v have the same order (rearrangement inequality). So one sort finds the best of d!
orders.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Form = Literal["quantiles", "sample"]


def gaussianize(v: Tensor, std: float, form: str, generator: torch.Generator) -> Tensor:
    """Rows of N(0, std²) values, each sorted like the row of v in its place.

        quantiles   g = std·Φ⁻¹((rank(v) − ½)/d): ‖g‖² ≈ std²·d, and a distance of 1/(2d) to the normal distribution
                    function, which is the least that d values can have
        sample      g = d draws from N(0, std²), sorted: norm and distance are those of honest noise, so that a test
                    of level α rejects a share α of them

    Args:
        v: [..., d]. Equal values are ranked in random order. std: above 0. form: `quantiles` or `sample`.
        generator: on the CPU.

    Returns:
        [..., d], of v's type and device.
    """
    d = v.shape[-1]
    shuffle = torch.randperm(d, generator=generator).to(v.device)
    order = shuffle[v[..., shuffle].argsort(dim=-1, stable=True)]
    if form == "quantiles":
        values = torch.special.ndtri((torch.arange(d, dtype=torch.float64) + 0.5) / d).expand(v.shape)
    else:
        values = torch.randn(v.shape, generator=generator, dtype=torch.float64).sort(dim=-1).values
    return torch.zeros_like(v).scatter_(-1, order, (std * values).to(v))
