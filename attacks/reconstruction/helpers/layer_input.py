"""The input of one layer at batch 1, from the layer's output and its gradient: linear equations, by least squares.

With input x, output z and δ = ∂L/∂z,

    W x + b = z                                      weight constraints
    ∂L/∂W[o, c, :] = Σ_p δ[o, p]·patch_p(x_c)        gradient constraints; p runs over a convolution's positions

(Zhu & Blaschko 2021, Eq. 6 to 15). A dense layer has one position, and its gradient constraints alone give x. What an
activation does not tell of z, such as that of an inactive ReLU, has slope 0 and weight 0 in the equations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_input

SMALLEST = 1e-7
"""A direction with less than this share of the largest singular value counts as open: numbers in the equations are in
single precision, and its error would be as large as itself."""


@dataclass(frozen=True)
class Rank:
    """How far the equations of a layer determine its input.

    Attributes:
        unknowns: entries of the input. rank: independent equations. by_weights, by_gradient: equations of each kind.
    """

    unknowns: int
    rank: int
    by_weights: int
    by_gradient: int

    @property
    def open(self) -> int:
        """Directions of the input of which the equations say nothing."""
        return self.unknowns - self.rank


def dense_input(gradient: Tensor, delta: Tensor) -> Tensor:
    """x [in] from ∂L/∂W [out, in] and δ [out]: least squares in δ xᵀ = ∂L/∂W."""
    return delta @ gradient / delta.square().sum()


def backward(layer: nn.Linear | nn.Conv2d, weight: Tensor, delta: Tensor, shape: tuple[int, ...]) -> Tensor:
    """∂L/∂x [*shape] of a layer's input, Wᵀ δ."""
    if isinstance(layer, nn.Linear):
        return delta @ weight
    assert not isinstance(layer.padding, str), "no such layer is in a chain"
    one: Tensor = conv2d_input((1, *shape), weight, delta[None], layer.stride, layer.padding, layer.dilation)
    return one[0]


def convolution_input(
    layer: nn.Conv2d,
    shape: tuple[int, ...],
    weight: Tensor,
    gradient: Tensor,
    z: Tensor,
    slope: Tensor,
    delta: Tensor,
) -> tuple[Tensor | None, Rank]:
    """x [c, h, w] by least squares, None where the equations leave directions open; and how many they determine.

    Weight constraints count by the slope, since an error of the activation's output is that of z times the slope. Both
    kinds are divided by their largest right side.

    Args:
        shape: that of x. weight, gradient: W and ∂L/∂W [out, c, k, k].
        z: the output without the bias, slope: the activation's, delta: δ; each [out, h', w'].
    """
    z, slope = z.flatten(), slope.flatten()
    told = slope > 0
    share = slope[told] / largest(z[told])
    q, r = torch.linalg.qr(gradient_matrix(layer, shape, delta) / largest(gradient))
    of_channels = gradient.transpose(0, 1).flatten(1) / largest(gradient)
    a = torch.cat([share[:, None] * weight_matrix(layer, shape, weight)[told], torch.block_diag(*[r] * shape[0])])
    x, rank = solve(a, torch.cat([share * z[told], (of_channels @ q).flatten()]))
    known = Rank(torch.Size(shape).numel(), rank, int(told.sum()), gradient.numel())
    return None if x is None else x.reshape(shape), known


def largest(t: Tensor) -> float:
    """The largest size of an entry, above 0."""
    return max(float(t.abs().max()) if t.numel() else 0.0, torch.finfo(t.dtype).tiny)


def weight_matrix(layer: nn.Conv2d, shape: tuple[int, ...], weight: Tensor) -> Tensor:
    """A convolution without its bias as a matrix [outputs, inputs]."""
    inputs = torch.Size(shape).numel()
    unit = torch.eye(inputs, dtype=weight.dtype).reshape(inputs, *shape)
    return F.conv2d(unit, weight, None, layer.stride, layer.padding, layer.dilation).flatten(1).T


def gradient_matrix(layer: nn.Conv2d, shape: tuple[int, ...], delta: Tensor) -> Tensor:
    """The matrix [out·k², h·w] that makes ∂L/∂W[:, c] of a channel x_c; it is the same for all channels."""
    _, h, w = shape
    unit = torch.eye(h * w, dtype=delta.dtype).reshape(h * w, 1, h, w)
    assert not isinstance(layer.padding, str), "no such layer is in a chain"
    patches = F.unfold(unit, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # [h·w, k², positions]
    return torch.einsum("op,ikp->oki", delta.flatten(1), patches).flatten(0, 1)


def solve(a: Tensor, b: Tensor) -> tuple[Tensor | None, int]:
    """The x that minimises ‖a x − b‖, None where it is not the only one; and the rank of a."""
    from scipy.linalg import lapack  # slow to import, and only needed here

    unknowns = a.shape[1]
    if len(a) < unknowns:
        return None, rank_of(a)
    q, r = torch.linalg.qr(a)
    # The estimate of the condition costs nothing, singular values take several times as long as the rest.
    rank = unknowns if lapack.dtrcon(r.numpy())[0] > SMALLEST else rank_of(r)
    if rank < unknowns:
        return None, rank
    x: Tensor = torch.linalg.solve_triangular(r, (q.T @ b)[:, None], upper=True)
    return x[:, 0], rank


def rank_of(a: Tensor) -> int:
    """How many singular values are not small."""
    sizes = torch.linalg.svdvals(a)
    return int((sizes > SMALLEST * sizes[0]).sum())
