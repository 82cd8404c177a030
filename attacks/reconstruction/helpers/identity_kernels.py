"""Kernels that pass pixels on through convolutions, for each group of clients in channels of its own, a block.

A kernel with a single entry g copies one pixel from each place that it visits. A convolution of stride s visits every
s-th pixel, so that s² kernels with the entry at different offsets, its taps, pass on all of them. The next convolution
copies the channels of a block in the same way. A block has one channel more that is constant, if it fits: kernel 0 and
a bias. Channels of other blocks are 0, and so are the gradients of all weights that they meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from fedarena.attacks.reconstruction.helpers.first_layers import inputs_of
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Task

CONSTANT = 2.0
"""The value of the constant channel, where pixels lie in [0, 1]."""
ROUNDING = 1e-4
"""How far the inputs of a layer may be from an affine function of pixels."""
UNEVEN = 0.1
"""Standard deviation of a constant channel in what is played, as a share of the largest entry: local steps move it."""


def cover(size: int, layer: nn.Conv2d, axis: int) -> list[int]:
    """Offsets in a kernel whose pixels, along one axis of this size, are all pixels; [] if there are none."""
    kernel, stride = layer.kernel_size[axis], layer.stride[axis]
    padding = layer.padding[axis] if not isinstance(layer.padding, str) else (kernel - 1) // 2
    out = size if layer.padding == "same" else (size + 2 * padding - kernel) // stride + 1
    reached = {k: {q * stride + k - padding for q in range(out)} for k in [*range(padding, kernel), *range(padding)]}
    left, taps = set(range(size)), []
    while left:
        best = max(reached, key=lambda k: len(left & reached[k]))
        if not left & reached[best]:
            return []
        taps.append(best)
        left -= reached[best]
    return taps


@dataclass(frozen=True)
class Blocks:
    """How the channels of convolutions are divided.

    Attributes:
        layers: the convolutions' names. taps: the offsets of each.
        count: blocks. constant: whether each has a constant channel.
        scale, shift: the first convolution's input is scale·pixel + shift.
    """

    layers: tuple[str, ...]
    taps: tuple[tuple[tuple[int, int], ...], ...]
    count: int
    constant: bool
    scale: float
    shift: float

    def kernels(self, params: Tensors, block: int, gain: float) -> Tensors:
        """The parameters of the convolutions for clients of a block."""
        made: Tensors = {}
        held = params[f"{self.layers[0]}.weight"].shape[1]
        before = range(held)
        for i, (name, taps) in enumerate(zip(self.layers, self.taps, strict=True)):
            weight, bias = torch.zeros_like(params[f"{name}.weight"]), torch.zeros_like(params[f"{name}.bias"])
            held *= len(taps)
            start = block * (held + self.constant)
            factor = gain / self.scale if i == 0 else 1.0
            channels = zip(range(start, start + held), product(before, taps), strict=True)
            for channel, (source, (row, column)) in channels:
                weight[channel, source, row, column] = factor
            bias[start : start + held] = -factor * self.shift if i == 0 else 0.0
            if self.constant and i == 0:
                bias[start + held] = CONSTANT * gain
            elif self.constant:
                row, column = taps[0]
                weight[start + held, before.stop, row, column] = 1.0
            made |= {f"{name}.weight": weight, f"{name}.bias": bias}
            before = range(start, start + held)
        return made


def blocks_of(task: Task, params: Tensors, clients: int, x: Tensor) -> Blocks | NotApplicable:
    """Blocks for as many clients as the channels hold, at least one.

    Args:
        x: some samples [m, *input_shape].
    """
    convolutions = []
    for name, layer in task.layers:
        if not isinstance(layer, nn.Conv2d):
            break
        convolutions.append((name, layer))
    if not convolutions:
        return NotApplicable(
            "the model does not begin with a convolution, in whose kernels clients could be kept apart"
        )
    first, layer = convolutions[0]
    scale, shift, off = affine_of(x.flatten(1).double(), inputs_of(task, params, first, x).double())
    if off > ROUNDING or scale <= 0:
        return NotApplicable("pixels are blurred or resized before they enter the first convolution")
    needed, limit, all_taps, size = layer.in_channels, clients, [], task.input_shape[1:]
    for name, layer in convolutions:
        rows, columns = cover(size[0], layer, 0), cover(size[1], layer, 1)
        if layer.bias is None or layer.groups > 1 or layer.dilation != (1, 1) or not rows or not columns:
            return NotApplicable(f"layer '{name}' cannot pass all pixels on")
        all_taps.append(tuple(product(rows, columns)))
        needed *= len(rows) * len(columns)
        if layer.out_channels < needed:
            return NotApplicable(
                f"layer '{name}' has {layer.out_channels} channels, and all pixels are passed on by {needed} or more"
            )
        limit = min(limit, layer.out_channels // (needed + 1))
        size = inputs_after(layer, size)
    names = tuple(name for name, _ in convolutions)
    fits = limit > 0  # with the constant channel
    return Blocks(names, taps=tuple(all_taps), count=max(1, limit), constant=fits, scale=scale, shift=shift)


def inputs_after(layer: nn.Conv2d, size: tuple[int, ...]) -> tuple[int, ...]:
    """Height and width of what a convolution gives."""
    with torch.no_grad():
        return tuple(layer(torch.zeros(1, layer.in_channels, *size).to(layer.weight)).shape[2:])


def affine_of(x: Tensor, seen: Tensor) -> tuple[float, float, float]:
    """a, b with seen ≈ a·x + b for all entries, and how far it is at most; infinity if the shapes differ."""
    if x.shape != seen.shape:
        return 1.0, 0.0, float("inf")
    a = float(((x - x.mean()) * (seen - seen.mean())).sum() / (x - x.mean()).square().sum())
    b = float(seen.mean() - a * x.mean())
    return a, b, float((seen - a * x - b).abs().max())


def codes(d: int) -> Tensor:
    """Samples [bits, d] with pixels ¼ and ¾, so that each pixel has its number in binary digits."""
    bits = torch.arange(max(1, (d - 1).bit_length()))
    return 0.25 + 0.5 * (torch.arange(d) >> bits[:, None] & 1).double()


def columns(entering: Tensor, d: int) -> Tensor | None:
    """Which of the inputs holds each pixel, the first where there are several, [d]; None if pixels are lost.

    Args:
        entering: [bits, inputs], divided by the gain; of `codes`, up to errors of a fifth.
    """
    digits, off = (entering > 0.5).long(), ((entering - 0.5).abs() - 0.25).abs()
    number = (digits << torch.arange(len(entering), device=entering.device)[:, None]).sum(0)
    number[(off > 0.2).any(0) | (number >= d)] = d
    found = [(number == j).nonzero().flatten() for j in range(d)]
    return torch.stack([f[0] for f in found]) if all(len(f) for f in found) else None


@dataclass(frozen=True)
class Layout:
    """Where the inputs of the dense layer have the pixels of each block.

    Attributes:
        inputs: of a block, all of them. pixels: which of these hold each pixel, [d]. constant: how many are constant.
    """

    inputs: int
    pixels: Tensor
    constant: int

    def rows(self, block: Tensor, bias: Tensor, gain: float) -> Tensor:
        """Rows [units, d + 1], multiples of [x, 1] for one sample x, from a block's [units, inputs]."""
        ones = block[:, -self.constant :].mean(1) / CONSTANT if self.constant else gain * bias
        return torch.cat([block[:, self.pixels], ones[:, None]], 1)


def layout_of(sent: Tensors, played: Tensor, d: int, gain: float) -> Layout | None:
    """The layout, from the kernels that some clients got, and what would have been seen of `codes`.

    Args:
        played: a row [inputs + 1] of the dense layer and its bias for each of the codes.

    Returns:
        None where the rows do not have the codes.
    """
    last = [name for name, p in sent.items() if name.endswith(".weight") and p.dim() == 4][-1]
    kernels, shifts = sent[last], sent[last.removesuffix("weight") + "bias"]
    used = (kernels.flatten(1).any(1) | (shifts != 0)).nonzero().flatten()
    places = (played.shape[1] - 1) // len(kernels)
    block = played[:, int(used[0]) * places : (int(used[-1]) + 1) * places]
    tail = block[:, -places:]
    same = tail.std(1, correction=0) < UNEVEN * tail.abs().max(1).values
    constant = places if places > 1 and bool(same.all()) else 0
    size = tail.mean(1) / CONSTANT if constant else gain * played[:, -1]
    if not bool(size.all()):
        return None
    pixels = columns(block / size[:, None], d)
    return None if pixels is None else Layout(block.shape[1], pixels, constant)
