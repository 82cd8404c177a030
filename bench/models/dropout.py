"""Dropout whose draws come from outside, so that a client's step is pure (Srivastava et al. 2014, Section 4).

    training     out = x·mask, mask = 0 with probability rate, else 1/(1 − rate); for each sample and unit on its own
    evaluation   out = x

A unit is one number of a dense layer, or a whole channel of a convolution (Tompson et al. 2015, `nn.Dropout2d`). The
mask is a buffer of the module, 1 by itself: whoever trains passes masks by the buffer's name beside the parameters, and
whoever passes none evaluates. The harness draws the masks from the client's own randomness
(`fedarena.federation.one_round`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors

MASK = "mask"


class Dropout(nn.Module):
    """The layer; see the module's docstring.

    Attributes:
        rate: the probability that a unit is dropped.
        units: the shape of one sample's mask, which its input is multiplied by: [features], or [channels, 1, 1].
    """

    mask: Tensor

    def __init__(self, rate: float, units: tuple[int, ...]) -> None:
        super().__init__()
        self.rate, self.units = rate, units
        self.register_buffer(MASK, torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask

    def draw(self, lead: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Masks [*lead, *units]."""
        kept = torch.rand(*lead, *self.units, generator=generator) >= self.rate
        return kept / (1 - self.rate)


def has_dropout(module: nn.Module) -> bool:
    """Whether a module has such layers."""
    return any(isinstance(layer, Dropout) for layer in module.modules())


def draw_masks(module: nn.Module, lead: tuple[int, ...], rng: Rng) -> Tensors:
    """Masks [*lead, ...] of all dropout layers, by the name of their buffer; {} for a module without any."""
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, Dropout)}
    return {f"{name}.{MASK}": layer.draw(lead, rng.child(name).torch()) for name, layer in layers.items()}
