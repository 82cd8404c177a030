"""The two-stage DP paper's CNN: three 5x5 convolutions of 16 channels without padding, each followed by ELU or ReLU
and GroupNorm (4 groups, no parameters); adaptive average pooling to 4x4; dense layer of 32, ELU or ReLU; output.
21,802 parameters on 1x28x28 inputs and 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import blank, image_shape
from fedarena.models.mlp import ACTIVATIONS
from fedarena.models.mlp_two_stage import TwoStage
from fedarena.models.preprocess import head

CHANNELS, GROUPS, POOLED, WIDTH = 16, 4, 4, 32


class TwoStageCNN(TwoStage):
    """28 → 24 → 20 → 16 → 4 pixels a side, 256 features for inputs of any size."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("cnn-two-stage", input_shape, o.mean, o.std, o.size, o.blur)
        channels, _, _ = image_shape("cnn-two-stage", shape, smallest=16)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(front)
            for i in (1, 2, 3):
                layers[f"conv{i}"] = nn.Conv2d(channels if i == 1 else CHANNELS, CHANNELS, 5)
                layers[f"act{i}"] = ACTIVATIONS[o.activation]()
                layers[f"norm{i}"] = nn.GroupNorm(GROUPS, CHANNELS, affine=False)
            layers["pool"], layers["flatten"] = nn.AdaptiveAvgPool2d(POOLED), nn.Flatten()
            layers["fc1"] = nn.Linear(CHANNELS * POOLED * POOLED, WIDTH)
            layers["act4"] = ACTIVATIONS[o.activation]()
            layers["out"] = nn.Linear(WIDTH, n_classes)
            return nn.Sequential(layers)

        return blank(make)
