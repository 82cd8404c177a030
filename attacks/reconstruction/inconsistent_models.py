"""Inconsistent models: a server sends each client a model of its own, so that a secure sum holds one client's upload.

All clients but the victim get a model whose last hidden layer is switched off: its weights are 0 and its biases −1, so
that its ReLUs are inactive for every sample (Pasquini et al. 2022, Section 4.1). The gradients of all parameters are
then 0, but for the output layer's bias, which the attack leaves out. Before a variational bottleneck that hidden layer
is the one in front of it, and all layers behind are left out. So the sum that secure aggregation gives to the server
is the victim's upload alone, times its share N_v/N. The victim gets the model of `imprint`, by which its batch is
read. A server that sees every upload has no need of this: it does as that of `imprint`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from fedarena.attacks.reconstruction.imprint import Imprint
from fedarena.contracts.active_inference import Bait, Opportunity
from fedarena.core.gradients import grad
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Task


class InconsistentModels(Imprint):
    """The attack; see the module's docstring."""

    name = "inconsistent-models"

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        task = opportunity.protocol.task
        lure = self.message(opportunity, rng)
        if isinstance(lure, NotApplicable):
            return lure
        off = switched_off(task, opportunity.state.params)
        left, behind = touched(task, off), parameters(task.layers[last_hidden(task) + 1 :])
        if task.bottlenecks:  # the numbers that it draws reach all of them
            left |= behind
        if not left <= behind:
            return NotApplicable("the model cannot be switched off: its hidden units are no ReLUs")
        if not opportunity.summed:
            return Bait.for_all(lure, opportunity)
        dead = opportunity.message(off, rng.child("others"))
        messages = {c: lure if c == opportunity.victim else dead for c in opportunity.participants}
        return Bait(messages, (opportunity.victim,), tuple(left))


def last_hidden(task: Task) -> int:
    """The place of the last layer before the output or, as its loss reaches those before it, before a bottleneck."""
    return len(task.layers) - (4 if task.bottlenecks else 2)


def parameters(layers: Sequence[tuple[str, nn.Module]]) -> set[str]:
    """The names of their parameters."""
    return {f"{name}.{part}" for name, layer in layers for part, _ in layer.named_parameters()}


def switched_off(task: Task, params: Tensors) -> Tensors:
    """The model whose last hidden layer is inactive for all samples."""
    last = task.layers[last_hidden(task)][0]
    weight, bias = params[f"{last}.weight"], params[f"{last}.bias"]
    return {**params, f"{last}.weight": torch.zeros_like(weight), f"{last}.bias": torch.full_like(bias, -1.0)}


def touched(task: Task, params: Tensors) -> set[str]:
    """The names of parameters whose gradient is not 0 for some sample."""
    like = next(iter(params.values()))
    x = torch.linspace(0, 1, torch.Size(task.input_shape).numel()).to(like).reshape(1, *task.input_shape)
    y = torch.zeros(1, dtype=torch.int64, device=like.device) if task.n_classes else torch.zeros(1).to(like)
    return {name for name, g in grad(task.loss)(dict(params), x, y).items() if bool(g.any())}
