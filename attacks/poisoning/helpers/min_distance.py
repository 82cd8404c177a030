"""The largest step away from the mean that distances to honest uploads allow (Shejwalkar & Houmansadr, NDSS 2021).

    sent = μ + γ p,  μ the mean of the honest uploads g_i
    p    = −μ/‖μ‖ (unit),  −sign(μ) (sign),  −σ (std)

The authors find γ by halving steps from 10, to 1e-5. Their constraints are quadratic in γ and hold at γ = 0, so that
the allowed γ ≥ 0 are one interval, and its end is known in closed form.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows, mean_and_deviation, needs_two, same
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable


class MinDistance(Poisoning):
    """Every colluder sends μ + γ p with the largest γ that a constraint allows. A subclass writes the constraint."""

    options: Any
    knowledge_levels = ("own", "omniscient")
    bounds: ClassVar[str]
    """The name of the bounded quantity, which is only defined for two uploads or more."""

    @abstractmethod
    def step(self, x: Tensor, p: Tensor) -> float:
        """γ; 0 where p is 0. x: honest uploads [n, d]. p: [d]."""

    def applies(self) -> NotApplicable | None:
        return needs_two(self.knowledge, self.bounds)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        x = honest_rows(self.knowledge, view)
        mean, deviation = mean_and_deviation(x)
        p = direction(mean, deviation, self.options.perturbation)
        return same(mean + self.step(x, p) * p, view), memory


def direction(mean: Tensor, deviation: Tensor, kind: str) -> Tensor:
    """p [d] of kind unit, sign or std."""
    if kind == "unit":
        return -torch.nn.functional.normalize(mean, dim=0)
    return -mean.sign() if kind == "sign" else -deviation


def largest_step(square: Tensor, along: Tensor, room: Tensor) -> float:
    """The largest γ with γ²·square + 2γ·along ≤ room, (−along + √(along² + square·room))/square; 0 where square is 0.

    Args:
        square: [] ≥ 0. along, room: [m], of the inequalities. All hold at γ = 0 (a room below 0 is a rounding error).
    """
    if not square:
        return 0.0
    allowed = (-along + (along.square() + square * room.clamp(min=0)).sqrt()) / square
    return max(0.0, float(allowed.min()))


def centred(x: Tensor) -> Tensor:
    """r_i = μ − g_i [n, d], in float64."""
    return x.double().mean(0) - x.double()


def squared_distances(r: Tensor) -> Tensor:
    """‖g_i − g_j‖² [n, n] of centred uploads, by their Gram matrix. Centred vectors are short, so this is accurate."""
    gram = r @ r.T
    squares = gram.diagonal()
    return (squares[:, None] + squares[None] - 2 * gram).clamp(min=0)
