"""DBCL's CNN for MNIST (Zhang & Wang 2021, Section 6.2): two 5x5 convolutions, 32 and 64 channels, each followed by
ReLU and 2x2 max pooling; a dense layer of 512; output. 582,026 parameters on 1x28x28 inputs and 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after


class MnistCNN(Architecture):
    """Convolutions without padding, so 28 → 24 → 12 → 8 → 4 pixels a side."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels, _, _ = image_shape("cnn-mnist", input_shape, smallest=16)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            layers["conv1"], layers["act1"], layers["pool1"] = nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2)
            layers["conv2"], layers["act2"], layers["pool2"] = nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)
            layers["flatten"] = nn.Flatten()
            features = width_after(nn.Sequential(layers), input_shape)
            layers["fc1"], layers["act3"], layers["out"] = (
                nn.Linear(features, 512),
                nn.ReLU(),
                nn.Linear(512, n_classes),
            )
            return nn.Sequential(layers)

        return blank(make)
