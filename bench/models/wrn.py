"""Wide ResNet 10-2 (Zagoruyko & Komodakis 2016): a 3x3 convolution of 16 channels, three residual blocks of 32, 64 and
128 channels with strides 1, 2 and 2, norm and activation, global average pooling, dense output.
302,778 parameters on 3x32x32 inputs and 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise

from torch import Tensor, nn

from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.cards.wrn import Options
from fedarena.models.layers import ACTIVATIONS, norm
from fedarena.models.preprocess import head

CHANNELS = (16, 32, 64, 128)


class Block(nn.Module):
    """A pre-activation block whose number of channels changes: with h = act(norm(x)),

        out = conv3x3(act(norm(conv3x3_s(h)))) + conv1x1_s(h)

    No convolution has a bias.
    """

    def __init__(self, c_in: int, c_out: int, stride: int, activation: str, norm_name: str) -> None:
        super().__init__()
        self.before = nn.Sequential(OrderedDict(norm(norm_name, c_in), act=ACTIVATIONS[activation]()))
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, padding=1, bias=False)
        self.between = nn.Sequential(OrderedDict(norm(norm_name, c_out), act=ACTIVATIONS[activation]()))
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.skip = nn.Conv2d(c_in, c_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[n, c_in, h, w] → [n, c_out, ⌈h/stride⌉, ⌈w/stride⌉]."""
        h = self.before(x)
        out: Tensor = self.conv2(self.between(self.conv1(h))) + self.skip(h)
        return out


class WideResNet(Architecture):
    """32 → 32 → 32 → 16 → 8 → 1 pixels a side; 128 features for inputs of any size."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("wrn-10-2", input_shape, o.mean, 1.0, o.size)
        # On smaller images a single sample's batch statistics would be those of one pixel.
        channels, _, _ = image_shape("wrn-10-2", shape, smallest=8)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(front)
            layers["conv"] = nn.Conv2d(channels, CHANNELS[0], 3, padding=1, bias=False)
            for i, (c_in, c_out) in enumerate(pairwise(CHANNELS), start=1):
                layers[f"block{i}"] = Block(c_in, c_out, 1 if i == 1 else 2, o.activation, o.norm)
            layers.update(norm(o.norm, CHANNELS[-1]))
            layers["act"], layers["pool"] = ACTIVATIONS[o.activation](), nn.AdaptiveAvgPool2d(1)
            layers["flatten"], layers["out"] = nn.Flatten(), nn.Linear(CHANNELS[-1], n_classes)
            return nn.Sequential(layers)

        return blank(make)
