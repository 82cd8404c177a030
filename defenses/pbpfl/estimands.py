"""Gradient and update in canonical form, which PBPFL's parties can estimate.

The masks R are a positive scaling of hidden units, which leaves the network's function as it is. Only the server knows
R. Other parties estimate at the canonical form C(W) (`fedarena.models.scaling.positive_scaling`), which does not
contain R.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedarena.contracts.estimand import Estimand
from fedarena.core.tensors import Tensors
from fedarena.models.scaling.positive_scaling import ScalingPlan, canonical, scales


@dataclass(frozen=True)
class CanonicalGradient(Estimand):
    """The gradient at C(W_t): W = S∘C, so that ∂L/∂C = S∘∂L/∂W."""

    plan: ScalingPlan

    name = "canonical gradient"
    gradient = True
    canonical = True

    def truth(self, before: Tensors, after: Tensors, gradient: Callable[[], Tensors]) -> Tensors:
        lengths = self.plan.factors(scales(self.plan, _double(before)))
        return {name: g * lengths[name].to(g) for name, g in gradient().items()}


@dataclass(frozen=True)
class CanonicalUpdate(Estimand):
    """C(W_t) − C(W_{t+1})."""

    plan: ScalingPlan

    name = "canonical update"
    gradient = False
    canonical = True

    def truth(self, before: Tensors, after: Tensors, gradient: Callable[[], Tensors]) -> Tensors:
        start, end = (canonical(self.plan, _double(p)) for p in (before, after))
        return {name: start[name] - end[name] for name in start}


def _double(tensors: Tensors) -> Tensors:
    return {name: t.double() for name, t in tensors.items()}
