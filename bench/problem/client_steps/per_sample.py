"""Sums over a client's samples of bounded per-sample gradients, for many clients with batches of different sizes.

With f_j the loss of client c's sample j and m_c a vector of the client's own, what is summed is

    Σ_j a_j φ_j      φ_j = (1 − β) ∇f_j + β m_c      a_j = C/(‖φ_j‖ + o) (normalise) or min(1, C/‖φ_j‖) (clip)

so that one sample moves the sum by at most C. All clients share the parameters, so their samples are one batch. For
dense layers no gradient is formed (`fedarena.problem.client_steps.sample_gradients`). For convolutions gradients are
formed for some samples at a time (`fedarena.problem.client_steps.layered`). Models that are not a sequence of layers
take `torch.func.vmap` of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.core.gradients import grad, gradient, untransformed
from fedarena.core.tensors import Tensors, shaped
from fedarena.problem.client_steps.chain import chain_of, front_of
from fedarena.problem.client_steps.layered import layers_of, passes
from fedarena.problem.client_steps.passes import backward, forward
from fedarena.problem.client_steps.sample_gradients import Crowd, Dense, Formed, Part
from fedarena.problem.local_training import Loss
from fedarena.problem.task import Batch, Task

CHUNK = 80
"""Samples at a time if gradients are formed: more do not fit into the cache."""

TINY = 1e-30
"""Added to squared norms: φ = 0 stays 0, and the norm has a derivative there."""


@dataclass(frozen=True)
class Bound:
    """How a vector's length is bounded.

    Attributes:
        length: C. normalise: give every vector that length; otherwise shorten longer ones only.
        offset: o, for normalising: φ is divided by ‖φ‖ + o, so that vectors as short as o stay short.
    """

    length: float
    normalise: bool
    offset: float = 0.0

    def factor(self, squared: Tensor) -> Tensor:
        """a from ‖φ‖²."""
        if self.offset:
            return self.length / ((squared + TINY).sqrt() + self.offset)
        a = self.length * (squared + TINY).rsqrt()
        return a if self.normalise else a.clamp(max=1.0)


def one_client(task: Task, params: Tensors, batch: Batch, momentum: Tensor | None, beta: float, bound: Bound) -> Tensor:
    """The sum of one client [d], by names in the order of `params`; differentiable in `batch` and runs under `vmap`."""
    x, y = batch.images()
    flat = [p.reshape(-1) for p in params.values()]
    if not len(x):
        return torch.cat(flat) * 0
    gradients = _of_each(task, params, x, y)
    phi = (1 - beta) * torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
    if momentum is not None:
        phi = phi + beta * momentum
    return bound.factor(phi.square().sum(1)) @ phi


def _of_each(task: Task, params: Tensors, x: Tensor, y: Tensor) -> Tensors:
    """∇f_j of each sample [n, *shape].

    A single sample of a dense model takes a third of the time without `vmap`. The numbers are the same to the bit,
    which those of convolutions are not, and those of a second derivative.
    """
    alone = len(x) == 1 and untransformed() and chain_of(task.model, len(task.input_shape)) is not None
    if alone and not (torch.is_grad_enabled() and any(t.requires_grad for t in (*params.values(), x, y))):
        return {name: g.unsqueeze(0) for name, g in gradient(task.loss, params, x, y).items()}
    of_each: Tensors = vmap(grad(_one(task)), in_dims=(None, 0, 0))(params, x, y)
    return of_each


def many_clients(
    task: Task, params: Tensors, batches: Sequence[Batch], momenta: Tensor | None, beta: float, bound: Bound
) -> Tensor:
    """The sums of all clients [clients, d], in the order of `params`.

    Args:
        batches: one a client; they may differ in size and be empty.
        momenta: m [clients, d]; None: zero.
    """
    given = [batch.images() for batch in batches]
    x, y = torch.cat([x for x, _ in given]), torch.cat([y for _, y in given])
    counts = torch.tensor([len(x) for x, _ in given], device=x.device)
    owner = torch.repeat_interleave(counts)
    out = torch.zeros(len(batches), sum(p.numel() for p in params.values()), dtype=x.dtype, device=x.device)
    if not len(x):
        return out
    sums = _Sums(params, momenta, beta, bound, out)
    parts_of, small = _parts_of(task, params)
    chunk = len(x) if small else CHUNK
    with torch.no_grad():
        every = range(0, len(x), chunk)
        a = torch.cat([sums.add(parts_of(x[i : i + chunk], y[i : i + chunk]), owner[i : i + chunk]) for i in every])
    if momenta is not None:
        out.addcmul_(momenta, _by_client(beta * a, owner, len(batches)).unsqueeze(1))
    return out


@dataclass(frozen=True)
class _Sums:
    """The sums of all clients under construction; the attributes are those of `many_clients`."""

    params: Tensors
    momenta: Tensor | None
    beta: float
    bound: Bound
    out: Tensor

    def add(self, parts: Sequence[Part], owner: Tensor) -> Tensor:
        """Adds (1 − β) Σ_j a_j ∇f_j, and returns a [n]; `owner` is each sample's client."""
        clients, place, counts = owner.unique_consecutive(return_inverse=True, return_counts=True)
        crowd = Crowd(owner, clients, counts.tolist(), place)
        squared = torch.zeros(len(owner), dtype=self.out.dtype, device=self.out.device)
        for part in parts:
            squared += part.squared()
        if self.momenta is not None:
            m, inner = shaped(self.momenta, self.params), torch.zeros_like(squared)
            for part in parts:
                inner += part.inner(m, crowd)
            squared = _with_momentum(squared, inner, self.momenta, owner, self.beta)
        else:
            squared *= (1 - self.beta) ** 2
        a = self.bound.factor(squared)
        weights, out = (1 - self.beta) * a, shaped(self.out, self.params)
        for part in parts:
            part.add(weights, crowd, out)
        return a


