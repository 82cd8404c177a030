"""Trap weights, When the Curious Abandon Honesty: units of the first layer that few samples activate.

Each row of the first dense layer has random weights, positive ones on a half of the inputs that is drawn for it and
negative ones on the other half, so that units measure different things (Boenisch et al. 2023, Section 5.2). Each unit's
threshold lets through a share p = 1/n of the samples, for n samples behind an upload. A unit is then active
for exactly one of them with probability n p (1 − p)^(n−1), about 0.37, and its row of the gradient shows that one:
x = ∂L/∂W_i / ∂L/∂b_i. Two units that show the same sample agree, and mixtures do not (`analytic`).
"""

from __future__ import annotations

import torch

from fedarena.attacks.reconstruction.cards.trap_weights import Options
from fedarena.attacks.reconstruction.crafted_model import CraftedModel
from fedarena.attacks.reconstruction.helpers.first_layers import own_inputs
from fedarena.contracts.active_inference import Opportunity
from fedarena.contracts.simulators import images_behind
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors

HALF = 0.5
"""The share of samples that activate a unit where an upload has a single sample."""


class TrapWeights(CraftedModel):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.trap_weights.Options`."""

    options: Options
    name = "trap-weights"

    def crafted(self, opportunity: Opportunity, first: str, second: str, rng: Rng) -> Tensors:
        task, params = opportunity.protocol.task, opportunity.state.params
        weight, generator = f"{first}.weight", rng.child("rows").torch()
        units, d = params[weight].shape
        sizes = torch.randn(units, d, generator=generator).abs()
        positive = torch.rand(units, d, generator=generator).argsort(1) < d // 2
        rows = torch.where(positive, self.options.scale * sizes, -sizes).to(params[weight]) / d**0.5
        share = min(HALF, 1 / max(1, sum(images_behind(task, client) for client in opportunity.readable)))
        measured = own_inputs(opportunity, first) @ rows.T
        return {**params, weight: rows, f"{first}.bias": -measured.quantile(1 - share, dim=0)}
