"""The residual network for small images of He et al. 2016: without normalisation, as PBPFL trains it, or with it.

A 3x3 convolution of 16 channels, three stages of n blocks with 16, 32 and 64 channels, the second and third of which
begin with stride 2, global average pooling, dense output; depth 6n + 2.

    skip=add      h ← relu(conv3x3(relu(conv3x3_s(h))) + shortcut(h))
    skip=concat   h ← relu([shortcut(h), conv3x3(relu(conv3x3_s(h)))])      side by side, over channels

The shortcut is the identity within a stage and a 1x1 convolution of stride 2 where one begins with stride 2. With
concat, a stage of width w adds w channels, shared out evenly over its n blocks: 16 → 32 → 64 → 128. A norm
follows every convolution, if there is one.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from fedarena.core.tensors import Tensors
from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.cards.resnet import Options
from fedarena.models.layers import norm

WIDTHS = (16, 32, 64)


def convolution(c_in: int, c_out: int, size: int, stride: int, options: Options) -> nn.Module:
    """A convolution that keeps the number of pixels at stride 1, and its norm if there is one."""
    layer = nn.Conv2d(c_in, c_out, size, stride, padding=size // 2, bias=options.bias)
    normed = norm(options.norm, c_out)
    return nn.Sequential(OrderedDict(layer=layer, **normed)) if normed else layer


class Block(nn.Module):
    """[n, c_in, h, w] → [n, c_out, ⌈h/stride⌉, ⌈w/stride⌉]; see the module's docstring.

    Attributes:
        c_in, width: channels of the input and between the two convolutions.
        added: channels of the second convolution, which are the output's (add) or come to the input's (concat).
    """

    def __init__(self, c_in: int, width: int, added: int, stride: int, options: Options) -> None:
        super().__init__()
        self.concat = options.skip == "concat"
        self.conv1 = convolution(c_in, width, 3, stride, options)
        self.between = nn.ReLU()
        self.conv2 = convolution(width, added, 3, 1, options)
        passed_on = c_in if self.concat else added
        self.shortcut = nn.Identity() if stride == 1 else convolution(c_in, passed_on, 1, stride, options)
        self.after = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        branch, passed_on = self.conv2(self.between(self.conv1(x))), self.shortcut(x)
        out: Tensor = self.after(torch.cat([passed_on, branch], 1) if self.concat else passed_on + branch)
        return out


class ResNet(Architecture):
    """He et al. 2016, Section 4.2; images of at least 8x8 pixels."""

    options: Options

    @property
    def blocks(self) -> int:
        """n, the blocks of one stage."""
        return (self.options.depth - 2) // 6

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels, _, _ = image_shape("resnet", input_shape, smallest=8)
        o, n = self.options, self.blocks
        concat = o.skip == "concat"

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            layers["conv"] = convolution(channels, WIDTHS[0], 3, 1, o)
            layers["act"] = nn.ReLU()
            c = WIDTHS[0]
            for stage, width in enumerate(WIDTHS, start=1):
                for i in range(n):
                    added = (i + 1) * width // n - i * width // n if concat else width
                    stride = 2 if stage > 1 and i == 0 else 1
                    layers[f"block{stage}_{i + 1}"] = Block(c, width, added, stride, o)
                    c = c + added if concat else width
            layers["pool"], layers["flatten"] = nn.AdaptiveAvgPool2d(1), nn.Flatten()
            layers["out"] = nn.Linear(c, n_classes, bias=o.bias)
            return nn.Sequential(layers)

        return blank(make)

    def init(self, module: nn.Module, generator: torch.Generator) -> Tensors:
        """As inherited, but the last convolution of every block is multiplied by `branch_scale`."""
        drawn, o = super().init(module, generator), self.options
        factor = o.branch_scale
        if factor is None:
            factor = 1 / (len(WIDTHS) * self.blocks) if (o.skip, o.norm) == ("add", "none") else 1.0
        return {name: factor * t if ".conv2." in name else t for name, t in drawn.items()}
