"""The tight loop: one client after the other, without optimiser objects; for any loss and any model.

The time of large convolutions is arithmetic, so that stacking clients gains nothing. This form saves overhead alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from fedarena.core.tensors import Tensors
from fedarena.models.bottleneck import penalties
from fedarena.problem.local_training import Loss, decay_of, local_step
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task


@dataclass(frozen=True)
class Objective:
    """A loss at parameters that are held in place.

    Attributes:
        params: leaf tensors, overwritten as training goes.
        value: (x [b, ...], y, masks) → mean loss of the batch at the present `params`.
    """

    params: Tensors
    value: Callable[[Tensor, Tensor, Tensors], Tensor]

    def gradient(self, x: Tensor, y: Tensor, masks: Tensors | None = None) -> list[Tensor]:
        """∂L/∂params in their order; zero for a parameter that the loss does not use.

        Args:
            masks: of layers that draw (`fedarena.problem.task.Batch.masks_of`).
        """
        with torch.enable_grad():
            value = self.value(x, y, masks or {})
        return list(torch.autograd.grad(value, list(self.params.values()), materialize_grads=True))


def of_loss(loss: Loss, start: Tensors) -> Objective:
    """Any loss, as a function of its parameters."""
    params = {name: p.detach().clone().requires_grad_() for name, p in start.items()}
    return Objective(params, lambda x, y, masks: loss({**params, **masks}, x, y))


def of_task(task: Task, start: Tensors) -> Objective:
    """The task's own loss in a private copy of its model, so that no call has to pass the parameters."""
    model = copy.deepcopy(task.model).to(next(iter(start.values())))
    own, names = dict(model.named_parameters()), task.bottlenecks

    def value(x: Tensor, y: Tensor, masks: Tensors) -> Tensor:
        with penalties(model, names) as more:
            out = functional_call(model, masks, (x,)) if masks else model(x)
        return sum(more, task.criterion.mean(out, y))

    return Objective({name: own[name] for name in start}, value)


def train(
    objective: Objective, schedule: Schedule, start: Tensors, batches: Sequence[Batch], metric: Mapping[str, Tensor]
) -> Tensors:
    """`fedarena.problem.local_training.upload` of every client, stacked; arguments as there."""
    names, params = list(start), list(objective.params.values())
    ups = {name: p.new_zeros(len(batches), *p.shape) for name, p in start.items()}
    for client, batch in enumerate(batches):
        taken = [ups[name][client] for name in names]
        with torch.no_grad():
            torch._foreach_copy_(params, list(start.values()))
        if schedule.fedsgd:
            torch._foreach_copy_(taken, objective.gradient(batch.x[0], batch.y[0], batch.masks_of(0)))
            continue
        memory: list[tuple[Tensor, ...] | None] = [None] * len(names)
        for t in range(batch.x.shape[0]):
            steps, rate = objective.gradient(batch.x[t], batch.y[t], batch.masks_of(t)), schedule.lr
            if schedule.weight_decay:
                decays = [
                    decay_of(p.detach(), schedule, metric.get(name)) for name, p in zip(names, params, strict=True)
                ]
                torch._foreach_add_(steps, decays)
            if schedule.client_optimizer != "sgd":
                rate = 1.0
                for i, g in enumerate(steps):
                    steps[i], memory[i] = local_step(g, memory[i], t + 1, schedule)
            torch._foreach_add_(taken, steps, alpha=rate)
            moves = [s * metric[name] if name in metric else s for name, s in zip(names, steps, strict=True)]
            with torch.no_grad():
                torch._foreach_add_(params, moves, alpha=-rate)
    return ups
