"""BAFFLE's LeNet: two 5x5 convolutions of 16 and 64 channels with padding 2, 2x2 max pooling after the first, global
average pooling after the second, dense output. 26,730 parameters on one channel and 10 classes, for any image size.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.cards.lenet_baffle import Options
from fedarena.models.layers import ACTIVATIONS, norm
from fedarena.models.preprocess import head

CHANNELS = (16, 64)


class BaffleLeNet(Architecture):
    """32 → 16 → 1 pixels a side; as many features as the second convolution has channels."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("lenet-baffle", input_shape, o.mean, o.std, o.size)
        # On smaller images a single sample's batch statistics would be those of one pixel.
        channels, _, _ = image_shape("lenet-baffle", shape, smallest=4)
        first, second = (o.width * c for c in CHANNELS)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(front)
            for i, (c_in, c_out) in enumerate(((channels, first), (first, second)), start=1):
                layers[f"conv{i}"] = nn.Conv2d(c_in, c_out, 5, padding=2)
                layers.update({f"{name}{i}": module for name, module in norm(o.norm, c_out).items()})
                layers[f"act{i}"] = ACTIVATIONS[o.activation]()
                layers[f"pool{i}"] = nn.MaxPool2d(2) if i == 1 else nn.AdaptiveAvgPool2d(1)
            layers["flatten"], layers["out"] = nn.Flatten(), nn.Linear(second, n_classes)
            return nn.Sequential(layers)

        return blank(make)
