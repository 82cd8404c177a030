"""The bucketing paper's network for MNIST (Karimireddy, He & Jaggi 2022, as its code has it).

3×3 convolutions of 32 and 64 channels without padding, a ReLU after the first one alone, 2×2 max pooling, dropout of
channels, a dense layer of 128 with a ReLU, dropout, output. 1,199,882 parameters on 1x28x28 inputs and 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after
from fedarena.models.dropout import Dropout
from fedarena.models.preprocess import head

CHANNELS, WIDTH = (32, 64), 128


class BucketingCNN(Architecture):
    """Images of 28 pixels a side shrink to 26, 24 and 12, which gives 9,216 features."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        channels, _, _ = image_shape("cnn-bucketing", input_shape, smallest=6)
        front, _ = head("cnn-bucketing", input_shape, o.mean, o.std, None)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(front)
            layers["conv1"], layers["act1"] = nn.Conv2d(channels, CHANNELS[0], 3), nn.ReLU()
            layers["conv2"], layers["pool"] = nn.Conv2d(*CHANNELS, 3), nn.MaxPool2d(2)
            if o.channel_dropout:
                layers["drop1"] = Dropout(o.channel_dropout, (CHANNELS[1], 1, 1))
            layers["flatten"] = nn.Flatten()
            layers["fc1"] = nn.Linear(width_after(nn.Sequential(layers), input_shape), WIDTH)
            layers["act2"] = nn.ReLU()
            if o.dropout:
                layers["drop2"] = Dropout(o.dropout, (WIDTH,))
            layers["out"] = nn.Linear(WIDTH, n_classes)
            return nn.Sequential(layers)

        return blank(make)
