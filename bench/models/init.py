"""Distributions of initial parameters.

    default       weights and biases U(±1/√fan_in), as PyTorch's layers do by themselves
    xavier-he     dense weights N(0, 2/(fan_in + fan_out)) (Glorot & Bengio 2010), convolutions N(0, 2/(k²·c_out))
                  (He et al. 2015, fan-out form), biases zero. The two-stage DP paper's code draws weights so; its
                  biases it leaves as `default` has them
    uniform-half  weights and biases U(−½, ½): Zhu et al. 2019 (DLG)
    kaiming       weights N(0, 2/fan_in), dense ones too (He et al. 2015, fan-in form), biases zero

fan_in counts the inputs of one output, c_in·k² for a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedarena.core.tensors import Tensors

Distribution = Callable[[nn.Linear | nn.Conv2d, torch.Generator], tuple[Tensor, Tensor]]
"""(layer, generator) → (weight, bias) with the shapes of the layer's own weight and [d_out]."""


def draw(module: nn.Module, distribution: str, generator: torch.Generator) -> Tensors:
    """Draw every parameter of a module of dense and convolutional layers, in the order of the module.

    Args:
        module: gives names and shapes; its own values are neither read nor changed.
        distribution: one of `DISTRIBUTIONS`.
        generator: the only source of randomness.

    Raises:
        TypeError: a layer with parameters that these distributions do not cover.
    """
    drawn: Tensors = {}
    for name, layer in module.named_modules():
        own = dict(layer.named_parameters(recurse=False))
        if not own:
            continue
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            raise TypeError(f"no distribution of initial parameters for layer '{name}' ({type(layer).__name__})")
        weight, bias = DISTRIBUTIONS[distribution](layer, generator)
        drawn[f"{name}.weight"] = weight
        if "bias" in own:
            drawn[f"{name}.bias"] = bias
    return drawn


def default(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """U(±1/√fan_in), weights then biases."""
    bound = 1 / math.sqrt(layer.weight[0].numel())
    return _uniform(layer, bound, generator)


def uniform_half(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """U(−½, ½), weights then biases."""
    return _uniform(layer, 0.5, generator)


def xavier_he(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal weights, zero biases."""
    shape = layer.weight.shape
    receptive = shape[2:].numel()  # k² of a convolution, 1 of a dense layer
    fans = shape[0] * receptive if isinstance(layer, nn.Conv2d) else shape[0] + shape[1]
    return torch.randn(shape, generator=generator) * math.sqrt(2 / fans), torch.zeros(shape[0])


def kaiming(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal weights that keep a signal's scale through ReLUs, zero biases."""
    shape = layer.weight.shape
    return torch.randn(shape, generator=generator) * math.sqrt(2 / shape[1:].numel()), torch.zeros(shape[0])


def _uniform(layer: nn.Linear | nn.Conv2d, bound: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    shape = layer.weight.shape
    weight = torch.empty(shape).uniform_(-bound, bound, generator=generator)
    return weight, torch.empty(shape[0]).uniform_(-bound, bound, generator=generator)


DISTRIBUTIONS: dict[str, Distribution] = {
    "default": default,
    "xavier-he": xavier_he,
    "uniform-half": uniform_half,
    "kaiming": kaiming,
}
