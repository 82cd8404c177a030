"""What malicious servers need to know of a model in order to craft one: its first layers, and what enters them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedarena.contracts.active_inference import Opportunity
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Task


def dense_start(task: Task) -> tuple[str, str] | NotApplicable:
    """The names of the first two layers, where both are dense and have a bias; or why there are none."""
    if len(task.layers) < 2:
        return NotApplicable("the model has no layer but the output")
    (first, one), (second, two) = task.layers[:2]
    if not isinstance(one, nn.Linear) or not isinstance(two, nn.Linear):
        return NotApplicable("the first layer is convolutional: no sample enters a dense layer as it is")
    if one.bias is None or two.bias is None:
        return NotApplicable("the first layers have no biases, which this attack sets")
    return first, second


@torch.no_grad()
def inputs_of(task: Task, params: Tensors, layer: str, x: Tensor) -> Tensor:
    """What enters a layer [n, d] for samples x [n, *input_shape], normalised as the model does it."""
    return task.entering(layer, params, x.to(next(iter(params.values())))).flatten(1)


def own_inputs(opportunity: Opportunity, layer: str) -> Tensor:
    """What enters a layer [m, d] for the attacker's own samples."""
    assert opportunity.population is not None, "declared by `needs_population`"
    state = opportunity.state
    return inputs_of(opportunity.protocol.task, state.params, layer, opportunity.population.x)


@torch.no_grad()
def undecided(task: Task, params: Tensors, output_bias: str) -> Tensors:
    """The model with output biases at which all classes are equally likely for a dark sample."""
    dark = torch.zeros(1, *task.input_shape).to(params[output_bias])
    return {**params, output_bias: params[output_bias] - task.outputs(params, dark)[0]}
