"""Trains many models with Adam, each on its own batches and at its own rate, and shows them on the way.

Chains of dense layers are trained together, as one model with a leading axis, with forward and backward by hand: what
PyTorch does around a small product takes longer than the product. Any other model is trained after the one before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row, shaped
from fedarena.problem.client_steps.chain import Dense, chain_of, front_of
from fedarena.problem.client_steps.loop import of_task
from fedarena.problem.client_steps.passes import backward, forward
from fedarena.problem.local_training import ADAM_BETA1, ADAM_EPS
from fedarena.problem.loss import Criterion
from fedarena.problem.task import Task

BETA2 = 0.999
FAINT = 1e-36
"""The second moments begin with it. It changes no step, but MKL's square root takes ten times as long for zeros."""
TOGETHER = 2**18
"""The most parameters of models that are trained together: with gradients and moments they fit into a core's cache."""


@dataclass(frozen=True)
class Samples:
    """Samples that models are trained on: inputs [N, *input_shape] and labels [N]."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Lesson:
    """What one model is trained with.

    Attributes:
        rate: Adam's learning rate.
        batches: the samples of each step, as indices [steps, b].
    """

    rate: float
    batches: Tensor


def train(
    task: Task, init: Tensors, samples: Samples, lessons: Sequence[Lesson], stops: Container[int]
) -> Iterator[tuple[int, int, Tensors]]:
    """(index of the lesson, step, parameters) of each model after those of its steps that are among `stops`.

    Parameters hold until the next ones are asked for.

    Args:
        init: the parameters that all models begin with.
        lessons: all with as many steps and samples a step.
    """
    chain = chain_of(task.model, len(task.input_shape))
    if chain is None or set(init) != {name for layer in chain for name in (layer.weight, layer.bias) if name}:
        for k, lesson in enumerate(lessons):
            yield from ((k, step, params) for step, params in _one(task, init, samples, lesson, stops))
        return
    front = front_of(task.model)
    with torch.no_grad():
        x = (samples.x if front is None else front(samples.x)).flatten(1)
    flat = Samples(x, task.criterion.target(samples.y, x))
    at_once = max(1, TOGETHER // sum(t.numel() for t in init.values()))
    for first in range(0, len(lessons), at_once):
        models = _Chains(chain, task.criterion, init, len(lessons[first : first + at_once]))
        for k, step, params in _several(models, flat, lessons[first : first + at_once], stops):
            yield first + k, step, params


def _one(
    task: Task, init: Tensors, samples: Samples, lesson: Lesson, stops: Container[int]
) -> Iterator[tuple[int, Tensors]]:
    """(step, parameters) of any model."""
    objective = of_task(task, init)
    params = {name: p.detach().copy_(init[name]) for name, p in objective.params.items()}
    adam = _Adam([*params.values()], samples.x.new_tensor([lesson.rate], dtype=torch.float64))
    for step, batch in enumerate(lesson.batches.to(samples.y.device), 1):
        adam.step(objective.gradient(samples.x[batch], samples.y[batch]))
        if step in stops:
            yield step, params


@torch.no_grad()
def _several(
    models: _Chains, samples: Samples, lessons: Sequence[Lesson], stops: Container[int]
) -> Iterator[tuple[int, int, Tensors]]:
    """(lesson, step, parameters) of chains; labels are targets as by `Criterion.target`."""
    rates = samples.x.new_tensor([[lesson.rate] for lesson in lessons], dtype=torch.float64)
    adam = _Adam([models.flat], rates)
    batches = torch.stack([lesson.batches for lesson in lessons], 1).to(samples.y.device)
    for step, batch in enumerate(batches, 1):
        adam.step([models.gradient(samples.x[batch], samples.y[batch])])
        if step in stops:
            yield from ((k, step, row(models.params, k)) for k in range(len(lessons)))


class _Chains:
    """Models that are the same chain of dense layers.

    Attributes:
        flat: the parameters of each [models, d]. params: the same numbers by name.
    """

    def __init__(self, chain: Sequence[Dense], criterion: Criterion, init: Tensors, count: int) -> None:
        self._chain, self._criterion = chain, criterion
        self.flat = torch.cat([t.reshape(-1) for t in init.values()]).expand(count, -1).clone()
        self._gradient = torch.zeros_like(self.flat)
        self.params = shaped(self.flat, init)
        self._gradients = shaped(self._gradient, init)

    def gradient(self, x: Tensor, target: Tensor) -> Tensor:
        """The gradient of each model's mean loss [models, d], from [models, b, d_in] and [models, b, outputs].

        It is overwritten by the next call.
        """
        inputs, outputs = forward(self._chain, self.params, x)
        residual = self._criterion.residual(outputs, target).div_(target.shape[1])
        qs = backward(self._chain, self.params, inputs, residual)
        for layer, h, q in zip(self._chain, inputs, qs, strict=True):
            torch.bmm(q.transpose(1, 2), h, out=self._gradients[layer.weight])
            if layer.bias:
                torch.sum(q, 1, out=self._gradients[layer.bias])
        return self._gradient


class _Adam:
    """Adam (Kingma & Ba 2015, Algorithm 1), in place. The first use of PyTorch's own loads its compiler, for seconds.

    Args:
        params: the tensors that are changed. rates: learning rates, broadcast against each of them.
    """

    def __init__(self, params: list[Tensor], rates: Tensor) -> None:
        self._params, self._rates, self._time = params, rates, 0
        self._means = [torch.zeros_like(p) for p in params]
        self._squares = [torch.full_like(p, FAINT) for p in params]

    @torch.no_grad()
    def step(self, gradients: list[Tensor]) -> None:
        """One step."""
        self._time += 1
        rates = self._rates / (1 - ADAM_BETA1**self._time)
        torch._foreach_lerp_(self._means, gradients, 1 - ADAM_BETA1)
        torch._foreach_mul_(self._squares, BETA2)
        torch._foreach_addcmul_(self._squares, gradients, gradients, 1 - BETA2)
        sizes = torch._foreach_sqrt(self._squares)
        torch._foreach_div_(sizes, (1 - BETA2**self._time) ** 0.5)
        torch._foreach_add_(sizes, ADAM_EPS)
        moves = torch._foreach_mul(self._means, [rates.to(m) for m in self._means])
        torch._foreach_div_(moves, sizes)
        torch._foreach_sub_(self._params, moves)
