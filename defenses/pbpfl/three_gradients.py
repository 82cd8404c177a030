"""The gradients of L̂, Φ and Ψ of PBPFL's clients, from one forward pass each.

At the outputs (y, α) of the widened network the three scalars have the derivatives

    L̂ = mean ½‖y − ȳ‖²            (y − ȳ, 0) / n
    Φ = mean α r_aᵀ(y − ȳ)         (α r_a, r_aᵀ(y − ȳ)) / n
    Ψ = mean ½ α²                  (0, α) / n

For a chain of dense layers the three go backwards together, and so do all clients, since they start from the same
parameters. Other networks take one client after the other, and one derivative after the other. The time of convolutions
is arithmetic, so that stacking the three gains nothing, and a vmap over them (`is_grads_batched`) is slower. Only the
conversion between layouts can be saved: channels are last throughout if the network's code allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.defenses.pbpfl.widened import Widened
from fedarena.problem.client_steps.chain import Dense, chain_of, front_of
from fedarena.problem.client_steps.passes import backward, forward
from fedarena.problem.task import Batch, Task


def three_gradients(
    task: Task, wide: Widened, params: Tensors, r_a: Tensor, batches: Sequence[Batch]
) -> tuple[Tensors, Tensors, Tensors]:
    """The three gradients by every parameter, stacked over clients, each at its one batch.

    Args:
        params: Ŵ. r_a: [outputs]. batches: [1, b, ...] each; their b may differ.
    """
    chain = chain_of(wide.model, len(task.input_shape))
    outs = {name: p.new_empty(3, len(batches), *p.shape) for name, p in params.items()}
    if chain is not None:
        _chained(task, wide, chain, params, r_a, batches, outs)
    else:
        _one_by_one(task, wide, params, r_a, batches, outs)
    first, second, third = ({name: t[k] for name, t in outs.items()} for k in range(3))
    return first, second, third


def cotangents(task: Task, r_a: Tensor, out: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """The three derivatives at the outputs [3, n, outputs + 1], weighted by `share` [n]."""
    predicted, alpha = out[:, :-1], out[:, -1:]
    error = predicted - task.criterion.target(y, predicted)
    none = torch.zeros_like(alpha)
    three = torch.stack(
        [
            torch.cat([error, none], 1),
            torch.cat([alpha * r_a, (error @ r_a)[:, None]], 1),
            torch.cat([torch.zeros_like(error), alpha], 1),
        ]
    )
    return three * share[:, None]


@torch.no_grad()
def _chained(
    task: Task,
    wide: Widened,
    chain: Sequence[Dense],
    params: Tensors,
    r_a: Tensor,
    batches: Sequence[Batch],
    outs: Tensors,
) -> None:
    x, y, counts = _together(batches)
    front, full = front_of(wide.model), wide.params(params)
    inputs, out = forward(chain, full, (front(x) if front else x).flatten(1))
    share = torch.cat([x.new_full((n,), 1 / n) for n in counts])
    qs = backward(chain, full, inputs, cotangents(task, r_a, out, y, share))
    for dense, h, q in zip(chain, inputs, qs, strict=True):
        rows = params[dense.weight].shape[0]  # the last layer's further unit has no gradient
        into = outs[dense.weight]
        if len(set(counts)) == 1:
            left, right = q[..., :rows].unflatten(1, (-1, counts[0])), h.unflatten(0, (-1, counts[0]))
            torch.matmul(left.transpose(2, 3), right, out=into)
        else:
            for c, (left, right) in enumerate(zip(q[..., :rows].split(counts, 1), h.split(counts), strict=True)):
                torch.matmul(left.transpose(1, 2), right, out=into[:, c])
        if dense.bias:
            sums = [left.sum(1) for left in q[..., :rows].split(counts, 1)]
            torch.stack(sums, 1, out=outs[dense.bias])


def _one_by_one(
    task: Task, wide: Widened, params: Tensors, r_a: Tensor, batches: Sequence[Batch], outs: Tensors
) -> None:
    try:
        _in_layout(channels_last, task, wide, params, r_a, batches, outs)
    except RuntimeError as error:
        if "view" not in str(error):
            raise
        # A network that calls `view` accepts only the layout for which it was written.
        _in_layout(lambda t: t, task, wide, params, r_a, batches, outs)


def _in_layout(
    layout: Callable[[Tensor], Tensor],
    task: Task,
    wide: Widened,
    params: Tensors,
    r_a: Tensor,
    batches: Sequence[Batch],
    outs: Tensors,
) -> None:
    leaves = {name: layout(p.detach().clone()).requires_grad_() for name, p in params.items()}
    for c, batch in enumerate(batches):
        x, y = layout(batch.x[0]), batch.y[0]
        with torch.enable_grad():
            out = torch.cat([t if t.dim() > 1 else t[:, None] for t in wide(leaves, x)], 1)
        three = cotangents(task, r_a, out.detach(), y, x.new_full((len(x),), 1 / len(x)))
        for k, cotangent in enumerate(three):
            gradients = torch.autograd.grad(
                out, list(leaves.values()), cotangent, retain_graph=k < 2, materialize_grads=True
            )
            torch._foreach_copy_([outs[name][k, c] for name in leaves], gradients)


def channels_last(t: Tensor) -> Tensor:
    """The layout in which convolutions go fastest; tensors that are not four-dimensional stay as they are."""
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t


def _together(batches: Sequence[Batch]) -> tuple[Tensor, Tensor, list[int]]:
    x, y = torch.cat([b.x[0] for b in batches]), torch.cat([b.y[0] for b in batches])
    return x, y, [len(b.y[0]) for b in batches]
