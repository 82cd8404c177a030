"""DBCL's CNN for CIFAR-10 (Zhang & Wang 2021, Section 6.2): 5x5 convolutions of 32, 64 and 128 channels with ReLU, 2x2
max pooling after the second and the third; a dense layer of 200; output.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after


class Cifar10CNN(Architecture):
    """Convolutions without padding, so 32 → 28 → 24 → 12 → 8 → 4 pixels a side and 2,048 features."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels, _, _ = image_shape("cnn-cifar10", input_shape, smallest=20)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            layers["conv1"], layers["act1"] = nn.Conv2d(channels, 32, 5), nn.ReLU()
            layers["conv2"], layers["act2"], layers["pool2"] = nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)
            layers["conv3"], layers["act3"], layers["pool3"] = nn.Conv2d(64, 128, 5), nn.ReLU(), nn.MaxPool2d(2)
            layers["flatten"] = nn.Flatten()
            features = width_after(nn.Sequential(layers), input_shape)
            layers["fc1"], layers["act4"], layers["out"] = (
                nn.Linear(features, 200),
                nn.ReLU(),
                nn.Linear(200, n_classes),
            )
            return nn.Sequential(layers)

        return blank(make)
