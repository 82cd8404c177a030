"""The pre-norm transformer block (Vaswani et al. 2017; Xiong et al. 2020, Figure 1b), without fused operations.

    h ← x + MSA(LN(x))       x [..., n, d]: n tokens of width d
    out = h + MLP(LN(h))     MLP(z) = W_2 gelu(W_1 z + b_1) + b_2

    MSA(z) = W_o [head_1, …, head_H] + b_o,  head_i = softmax(q_i k_iᵀ/√(d/H)) v_i,  q = W_q z + b_q, k and v alike

With `causal`, a token sees itself and the tokens before it. LN has no weights and no statistics of a batch, so a
block acts on each sample by itself. Nothing here calls a fused attention, which has no second derivative: gradients of
gradients, `functional_call` and `vmap` work. Tests: tests/models/test_attention.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

RATIO = 4
"""Units of a block's MLP for each number of the width, as usual."""

Dense = Callable[[int, int], nn.Module]
"""(d_in, d_out) → a module that maps [..., d_in] to [..., d_out], such as `nn.Linear`."""


def layer_norm(width: int) -> nn.LayerNorm:
    """(z − mean)/√(variance + 10⁻⁵) of each token, without parameters."""
    return nn.LayerNorm(width, elementwise_affine=False)


class Attention(nn.Module):
    """Multi-head self-attention with a separate dense layer each for q, k, v and o.

    Attributes:
        heads: H; divides the width.
        causal: whether later tokens are masked.
    """

    def __init__(self, width: int, heads: int, causal: bool, dense: Dense = nn.Linear) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.o = (dense(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        """[..., n, d] → [..., n, d]."""
        q, k, v = (self._split(layer(x)) for layer in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if self.causal:
            later = scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        out: Tensor = self.o((scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2))
        return out

    def _split(self, z: Tensor) -> Tensor:
        """[..., n, d] → [..., H, n, d/H]."""
        heads: Tensor = z.unflatten(-1, (self.heads, -1)).transpose(-2, -3)
        return heads


class MLP(nn.Module):
    """Two dense layers with a GELU between them."""

    def __init__(self, width: int, hidden: int, dense: Dense = nn.Linear) -> None:
        super().__init__()
        self.up, self.act, self.down = dense(width, hidden), nn.GELU(), dense(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(self.act(self.up(x)))
        return out


class Block(nn.Module):
    """One block; see the module's docstring.

    Attributes:
        hidden: units between the two dense layers of the MLP.
        projection: makes q, k, v and o. dense: makes the layers of the MLP.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        causal: bool,
        projection: Dense = nn.Linear,
        dense: Dense = nn.Linear,
    ) -> None:
        super().__init__()
        self.norm1, self.attention = layer_norm(width), Attention(width, heads, causal, projection)
        self.norm2, self.mlp = layer_norm(width), MLP(width, hidden, dense)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.attention(self.norm1(x))
        out: Tensor = h + self.mlp(self.norm2(h))
        return out


class Positions(nn.Module):
    """x [..., n, d] → x + P, one trained vector a position: a dense layer of the positions' one-hot codes.

    The dense layer has the weight Pᵀ [d, n] and no bias.
    """

    codes: Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Linear(length, width, bias=False)
        self.register_buffer("codes", torch.eye(length), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.table(self.codes.to(x))
        return out


class FixedPositions(nn.Module):
    """x [..., n, d] → x + P, P [n, d] a constant that all parties know."""

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table
