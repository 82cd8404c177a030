"""Imprint, Robbing the Fed: a server sets the first layer so that its rows sort the samples of a batch into bins.

All units of the first dense layer measure the same thing, the mean of what enters them, h(x) = Σ_j x_j/d, and differ in
their thresholds q_1 < … < q_k, quantiles of h on the attacker's own samples (Fowl et al. 2022, Section 3):

    unit i of the first layer   z_i = s (h(x) − q_i),  s = 1/std h        active for x if h(x) > q_i
    the second layer            all columns are one vector v, so that ∂L/∂z_i = δ(x) is the same for all active units

So with the gradient rows G_i = [∂L/∂W_i, ∂L/∂b_i] the difference G_i − G_{i+1} holds the samples of one bin,
q_i < h(x) ≤ q_{i+1}. A sample that is alone in its bin comes back exactly, (∂L/∂W_i − ∂L/∂W_{i+1}) over
(∂L/∂b_i − ∂L/∂b_{i+1}). This holds for a sum of uploads as for a single one, since all clients work at the same model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.analytic import Readable
from fedarena.attacks.reconstruction.crafted_model import CraftedModel
from fedarena.attacks.reconstruction.helpers.first_layers import own_inputs
from fedarena.contracts.active_inference import Opportunity
from fedarena.contracts.inference import Reconstruction
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors

EMPTY = 1e-5
"""|∂L/∂b| of a bin, as a share of the largest, up to which the bin is empty: rounding of float32."""


class Imprint(CraftedModel):
    """The attack; see the module's docstring."""

    name = "imprint"

    def crafted(self, opportunity: Opportunity, first: str, second: str, rng: Rng) -> Tensors:
        return imprinted(opportunity.state.params, first, second, own_inputs(opportunity, first), rng)

    def batch(self, readable: Readable, rows: Tensor, rng: Rng) -> Reconstruction:
        """The samples of the bins that are not empty, those with the largest share of the gradient first."""
        return readable.guess([], bins(rows)[: readable.seen.images])


def imprinted(params: Tensors, first: str, second: str, inputs: Tensor, rng: Rng) -> Tensors:
    """The model with its two first layers set as in the module's docstring, from inputs [m, d] of the first layer."""
    weight, out = params[f"{first}.weight"], params[f"{second}.weight"]
    units = len(weight)
    h = inputs.double().mean(1)
    q = h.quantile(torch.linspace(0, 1, units + 1)[:-1].to(h))
    q[0] -= h.std()  # also the samples below all of the attacker's own
    v = torch.randn(len(out), 1, generator=rng.child("columns").torch()) / units
    return {
        **params,
        f"{first}.weight": (torch.ones_like(weight) / inputs.shape[1] / h.std()).to(weight),
        f"{first}.bias": (-q / h.std()).to(weight),
        f"{second}.weight": v.to(out).expand_as(out).contiguous(),
    }


def bins(rows: Tensor) -> Tensor:
    """The rows [bins, s + 1] of bins that are not empty, from rows [units, s + 1], the largest |∂L/∂b| first."""
    differences = torch.cat([rows[:-1] - rows[1:], rows[-1:]])
    size = differences[:, -1].abs()
    order = size.argsort(descending=True)
    return differences[order[size[order] > EMPTY * rows[:, -1].abs().max()]]
