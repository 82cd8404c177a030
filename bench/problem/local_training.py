"""Local training of one client, written plainly. Tests compare every faster form with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from fedarena.core.gradients import gradient
from fedarena.core.tensors import Tensors
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch

Loss = Callable[[Tensors, Tensor, Tensor], Tensor]
"""(params, x [b, ...], y) → mean loss of the batch."""

ADAM_BETA1, ADAM_EPS = 0.9, 1e-8


def upload(
    loss: Loss, start: Tensors, batch: Batch, schedule: Schedule, metric: Mapping[str, Tensor] | None = None
) -> Tensors:
    """What a client sends: the gradient of one batch (FedSGD), or start − end of its local steps (FedAvg).

    Pure and differentiable in `batch`; runs under `vmap` and nested `grad`.

    Args:
        loss: the loss that the client descends.
        start: parameters at the round's start; their names are the upload's.
        batch: the samples, [steps, b, ...]. What layers draw, if any do, is given to `loss` with the parameters.
        schedule: optimiser, learning rate and weight decay, which adds λ·p to the gradient of a local step.
        metric: D for parameters that are a linear image of others, p = p₀ − u·D with the steps taken in
            u (broadcast against p; absent: D = 1). The upload is then Σ of the steps u.

    Returns:
        Tensors named and shaped like `start`.
    """

    def gradient_at(params: Tensors, t: int) -> Tensors:
        masks = batch.masks_of(t)
        return gradient(lambda p, x, y: loss({**p, **masks}, x, y), params, batch.x[t], batch.y[t])

    if schedule.fedsgd:
        return gradient_at(start, 0)
    params = dict(start)
    taken = {name: torch.zeros_like(p) for name, p in start.items()}
    memory: dict[str, tuple[Tensor, ...]] = {}
    for t in range(batch.x.shape[0]):
        for name, g in gradient_at(params, t).items():
            if schedule.weight_decay:
                g = g + decay_of(params[name], schedule, None if metric is None else metric.get(name))
            step, memory[name] = local_step(g, memory.get(name), t + 1, schedule)
            taken[name] = taken[name] + step
            params[name] = params[name] - (step * metric[name] if metric and name in metric else step)
    return taken


def decay_of(p: Tensor, schedule: Schedule, metric: Tensor | None) -> Tensor:
    """What weight decay adds to the gradient: λ·p, or λ·p/D with a metric, so that p itself shrinks by lr·λ·p."""
    decay = schedule.weight_decay * p
    return decay if metric is None else torch.where(metric == 0, 0.0, decay / metric)


def local_step(
    g: Tensor, memory: tuple[Tensor, ...] | None, t: int, schedule: Schedule
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One optimiser step for gradient `g`: (what to subtract, new memory). Elementwise; `t` counts from 1.

    SGD: lr·g. Momentum (heavy ball): lr·v with v as by `momentum_step`. Adam (Kingma & Ba 2015, Algorithm 1):
    lr·m̂/(√v̂ + ε).
    """
    lr = schedule.lr
    if schedule.client_optimizer == "sgd":
        return lr * g, ()
    if schedule.client_optimizer == "momentum":
        v = momentum_step(g, None if memory is None else memory[0], schedule)
        return lr * v, (v,)
    return adam_step(g, memory, t, lr, schedule.adam_beta2)


def momentum_step(g: Tensor, before: Tensor | None, schedule: Schedule) -> Tensor:
    """m ← β·m + c·g, with c = 1 (form `sum`, as torch.optim.SGD) or 1 − β (`ema`); m is 0 at first. Elementwise."""
    fresh = (1 - schedule.momentum) * g if schedule.momentum_form == "ema" else g
    return fresh if before is None else schedule.momentum * before + fresh


def adam_step(
    g: Tensor, memory: tuple[Tensor, ...] | None, t: int, lr: float, b2: float = 0.999
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One step of Adam (Kingma & Ba 2015, Algorithm 1): (what to subtract, (m, v)); `t` counts from 1."""
    b1 = ADAM_BETA1
    m, v = memory if memory else (torch.zeros_like(g), torch.zeros_like(g))
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    return lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + ADAM_EPS), (m, v)
