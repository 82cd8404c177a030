"""A small CNN: 3x3 convolutions of stride 2 with a ReLU each, then dense layers.

Strides stand in place of pooling (Springenberg et al. 2015, Striving for Simplicity), since max pooling takes a CPU
longer than these convolutions. With the option `block` a malicious server has put two dense layers in front of them.
"""

from __future__ import annotations

from collections import OrderedDict
from math import prod

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.bottleneck import before_output
from fedarena.models.cards.cnn import Options
from fedarena.models.cnn import Convolution, conv_net
from fedarena.models.preprocess import head


class SmallCNN(Architecture):
    """28, 14, 7 pixels a side with two convolutions."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("cnn", input_shape, o.mean, o.std, size=None)
        image_shape("cnn", shape, smallest=2 ** len(o.channels))
        convolutions = [Convolution(c, kernel=3, padding=1, stride=2, pooled=False) for c in o.channels]
        net = conv_net(shape, convolutions, o.widths, n_classes, o.norm)
        *layers, output = net.named_children()
        features = net.get_parameter("out.weight").shape[1]
        block = dense_block(shape, o.block) if o.block else {}

        def make() -> nn.Sequential:
            more = before_output(features, o.bottleneck, o.beta)
            return nn.Sequential(OrderedDict([*front.items(), *block.items(), *layers, *more.items(), output]))

        return blank(make)


def dense_block(shape: tuple[int, ...], units: int) -> dict[str, nn.Module]:
    """Two dense layers from pixels to pixels, the block of Robbing the Fed (Fowl et al. 2022, Figure 2)."""
    pixels = prod(shape)
    return {
        "block_flatten": nn.Flatten(),
        "block1": nn.Linear(pixels, units),
        "block_act": nn.ReLU(),
        "block2": nn.Linear(units, pixels),
        "block_shape": nn.Unflatten(1, shape),
    }
