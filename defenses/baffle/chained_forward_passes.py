"""Losses of a chain of dense layers at several parameters at once: one batched product a layer for all of them.

If the layers are small, the cost of a forward pass is its calls, not its arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import shaped
from fedarena.problem.client_steps.chain import Dense
from fedarena.problem.loss import Criterion

TOGETHER = 20
GROUP_BYTES = 1 << 20
"""The most parameter vectors, and the most bytes of them, at a time: more do not fit into the cache."""


def group_size(n: int, dtype: torch.dtype) -> int:
    """How many vectors of n parameters are worth taking together; 1: none."""
    return max(1, min(TOGETHER, GROUP_BYTES // (n * dtype.itemsize)))


def losses(
    criterion: Criterion, chain: Sequence[Dense], w: Tensor, like: Mapping[str, Tensor], x: Tensor, y: Tensor
) -> Tensor:
    """The loss of every sample at every parameter vector [g, samples].

    Args:
        criterion: the loss. chain: the model.
        w: parameters [g, n].
        like: names and shapes of the parameters in their order.
        x: inputs of the first dense layer [samples, d].
        y: labels of the samples, as for `Task.loss`.
    """
    params, h = shaped(w, like), x.expand(len(w), -1, -1)
    for dense in chain:
        transposed = params[dense.weight].transpose(1, 2)
        h = torch.baddbmm(params[dense.bias].unsqueeze(1), h, transposed) if dense.bias else torch.bmm(h, transposed)
        if dense.activation:
            h = dense.activation.forward(h)
    target = y.repeat(len(w), *[1] * (y.dim() - 1))
    return criterion.each(h.flatten(0, 1), target).view(len(w), -1)
