"""The distributions of PBPFL's secrets: r > 0 of every hidden channel, r_a, γ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.defenses.pbpfl.card import Options

TINY = 1e-5
"""The constant that the authors' code adds to its masks."""


def channel_masks(options: Options, sizes: Sequence[int], rng: Rng) -> list[Tensor]:
    """r^(g) > 0 [sizes[g]] of every group of channels, in double precision.

    log-uniform: 10^U(−decades/2, decades/2). uniform: U(0, 1) + 1e-5, as the authors' code for convolutions.
    constant: 1 + 1e-5 throughout, as their code for dense layers.
    """
    masks = []
    for g, size in enumerate(sizes):
        u = torch.rand(size, generator=rng.child("r", g).torch(), dtype=torch.float64)
        if options.r == "log-uniform":
            masks.append(10.0 ** (options.decades * (u - 0.5)))
        else:
            masks.append(u + TINY if options.r == "uniform" else torch.full_like(u, 1 + TINY))
    return masks


def direction(options: Options, outputs: int, rng: Rng) -> Tensor:
    """r_a [outputs], in double precision: U(0, 1) or N(0, 1); equal entries have probability 0.

    With gamma=cancelling it is shortened to ‖r_a‖ = ½·U(½, 1), for which a cancelling γ exists.
    """
    draw = torch.rand if options.r_a == "uniform" else torch.randn
    r_a: Tensor = draw(outputs, generator=rng.child("r_a").torch(), dtype=torch.float64)
    if options.gamma == "cancelling":
        length = 0.25 + 0.25 * torch.rand(1, generator=rng.child("length").torch(), dtype=torch.float64)
        r_a = r_a / r_a.norm() * length
    return r_a


def coefficient(options: Options, r_a: Tensor, rng: Rng) -> Tensor:
    """γ [1], in double precision: U(0, 1), N(0, 1) or scale of these; or the root of 1 − γ + γ²‖r_a‖² = 0.

    A curious server picks that root so that a single mask λ on all three uploads cancels.
    """
    if options.gamma == "cancelling":
        v = float(r_a.square().sum())
        return torch.tensor([(1 - math.sqrt(1 - 4 * v)) / (2 * v)], dtype=torch.float64)
    draw = torch.rand if options.gamma == "uniform" else torch.randn
    gamma: Tensor = options.gamma_scale * draw(1, generator=rng.child("gamma").torch(), dtype=torch.float64)
    return gamma


def steady(options: Options) -> bool:
    """Whether r is the same in all rounds."""
    return options.r == "constant" or (options.r == "log-uniform" and options.decades == 0)


def offset(options: Options, r_a: Tensor, between: Tensor) -> tuple[float, float]:
    """The least and the largest c for which all (D_t + c)/r_a,t can be γ. A large error of D may swap them.

    A γ of N(0, scale²) has no bounds; they are then two standard errors around the likeliest c,

        c = −Σ_t D_t/r_a,t² / Σ_t 1/r_a,t²,    its error scale/√(Σ_t 1/r_a,t²)

    Args:
        r_a: of a network with one output [rounds]. between: D [rounds].
    """
    if options.gamma == "normal":
        weight = r_a.square().reciprocal()
        likeliest, error = -(weight * between).sum() / weight.sum(), options.gamma_scale / weight.sum().sqrt()
        return float(likeliest - 2 * error), float(likeliest + 2 * error)
    # A root of 1 − γ + γ²‖r_a‖² = 0 is 2/(1 + √(1 − 4‖r_a‖²)), and ‖r_a‖ is between ¼ and ½.
    least, most = (1.0, 2.0) if options.gamma == "cancelling" else (0.0, options.gamma_scale)
    ends = torch.stack([least * r_a, most * r_a]) - between
    return float(ends.amin(0).max()), float(ends.amax(0).min())
