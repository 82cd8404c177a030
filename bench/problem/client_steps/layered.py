"""Models that are a row of layers, some with parameters and the others acting on each sample by itself.

One pass forwards and one backwards for a whole batch give each weighted layer's inputs h and, for sample j, q = ∂f_j/∂z
at its outputs z, from which the gradient of any single sample follows layer by layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from fedarena.core.tensors import Tensors
from fedarena.models.preprocess import Preprocess
from fedarena.problem.client_steps.chain import bias_name, is_flatten, plain, steps
from fedarena.problem.loss import Criterion

FREE = (
    *(nn.Identity, nn.Flatten, nn.ReLU, nn.ELU, nn.SELU, nn.Sigmoid, nn.Tanh, nn.Hardswish),
    *(nn.GroupNorm, nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, Preprocess),
)
"""Modules that may stand between weighted layers: they act on each sample by itself and draw nothing at random."""


@dataclass(frozen=True)
class Weighted:
    """A dense or a convolutional layer, by the names of its parameters.

    Attributes:
        weight: [out, in] or [out, in, height, width]. bias: [out], if there is one.
        convolution: how the kernel moves; None: a dense layer.
    """

    weight: str
    bias: str | None
    convolution: dict[str, tuple[int, ...]] | None

    def __call__(self, params: Tensors, h: Tensor) -> Tensor:
        """h [n, in, ...] → z [n, out, ...]."""
        weight, bias = params[self.weight], params[self.bias] if self.bias else None
        if (c := self.convolution) is None:
            return F.linear(h, weight, bias)
        return F.conv2d(h, weight, bias, c["stride"], c["padding"], c["dilation"])

    def gradients(self, params: Tensors, h: Tensor, q: Tensor) -> dict[str, Tensor]:
        """The gradient of each sample's loss by the kernels and the bias of a convolution [n, entries].

        The samples are the channels of one image, and each group of output channels sees its own sample.
        """
        assert self.convolution is not None
        n, weight = len(h), params[self.weight]
        shape = (n * len(weight), *weight.shape[1:])
        images, slopes = h.reshape(1, -1, *h.shape[2:]), q.reshape(1, -1, *q.shape[2:])
        c = self.convolution
        kernels = conv2d_weight(images, shape, slopes, c["stride"], c["padding"], c["dilation"], n)
        each = {self.weight: kernels.reshape(n, -1)}
        return each | {self.bias: q.sum((2, 3))} if self.bias else each


Free = Callable[[Tensor], Tensor]
Layer = Weighted | Free


def layers_of(model: nn.Module) -> tuple[Layer, ...] | None:
    """The layers of such a model in order, or None for any other; judged by the exact types of its modules."""
    if type(model) is not nn.Sequential or not plain(model):
        return None
    layers: list[Layer] = []
    flat = False
    for name, module in steps(model, ""):
        flat = flat or is_flatten(module)
        layer = _layer(name, module, flat)
        if layer is None:
            return None
        layers.append(layer)
    weighted = [layer for layer in layers if isinstance(layer, Weighted)]
    if not weighted or weighted[-1] is not layers[-1]:
        return None
    # A layer that occurs twice has one set of parameters under two names.
    names = [n for layer in weighted for n in (layer.weight, layer.bias) if n]
    return tuple(layers) if sorted(names) == sorted(n for n, _ in model.named_parameters()) else None


def _layer(name: str, module: nn.Module, flat: bool) -> Layer | None:
    """One module as a layer, or None for a module that the forms here do not cover; `flat`: its input has one axis."""
    if type(module) is nn.Linear and flat:
        return Weighted(f"{name}.weight", bias_name(name, module), None)
    if type(module) is nn.Conv2d and (module.groups, module.padding_mode) == (1, "zeros"):
        if isinstance(module.padding, str):
            return None
        kernel = {"stride": module.stride, "padding": module.padding, "dilation": module.dilation}
        return Weighted(f"{name}.weight", bias_name(name, module), kernel)
    # A module that overwrites its input would overwrite z.
    return module if type(module) in FREE and not getattr(module, "inplace", False) else None


def passes(
    criterion: Criterion, layers: Sequence[Layer], params: Tensors, x: Tensor, y: Tensor
) -> list[tuple[Weighted, Tensor, Tensor]]:
    """Each weighted layer with h [n, in, ...] and q [n, out, ...], in order."""
    fixed = {name: p.detach() for name, p in params.items()}
    seen: list[tuple[Weighted, Tensor]] = []
    outputs: list[Tensor] = []
    with torch.enable_grad():
        h = x.detach()
        for layer in layers:
            if isinstance(layer, Weighted):
                seen.append((layer, h.detach()))
                # Before the first one nothing is differentiated.
                h = layer(fixed, h) if outputs else layer(fixed, h).detach().requires_grad_()
                outputs.append(h)
            else:
                h = layer(h)
    residual = criterion.residual(h.detach(), criterion.target(y, h.detach()))
    qs = torch.autograd.grad(h, outputs, residual)
    return [(layer, inputs, q) for (layer, inputs), q in zip(seen, qs, strict=True)]
