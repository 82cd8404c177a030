"""A chain of dense layers, forward and backward by hand: with one set of parameters, or with one for each model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.problem.client_steps.chain import Dense


def affine(weight: Tensor, bias: Tensor | None, h: Tensor) -> Tensor:
    """z = h Wᵀ + b for W [d_out, d_in] and h [..., d_in], or for W [models, d_out, d_in] and h [models, n, d_in]."""
    if weight.dim() == 2:
        return F.linear(h, weight, bias)
    transposed = weight.transpose(1, 2)
    return torch.bmm(h, transposed) if bias is None else torch.baddbmm(bias.unsqueeze(1), h, transposed)


def forward(chain: Sequence[Dense], params: Tensors, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """[..., n, d] → the input h of every layer [..., n, d_in], and the output [..., n, d_out]."""
    inputs, h = [], x
    for dense in chain:
        inputs.append(h)
        h = affine(params[dense.weight], params[dense.bias] if dense.bias else None, h)
        if dense.activation:
            h = dense.activation.forward(h)
    return inputs, h


def backward(chain: Sequence[Dense], params: Tensors, inputs: Sequence[Tensor], q: Tensor) -> list[Tensor]:
    """q = ∂L/∂z of every layer [..., n, d_out], from that of the last one; `q` may have further leading axes."""
    qs = [q]
    for below, dense, a in zip(reversed(chain[:-1]), reversed(chain[1:]), reversed(inputs[1:]), strict=True):
        back = qs[0] @ params[dense.weight]
        qs.insert(0, below.activation.backward(back, a.expand_as(back)) if below.activation else back)
    return qs
