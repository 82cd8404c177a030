"""Chosen features: a server sends a model by which few numbers of an upload tell most of a sample.

The first layer measures the m directions in which the attacker's own samples differ most, q_1 … q_m, the leading
eigenvectors of their covariance C. The layers between hand them on, and the output layer's weights are 0:

    h_j(x) = ½ + (x − μ)ᵀ q_j/range,    ∂L/∂W_out = (p − y) [h(x), …]ᵀ,    all other weights have gradient 0

So a sample leaves m numbers, and m equations give them, whatever directions a protocol mixes them along. A server that
reads K loss differences has no use for directions of its choice: it chooses what lies behind them, m = K. How the rest
of a sample is filled in, and the label found, is taken from `fedarena.attacks.reconstruction.affine_model`.

This attack is our own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedarena.attacks.reconstruction.affine_model import AffineModel
from fedarena.attacks.reconstruction.cards.chosen_features import Options
from fedarena.attacks.reconstruction.helpers.first_layers import own_inputs, undecided
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages
from fedarena.contracts.active_inference import Opportunity
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Task


class ChosenFeatures(AffineModel):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.chosen_features.Options`."""

    options: Options  # type: ignore[assignment]

    def __init__(self, options: Options) -> None:
        super().__init__(options)  # type: ignore[arg-type]
        self.needs_population = True  # for the directions

    def crafted(self, opportunity: Opportunity, rng: Rng) -> Tensors | NotApplicable:
        task, params = opportunity.protocol.task, opportunity.state.params
        if len(task.layers) < 2 or not all(isinstance(layer, nn.Linear) for _, layer in task.layers):
            return NotApplicable("the model has a layer that is not dense, or the output alone")
        if any(layer.bias is None for _, layer in task.layers):
            return NotApplicable("the model's layers have no biases, which this attack sets")
        if task.bottlenecks:
            return NotApplicable("the model has a variational bottleneck, through which no features are handed on")
        inputs = own_inputs(opportunity, task.layers[0][0])
        units = min(len(params[f"{name}.weight"]) for name, _ in task.layers[:-1])
        m = min(units, inputs.shape[1], self.options.features or self.fitting(opportunity))
        assert task.output_bias is not None
        return undecided(task, measuring(task, params, inputs, m, self.options.gain), task.output_bias)

    def fitting(self, opportunity: Opportunity) -> int:
        """As many features as an upload has numbers."""
        task = opportunity.protocol.task
        message = opportunity.message(opportunity.state.params, Rng(0))
        like = next(iter(message.params.values()))
        x = torch.full((1, *task.input_shape), 0.5).to(like)
        y = torch.zeros(1, dtype=torch.int64 if task.n_classes else x.dtype, device=like.device)
        up = opportunity.protocol.expected_upload(message.down, x, y)
        return sum(t.numel() for t in up.values())

    def probe(self, view: View) -> Tensor:
        """One of the attacker's own: features are only affine in samples like these."""
        assert view.population is not None
        return view.population.x[0].flatten()


def measuring(task: Task, params: Tensors, inputs: Tensor, m: int, gain: float) -> Tensors:
    """A model of dense layers that measures m features of inputs like [n, d]."""
    distribution = GaussianImages.of(inputs)
    directions = torch.linalg.eigh(distribution.covariance).eigenvectors[:, -m:].T
    along = (inputs.double() - distribution.mean) @ directions.T
    rows = directions * (gain / (2 * along.abs().max()))
    (first, _), *between, (output, _) = task.layers
    sent = dict(params)

    def put(name: str, weight: Tensor, bias: Tensor) -> None:
        for part, value in (("weight", weight), ("bias", bias)):
            like = params[f"{name}.{part}"]
            padded = torch.zeros_like(like)
            padded[tuple(slice(n) for n in value.shape)] = value.to(like)
            sent[f"{name}.{part}"] = padded

    put(first, rows, gain / 2 - rows @ distribution.mean)
    for name, _ in between:
        put(name, torch.eye(m), torch.zeros(m))
    put(output, torch.zeros(1, 1), torch.zeros(1))
    return sent
