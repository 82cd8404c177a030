"""Small networks of several clients side by side: the tight loop at a sum of losses, one for each client.

The gradient of Σ_c L_c(w_c) by all w_c is every client's own gradient, and optimisers act elementwise. So several
clients are one client of `fedarena.problem.client_steps.loop`, whose parameters are stacked. This saves the overhead of
calls, which is most of the time of a small convolutional network. The time of a large one is arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row
from fedarena.problem.client_steps import loop
from fedarena.problem.task import Batch, Task

SMALL = 2**16
"""Parameters of a small network, at most."""
TOGETHER = 2**18
"""Parameters of all clients that are computed side by side, at most."""
LEAST = 4
"""Clients that are computed side by side, at least: what is saved for fewer is less than what stacking costs."""


def pays(params: Tensors, clients: int) -> bool:
    """Whether so many clients with these parameters are computed faster side by side than one after the other."""
    return clients >= LEAST and sum(p.numel() for p in params.values()) <= SMALL


def train(task: Task, start: Tensors, batches: Sequence[Batch], apart: bool = False) -> Tensors:
    """`fedarena.problem.local_training.upload` of clients with batches of one shape under the task's own loss, stacked.

    Args:
        task: gives the schedule, and a model that draws nothing at random (see `layered.layers_of`).
        start: the parameters of all clients, or with `apart` of every client, stacked.
    """

    def sum_of_losses(params: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return torch.vmap(task.loss)(params, x, y).sum()

    one = row(start, 0) if apart else start
    ups = {name: p.new_empty(len(batches), *p.shape) for name, p in one.items()}
    at_once = TOGETHER // sum(p.numel() for p in one.values())
    for first in range(0, len(batches), at_once):
        some = slice(first, first + at_once)
        together = _stacked(batches[some], task)
        begin = {name: p[some] if apart else p.expand(together.x.shape[1], *p.shape) for name, p in start.items()}
        for name, up in loop.train(loop.of_loss(sum_of_losses, begin), task.schedule, begin, [together], {}).items():
            ups[name][some] = up[0]
    return ups


def _stacked(batches: Sequence[Batch], task: Task) -> Batch:
    """One batch of all clients: x [steps, clients, b, ...]. FedSGD takes the first step alone."""
    steps = 1 if task.schedule.fedsgd else len(batches[0].x)
    return Batch(torch.stack([b.x[:steps] for b in batches], 1), torch.stack([b.y[:steps] for b in batches], 1))
