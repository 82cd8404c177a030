"""Dropout whose draws come from outside, so that a client's step is pure (Srivastava et al. 2014, Section 4).

    training     out = x·mask, mask = 0 with probability rate, else 1/(1 − rate); for each sample and unit on its own
    evaluation   out = x

A unit is one number of a dense layer, or a whole channel of a convolution (Tompson et al. 2015, `nn.Dropout2d`). The
mask is a buffer of the module, 1 by itself (`fedarena.models.drawn`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.models.drawn import Drawn

MASK = "mask"


class Dropout(Drawn):
    """The layer; see the module's docstring.

    Attributes:
        rate: the probability that a unit is dropped.
        units: the shape of one sample's mask, which its input is multiplied by: [features], or [channels, 1, 1].
    """

    drawn = MASK
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