Parts = Callable[[Tensor, Tensor], list[Part]]
"""Gradients of samples x [n, *shape], y [n]."""


def _parts_of(task: Task, params: Tensors) -> tuple[Parts, bool]:
    """The fastest form for a model, and whether it forms no tensors as large as gradients."""
    chain = chain_of(task.model, len(task.input_shape))
    if chain is not None and set(params) == {n for dense in chain for n in (dense.weight, dense.bias) if n}:
        front = front_of(task.model)

        def of_chain(x: Tensor, y: Tensor) -> list[Part]:
            inputs, last = forward(chain, params, (front(x) if front else x).flatten(1))
            qs = backward(chain, params, inputs, task.criterion.residual(last, task.criterion.target(y, last)))
            return [Dense(d.weight, d.bias, h, q) for d, h, q in zip(chain, inputs, qs, strict=True)]

        return of_chain, True
    layers = layers_of(task.model)
    if layers is not None and set(params) == {n for n, _ in task.model.named_parameters()}:

        def of_layers(x: Tensor, y: Tensor) -> list[Part]:
            return [
                Dense(w.weight, w.bias, h, q) if w.convolution is None else Formed(w.gradients(params, h, q))
                for w, h, q in passes(task.criterion, layers, params, x, y)
            ]

        return of_layers, False
    each = vmap(grad(_one(task)), in_dims=(None, 0, 0))
    return lambda x, y: [Formed({name: g.flatten(1) for name, g in each(params, x, y).items()})], False


def _with_momentum(squared: Tensor, inner: Tensor, momenta: Tensor, owner: Tensor, beta: float) -> Tensor:
    """‖φ_j‖² from ‖∇f_j‖² and ⟨∇f_j, m⟩.

    If the terms nearly cancel, single precision gives the sum only to 1e-7 of the terms. The sum is taken as at least
    1e-5 of them, so that a sample never weighs more than its bound: such a φ_j becomes shorter, not longer.
    """
    own = torch.linalg.vector_norm(momenta, dim=1).square()[owner]
    ends = (1 - beta) ** 2 * squared + beta**2 * own
    return torch.maximum(ends + 2 * beta * (1 - beta) * inner, 1e-5 * ends)


def _by_client(values: Tensor, owner: Tensor, clients: int) -> Tensor:
    """Sums over each client's samples [clients]."""
    total: Tensor = values.new_zeros(clients).index_add_(0, owner, values)
    return total


def _one(task: Task) -> Loss:
    """The loss of one sample, x [*shape]."""

    def loss(params: Tensors, x: Tensor, y: Tensor) -> Tensor:
        return task.loss(params, x.unsqueeze(0), y.unsqueeze(0))

    return loss
