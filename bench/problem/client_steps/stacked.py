"""The stacked form: chains of dense layers, for several clients at once, with forward and backward by hand.

Every client starts from the same W₀, or without a server from its own, and is described by u, the sum of its steps so
far (which is its upload): its weight is W₀ − u·D. Per local step and layer, with h the layer's input and q = ∂L/∂z,

    z = h (W₀ − u·D)ᵀ + b      u ← u + lr·qᵀh      ∂L/∂h = q (W₀ − u·D)

as one batched matrix product over the clients each; plain SGD is fused into the product and no gradient is stored.

The first layer is the widest and its inputs are the data, known beforehand. There the steps of a block are applied
lazily: with W the weight at the block's start,

    z_t = x_t Wᵀ + b − lr Σ_{k<t} (x_t D x_kᵀ + 1) q_k

so that x Wᵀ, all inner products and the update Σ qᵀx are one large product each for the whole block, instead of a small
one for every step. Blocks end when inner products would cost as much as they save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row
from fedarena.problem.client_steps.chain import Dense
from fedarena.problem.client_steps.chunk import clients_at_once
from fedarena.problem.client_steps.inputs import InputMap
from fedarena.problem.client_steps.onto import Onto
from fedarena.problem.client_steps.passes import affine
from fedarena.problem.local_training import local_step
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch


def train(
    chain: Sequence[Dense],
    schedule: Schedule,
    criterion: Criterion,
    start: Tensors,
    batches: Sequence[Batch],
    metric: Mapping[str, Tensor],
    inputs: Mapping[str, InputMap],
    onto: Onto | None = None,
    apart: bool = False,
    then: Callable[[Tensors, Tensors], None] | None = None,
) -> Tensors:
    """`fedarena.problem.local_training.upload` of clients with batches of one shape, stacked.

    Args:
        chain: the model. schedule: optimiser and learning rate. criterion: the loss.
        start: W₀ and b₀ by name; a weight with an input map has the map's output width.
        batches: labels [steps, b] are classes or numbers.
        metric: D of weights, one factor a column; absent: 1.
        inputs: maps applied to the inputs of dense layers, by the weight's name.
        onto: FedSGD only; what gradients are added to. It is read while a chunk's uploads are in the cache.
        apart: whether every client starts at its own parameters; `start` is then stacked over clients.
        then: called with the starts and the uploads of a chunk, which it may overwrite.
    """
    make = Tensor.new_zeros if onto is None else Tensor.new_empty
    one = row(start, 0) if apart else start
    ups = {name: make(p, (len(batches), *p.shape)) for name, p in one.items()}
    at_once = clients_at_once(one)
    for first in range(0, len(batches), at_once):
        part = {name: up[first : first + at_once] for name, up in ups.items()}
        rate = 1.0 if schedule.fedsgd else schedule.lr
        if onto is not None:
            onto.fill(part, first)
            rate = onto.adds
        begin = {name: p[first : first + at_once] for name, p in start.items()} if apart else start
        layers = [
            _Layer(dense, schedule=schedule, rate=rate, start=begin, taken=part, metric=metric, inputs=inputs)
            for dense in chain
        ]
        _train_chunk(layers, schedule, criterion, batches[first : first + at_once])
        if then is not None:
            then(begin, part)
    return ups


def _train_chunk(layers: Sequence[_Layer], schedule: Schedule, criterion: Criterion, batches: Sequence[Batch]) -> None:
    """Train the clients of one chunk, adding their steps to the layers' `taken`."""
    first, rest = layers[0], layers[1:]
    steps, b = (1 if schedule.fedsgd else batches[0].x.shape[0]), batches[0].x.shape[1]
    x = torch.stack([batch.x[:steps].flatten(0, 1).flatten(1) for batch in batches])  # [clients, steps·b, d]
    y = torch.stack([batch.y[:steps].flatten(0, 1) for batch in batches])
    target = criterion.target(y, x)
    x = first.mapped(x)
    block = b * _block(schedule, first.width, b)
    for begin in range(0, steps * b, block):
        xs = x[:, begin : begin + block]
        base, inner = first.affine(xs), first.inner_products(xs)
        qs = torch.empty_like(base)
        for low in range(0, xs.shape[1], b):
            now = slice(low, low + b)
            z = base[:, now]
            if low:
                z = torch.baddbmm(z, inner[:, now, :low], qs[:, :low], alpha=-first.rate)
            qs[:, now] = _pass(first, rest, z, criterion, target[:, begin + low : begin + low + b])
        first.descend(qs, xs)


