"""DBCL's CNN for LFW (Zhang & Wang 2021, Section 6.2): three 3x3 convolutions of 64, 64 and 128 channels, each followed
by ReLU and 2x2 max pooling; two dense layers of 32; output.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after


class LfwCNN(Architecture):
    """Convolutions keep the size (padding 1), so 62×47 → 31×23 → 15×11 → 7×5 pixels with three of them."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels, dense = self.options.channels, self.options.widths
        colours, _, _ = image_shape("cnn-lfw", input_shape, smallest=2 ** len(channels))

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            for i, (before, after) in enumerate(pairwise((colours, *channels)), 1):
                layers[f"conv{i}"] = nn.Conv2d(before, after, 3, padding=1)
                layers[f"act{i}"], layers[f"pool{i}"] = nn.ReLU(), nn.MaxPool2d(2)
            layers["flatten"] = nn.Flatten()
            features = width_after(nn.Sequential(layers), input_shape)
            for i, (before, after) in enumerate(pairwise((features, *dense)), 1):
                layers[f"fc{i}"], layers[f"act{len(channels) + i}"] = nn.Linear(before, after), nn.ReLU()
            layers["out"] = nn.Linear((features, *dense)[-1], n_classes)
            return nn.Sequential(layers)

        return blank(make)
