"""A variational bottleneck before the output layer (Scheliga, Mäder & Seeland 2022, PRECODE, Section 4).

    [μ, s] = E h + e          h [n, m] the representation, μ and s [n, k]; E [2k, m] the encoder
    code   = μ + σ·ε          σ = softplus(s), ε ~ N(0, I) anew for each sample; ε = 0 in evaluation
    out    = D code + d       [n, m], which the output layer takes; D [m, k] the decoder
    loss   + β KL(N(μ, σ²) ‖ N(0, I)), in bits, in the mean over samples

ε is a buffer of the module, 0 by itself (`fedarena.models.drawn`). softplus and bits are as in the authors' code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.models.drawn import Drawn

ENCODER, BOTTLENECK, DECODER = "encoder", "bottleneck", "decoder"
"""The names of the three layers, in a module whose output layer follows them."""


class Bottleneck(Drawn):
    """From [μ, s] to the code; see the module's docstring.

    Attributes:
        k: numbers of the code. beta: β.
    """

    drawn = "noise"
    noise: Tensor

    def __init__(self, k: int, beta: float) -> None:
        super().__init__()
        self.k, self.beta = k, beta
        self.register_buffer(self.drawn, torch.zeros(()), persistent=False)

    def forward(self, statistics: Tensor) -> Tensor:
        mean, std = moments(statistics)
        return mean + std * self.noise

    def draw(self, lead: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """ε [*lead, k]."""
        return torch.randn(*lead, self.k, generator=generator)

    def penalty(self, statistics: Tensor) -> Tensor:
        """β KL of statistics [n, 2k], in bits, in the mean over samples."""
        mean, std = moments(statistics)
        nats = 0.5 * (mean.square() + std.square() - 1 - 2 * std.log()).sum(-1)
        return self.beta * nats.mean() / math.log(2)


def moments(statistics: Tensor) -> tuple[Tensor, Tensor]:
    """μ and σ [n, k] from [n, 2k]; σ is never 0."""
    mean, s = statistics.chunk(2, -1)
    return mean, F.softplus(s).clamp_min(torch.finfo(s.dtype).tiny)


def before_output(features: int, k: int, beta: float, bias: bool = True) -> Mapping[str, nn.Module]:
    """Encoder, bottleneck and decoder of a representation with so many features; nothing for k = 0."""
    if not k:
        return {}
    return {
        ENCODER: nn.Linear(features, 2 * k, bias=bias),
        BOTTLENECK: Bottleneck(k, beta),
        DECODER: nn.Linear(k, features, bias=bias),
    }


def bottlenecks(module: nn.Module) -> tuple[str, ...]:
    """The names of a module's bottlenecks."""
    return tuple(name for name, layer in module.named_modules() if isinstance(layer, Bottleneck))


@contextmanager
def penalties(module: nn.Module, names: Sequence[str]) -> Iterator[list[Tensor]]:
    """The penalties of the passes that are made in this context, of the bottlenecks of these names."""
    found: list[Tensor] = []

    def note(layer: Bottleneck, given: tuple[Tensor, ...], out: Tensor) -> None:
        found.append(layer.penalty(*given))

    hooks = [module.get_submodule(name).register_forward_hook(note) for name in names]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
