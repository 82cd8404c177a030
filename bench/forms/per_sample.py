"""Sums over a client's samples of bounded per-sample gradients, for many clients with batches of different sizes.

With f_j the loss of client c's sample j and m_c a vector of the client's own, what is summed is

    Σ_j a_j φ_j      φ_j = (1 − β) ∇f_j + β m_c      a_j = C/‖φ_j‖ (normalise) or min(1, C/‖φ_j‖) (clip)

so that one sample moves the sum by at most C. All clients share the parameters, so their samples are one batch.
For chains of dense layers no gradient is formed before it is needed ("ghost norms", Goodfellow 2015): with h a layer's
input and q = ∂f_j/∂z at its output,

    ‖∇f_j‖² = Σ_layers ‖q‖²(‖h‖² + 1)      ⟨∇f_j, m⟩ = Σ_layers qᵀ(M h + μ)      Σ_j a_j ∇f_j = Σ_j (a_j q) hᵀ

where M and μ are m's entries for the layer's weight and bias. Other models: `torch.func.vmap` of the gradient, some
samples at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, vmap

from fedarena.batch import Batch
from fedarena.criterion import Criterion
from fedarena.forms.chain import Dense, chain_of, front_of
from fedarena.forms.passes import backward, forward
from fedarena.local import Loss
from fedarena.task import Task
from fedarena.tensors import Tensors, shaped

CHUNK = 80
"""Samples at a time in the general form: more do not fit into the cache."""

TINY = 1e-30
"""Added to squared norms: φ = 0 stays 0, and the norm has a derivative there."""


@dataclass(frozen=True)
class Bound:
    """How a vector's length is bounded.

    Attributes:
        length: C. normalise: give every vector that length; otherwise shorten longer ones only.
    """

    length: float
    normalise: bool

    def factor(self, squared: Tensor) -> Tensor:
        """a from ‖φ‖²."""
        a = self.length * (squared + TINY).rsqrt()
        return a if self.normalise else a.clamp(max=1.0)


def one_client(task: Task, params: Tensors, batch: Batch, momentum: Tensor | None, beta: float, bound: Bound) -> Tensor:
    """The sum of one client [d], by names in the order of `params`; differentiable in `batch` and runs under `vmap`."""
    x, y = batch.images()
    flat = [p.reshape(-1) for p in params.values()]
    if not len(x):
        return torch.cat(flat) * 0
    gradients = vmap(grad(_one(task)), in_dims=(None, 0, 0))(params, x, y)
    phi = (1 - beta) * torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
    if momentum is not None:
        phi = phi + beta * momentum
    return bound.factor(phi.square().sum(1)) @ phi


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
    counts = [len(x) for x, _ in given]
    owner = torch.repeat_interleave(torch.tensor(counts, device=x.device))
    out = torch.zeros(len(batches), sum(p.numel() for p in params.values()), dtype=x.dtype, device=x.device)
    if not len(x):
        return out
    chain = chain_of(task.model, len(task.input_shape))
    if chain is not None and set(params) == {n for dense in chain for n in (dense.weight, dense.bias) if n}:
        front = front_of(task.model)
        x = front(x) if front else x
        a = _ghost(task.criterion, chain, params, x, y, counts, owner, momenta, beta, bound, out)
    else:
        a = _general(task, params, x, y, owner, momenta, beta, bound, out)
    if momenta is not None:
        out.addcmul_(momenta, _by_client(beta * a, owner, len(batches)).unsqueeze(1))
    return out


@torch.no_grad()
def _ghost(
    criterion: Criterion,
    chain: Sequence[Dense],
    params: Tensors,
    x: Tensor,
    y: Tensor,
    counts: list[int],
    owner: Tensor,
    momenta: Tensor | None,
    beta: float,
    bound: Bound,
    out: Tensor,
) -> Tensor:
    """Adds (1 − β) Σ_j a_j ∇f_j to `out` and returns a; `owner` is each sample's client."""
    inputs, last = forward(chain, params, x.flatten(1))
    qs = backward(chain, params, inputs, criterion.residual(last, criterion.target(y, last)))
    squared = x.new_zeros(len(x))
    for dense, h, q in zip(chain, inputs, qs, strict=True):
        squared += q.square().sum(1) * (h.square().sum(1) + (1.0 if dense.bias else 0.0))
    if momenta is not None:
        m, inner = shaped(momenta, params), x.new_zeros(len(x))
        for dense, h, q in zip(chain, inputs, qs, strict=True):
            seen = torch.cat([part @ own.T for part, own in zip(h.split(counts), m[dense.weight], strict=True)])
            inner += (q * (seen + m[dense.bias][owner] if dense.bias else seen)).sum(1)
        squared = _with_momentum(squared, inner, momenta, owner, beta)
    else:
        squared *= (1 - beta) ** 2
    a = bound.factor(squared)
    parts, share = shaped(out, params), ((1 - beta) * a).unsqueeze(1)
    for dense, h, q in zip(chain, inputs, qs, strict=True):
        weighted = q * share
        for into, left, right in zip(parts[dense.weight], weighted.split(counts), h.split(counts), strict=True):
            into.addmm_(left.T, right)
        if dense.bias:
            parts[dense.bias].index_add_(0, owner, weighted)
    return a


def _general(
    task: Task,
    params: Tensors,
    x: Tensor,
    y: Tensor,
    owner: Tensor,
    momenta: Tensor | None,
    beta: float,
    bound: Bound,
    out: Tensor,
) -> Tensor:
    """As `_ghost`."""
    each = vmap(grad(_one(task)), in_dims=(None, 0, 0))
    factors = []
    for first in range(0, len(x), CHUNK):
        now = slice(first, first + CHUNK)
        mine = owner[now]
        gradients = [g.flatten(1) for g in each(params, x[now], y[now]).values()]
        widths = [g.shape[1] for g in gradients]
        squared = torch.stack([g.square().sum(1) for g in gradients]).sum(0)
        rows, place = mine.unique_consecutive(return_inverse=True)
        if momenta is not None:
            m = momenta[rows].split(widths, dim=1)
            # ⟨∇f_j, m⟩ for all clients of the chunk, of which each sample needs its own's
            inner = torch.stack([g @ own.T for g, own in zip(gradients, m, strict=True)]).sum(0)
            squared = _with_momentum(squared, inner.gather(1, place.unsqueeze(1)).squeeze(1), momenta, mine, beta)
        else:
            squared = (1 - beta) ** 2 * squared
        a = bound.factor(squared)
        share = torch.zeros(len(rows), len(a), dtype=a.dtype, device=a.device)
        share[place, torch.arange(len(a), device=a.device)] = (1 - beta) * a
        for g, part in zip(gradients, out.split(widths, dim=1), strict=True):
            part.index_add_(0, rows, share @ g)
        factors.append(a)
    return torch.cat(factors)


def _with_momentum(squared: Tensor, inner: Tensor, momenta: Tensor, owner: Tensor, beta: float) -> Tensor:
    """‖φ_j‖² from ‖∇f_j‖² and ⟨∇f_j, m⟩.

    Where the terms nearly cancel, single precision knows the sum to 1e-7 of them only. It is taken for at least 1e-5
    of them, so that a sample never weighs more than its bound: such a φ_j comes out shorter than 1, not longer.
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