def _pass(first: _Layer, rest: Sequence[_Layer], z: Tensor, criterion: Criterion, target: Tensor) -> Tensor:
    """One step from the first layer's z, forward and backward; steps the other layers. Returns the first one's q."""
    outputs, inputs = [first.activate(z)], []
    for layer in rest:
        inputs.append(layer.mapped(outputs[-1]))
        outputs.append(layer.activate(layer.affine(inputs[-1])))
    q = criterion.residual(outputs.pop(), target).div_(target.shape[1])
    below = [first, *rest][: len(rest)]
    for layer, under, h, a in zip(reversed(rest), reversed(below), reversed(inputs), reversed(outputs), strict=True):
        g = layer.back(q)
        layer.descend(q, h)
        q = under.deactivate(g, a)
    return q


def _block(schedule: Schedule, width: int, b: int) -> int:
    """Steps that the first layer takes lazily: inner products of m·b samples stay below half of its own products.

    Only plain SGD's update is a sum over steps that can wait.
    """
    return max(1, width // (2 * b)) if _plain(schedule) else 1


def _plain(schedule: Schedule) -> bool:
    """Whether a step is a multiple of the gradient. FedSGD's upload is the gradient, whatever is made of it then."""
    return schedule.fedsgd or schedule.client_optimizer == "sgd"


class _Layer:
    """One dense layer of all clients of a chunk."""

    def __init__(
        self,
        dense: Dense,
        schedule: Schedule,
        rate: float,
        start: Tensors,
        taken: Tensors,
        metric: Mapping[str, Tensor],
        inputs: Mapping[str, InputMap],
    ) -> None:
        self._activation, self._schedule = dense.activation, schedule
        self._map, self._metric = inputs.get(dense.weight), metric.get(dense.weight)
        self._start = start[dense.weight], start[dense.bias] if dense.bias else None
        self._taken = taken[dense.weight], taken[dense.bias] if dense.bias else None
        self._weight, self._bias = self._start
        self._memory: list[tuple[Tensor, ...] | None] = [None, None]
        self._time = 0
        self.width = self._start[0].shape[-2]
        self.rate = rate
        """The factor of a gradient in a plain step. FedSGD's upload is its one gradient: a step of rate 1."""

    def mapped(self, h: Tensor) -> Tensor:
        """The input that the weight sees."""
        return self._map.apply(h) if self._map else h

    def affine(self, h: Tensor) -> Tensor:
        """z = h Wᵀ + b with the clients' present weights: [clients, n, d] → [clients, n, d_out]."""
        self._refresh()
        return affine(self._weight, self._bias, h)  # before the first step clients may share one weight

    def inner_products(self, x: Tensor) -> Tensor:
        """x D xᵀ, plus 1 for the bias: [clients, n, d] → [clients, n, n]."""
        products = torch.bmm(x if self._metric is None else x * self._metric, x.transpose(1, 2))
        return products if self._bias is None else products.add_(1)

    def activate(self, z: Tensor) -> Tensor:
        """a = σ(z); may overwrite z."""
        return self._activation.forward(z) if self._activation else z

    def deactivate(self, g: Tensor, a: Tensor) -> Tensor:
        """∂L/∂z from g = ∂L/∂a."""
        return self._activation.backward(g, a) if self._activation else g

    def back(self, q: Tensor) -> Tensor:
        """∂L/∂h = q W, through the input map, with the weights of the last `affine`."""
        g = torch.matmul(q, self._weight)
        return self._map.adjoint(g) if self._map else g

    def descend(self, q: Tensor, h: Tensor) -> None:
        """One optimiser step with the gradients qᵀh and Σq (plain SGD: all steps whose q and h are stacked here)."""
        weight, bias = self._taken
        self._time += 1
        if _plain(self._schedule):
            weight.baddbmm_(q.transpose(1, 2), h, alpha=self.rate)
            if bias is not None:
                bias.add_(q.sum(1), alpha=self.rate)
            return
        self._step(0, weight, torch.bmm(q.transpose(1, 2), h))
        if bias is not None:
            self._step(1, bias, q.sum(1))

    def _step(self, which: int, taken: Tensor, gradient: Tensor) -> None:
        step, self._memory[which] = local_step(gradient, self._memory[which], self._time, self._schedule)
        taken.add_(step)

    def _refresh(self) -> None:
        """W₀ − u·D and b₀ − u, when steps have been taken."""
        if not self._time:
            return
        (w, b), (u, v) = self._start, self._taken
        if self._weight is w:
            self._weight = torch.empty_like(u)
        if self._metric is None:
            torch.sub(w, u, out=self._weight)
        else:
            torch.addcmul(w, u, self._metric, value=-1, out=self._weight)
        if b is not None and v is not None:
            self._bias = b - v
