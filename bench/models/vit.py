"""A small vision transformer (Dosovitskiy et al. 2021, Eq. 1–4), with the mean of all tokens in place of a class token.

z_p = E x_p + b + e_p     x_p [C·s²]: patch p of s×s pixels, row by row; e_p: its position
Z ← block(Z)              pre-norm blocks, `fedarena.models.attention.Block`, without a mask
logits = W mean_p LN(z_p) + b
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from fedarena.core.errors import UserError
from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.attention import RATIO, Block, FixedPositions, Positions, layer_norm
from fedarena.models.cards.vit import Options
from fedarena.models.preprocess import head

SMALL = 16
"""Pixels a side below which patches have 2 pixels a side by themselves, and else 4."""


class Patches(nn.Module):
    """Images [n, C, H, W] → patches [n, P, C·s²]: row by row, and in a patch channel by channel, row by row."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        cut = x.unflatten(-2, (-1, self.side)).unflatten(-1, (-1, self.side))  # [n, C, rows, s, columns, s]
        patches: Tensor = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        return patches


def sines(length: int, width: int) -> Tensor:
    """e [P, d]: e_p holds sin(p/10000^(2i/d)) at 2i and the cosine at 2i + 1 (Vaswani et al. 2017)."""
    at = torch.arange(width)
    angle = torch.arange(length)[:, None] / 10_000 ** (2 * (at // 2) / width)
    return torch.where(at % 2 == 0, angle.sin(), angle.cos())


class MeanToken(nn.Module):
    """[n, P, d] → [n, d]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(-2)


class ViT(Architecture):
    """8x8 digits become 16 tokens, 28x28 images 49 and 32x32 images 64."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("vit", input_shape, o.mean, o.std, size=None)
        channels, height, width = image_shape("vit", shape, smallest=1)
        side = o.patch or (2 if min(height, width) < SMALL else 4)
        if height % side or width % side:
            raise UserError(
                f"model vit: option 'patch' is {side}, allowed: a divisor of both sides of {height}x{width} images"
            )
        if o.width % o.heads:
            raise UserError(f"model vit: option 'heads' is {o.heads}, allowed: a divisor of the width {o.width}")
        length = height // side * (width // side)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(front)
            layers["patches"], layers["embed"] = Patches(side), nn.Linear(channels * side**2, o.width)
            trained = o.positions == "trained"
            layers["positions"] = Positions(length, o.width) if trained else FixedPositions(sines(length, o.width))
            for i in range(1, o.layers + 1):
                layers[f"block{i}"] = Block(o.width, heads=o.heads, hidden=RATIO * o.width, causal=False)
            layers["norm"], layers["pool"] = layer_norm(o.width), MeanToken()
            layers["out"] = nn.Linear(o.width, n_classes)
            return nn.Sequential(layers)

        return blank(make)
