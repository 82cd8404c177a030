"""Fang, Cao, Jia & Gong, "Local Model Poisoning Attacks to Byzantine-Robust Federated Learning" (2020), on uploads.

The server subtracts the aggregate of the uploads v_i, so that the direction in which parameter j moves without an
attack is −s_j, s_j = sign Σ_i v_ij over all m clients, and every attack drives the aggregate to −s.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Call
from fedarena.core import registry
from fedarena.core.rng import Rng

SMALLEST = 1e-5
"""λ below which the search against Krum gives up (Section 4.2)."""
REACH = 2.0
"""b of Section 4.3: how far beyond the honest extreme uploads are drawn, as a factor."""


def against_krum(honest: Tensor, everyone: Tensor, colluders: int, assumed: int) -> Tensor | None:
    """Section 4.2: the upload [d] −λ s with the largest λ of λ_max/2^k that Krum picks when all colluders send it.

        λ_max = (1/√d) [ min_i Σ_{l ∈ N(i)} ‖v_l − v_i‖ / (m − 2c − 1) + max_i ‖v_i‖ ]

    i and N(i), its m − c − 2 nearest, run over the honest uploads; c colluders of m.

    Args:
        honest: [m − c, d]. everyone: all uploads [m, d] of a round without an attack.
        colluders: c. assumed: how many corrupted uploads the server's Krum expects.

    Returns:
        None if no λ > 1e-5 passes, or if the round has too few honest uploads for the bound.
    """
    b, d = honest.shape
    m = b + colluders
    if b < 3 or m - 2 * colluders < 2:
        return None
    nearest = torch.cdist(honest, honest, compute_mode="donot_use_mm_for_euclid_dist").sort(1).values[:, 1 : b - 1]
    spread = nearest.sum(1).min() / (m - 2 * colluders - 1)
    strength = float(spread + honest.norm(dim=1).max()) / math.sqrt(d)
    direction = everyone.sum(0).sign()
    card = registry.find("aggregator", "krum")
    krum: Aggregator = card.load()(card.parse({}))
    call = Call(weights=honest.new_ones(m), f=assumed, memory={}, rng=Rng(0))  # Krum draws nothing
    while strength > SMALLEST:
        upload = -strength * direction
        used = krum(torch.cat([honest, upload.expand(colluders, d)]), call).used
        assert used is not None
        if bool(used[b:].any()):
            return upload
        strength /= 2
    return None


def against_trimmed_mean(honest: Tensor, everyone: Tensor, colluders: int, generator: torch.Generator) -> Tensor:
    """Section 4.3 with full knowledge: uploads [c, d] just beyond the honest range, on the side that −s wants.

        e_j = min_i v_ij if s_j > 0, else max_i v_ij, over the honest
        sent: r e_j if that lies beyond e_j, else e_j/r, r ~ U(1, 2) for each colluder and parameter

    Against the coordinate-wise median the same.
    """
    down = everyone.sum(0) > 0
    edge = torch.where(down, honest.amin(0), honest.amax(0))
    factor = _uniform(1.0, REACH, colluders, edge, generator)
    return torch.where((edge < 0) == down, edge * factor, edge / factor)


def against_trimmed_mean_partial(own: Tensor, colluders: int, generator: torch.Generator) -> Tensor:
    """Section 4.3 with partial knowledge: μ_j − sign(μ_j)·r·σ_j, r ~ U(3, 4); μ, σ of the colluders' own uploads."""
    deviation, mean = torch.std_mean(own, 0, correction=0)
    return mean - mean.sign() * deviation * _uniform(3.0, 4.0, colluders, mean, generator)


def _uniform(low: float, high: float, n: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """[n, d], drawn on the CPU."""
    return low + (high - low) * torch.rand(n, len(like), generator=generator).to(like)
