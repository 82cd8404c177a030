"""Layers that draw at random, by numbers that come from outside, so that a client's step is pure.

The numbers are a buffer of the layer, whose own value is what evaluation takes: whoever trains passes numbers by the
buffer's name beside the parameters, and whoever passes none evaluates. The harness draws them from the client's own
randomness (`fedarena.federation.one_round`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors


class Drawn(nn.Module):
    """A layer that draws for each sample."""

    drawn: ClassVar[str]
    """The name of its buffer."""

    @abstractmethod
    def draw(self, lead: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Its numbers [*lead, ...]."""


def has_drawn(module: nn.Module) -> bool:
    """Whether a module has such layers."""
    return any(isinstance(layer, Drawn) for layer in module.modules())


def draw_masks(module: nn.Module, lead: tuple[int, ...], rng: Rng) -> Tensors:
    """The numbers [*lead, ...] of all such layers, by the name of their buffer; {} for a module without any."""
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, Drawn)}
    return {f"{name}.{layer.drawn}": layer.draw(lead, rng.child(name).torch()) for name, layer in layers.items()}
