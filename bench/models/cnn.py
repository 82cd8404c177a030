"""The convolutional networks of DBCL (Zhang & Wang 2021, Section 6.2).

    cnn-mnist     5x5 convolutions of 32 and 64 channels, each followed by 2x2 max pooling; a dense layer of 512
    cnn-cifar10   5x5 convolutions of 32, 64 and 128 channels, 2x2 max pooling after the second and the third; a dense
                  layer of 200
    cnn-lfw       three 3x3 convolutions of 64, 64 and 128 channels, each followed by 2x2 max pooling; two dense layers
                  of 32

Every hidden layer has a ReLU. An output layer without activation ends each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after
from fedarena.models.layers import norm


@dataclass(frozen=True)
class Convolution:
    """One convolution with its ReLU.

    Attributes:
        channels: outputs. kernel: pixels a side. padding: pixels added on each side. stride: pixels a step.
        pooled: whether 2x2 max pooling follows.
    """

    channels: int
    kernel: int = 5
    padding: int = 0
    stride: int = 1
    pooled: bool = True


def conv_net(
    input_shape: tuple[int, ...],
    convolutions: Sequence[Convolution],
    widths: Sequence[int],
    outputs: int,
    normed: str = "none",
) -> nn.Sequential:
    """Convolutions, then hidden dense layers of the given widths, then the output layer; all parameters are zero.

    Args:
        input_shape: [channels, height, width].
        normed: the norm between each convolution and its ReLU (`fedarena.models.layers.norm`).
    """

    def make() -> nn.Sequential:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        before = input_shape[0]
        for i, c in enumerate(convolutions, 1):
            layers[f"conv{i}"] = nn.Conv2d(before, c.channels, c.kernel, padding=c.padding, stride=c.stride)
            layers |= {f"{name}{i}": layer for name, layer in norm(normed, c.channels).items()}
            layers[f"act{i}"] = nn.ReLU()
            if c.pooled:
                layers[f"pool{i}"] = nn.MaxPool2d(2)
            before = c.channels
        layers["flatten"] = nn.Flatten()
        features = width_after(nn.Sequential(layers), input_shape)
        for i, (inputs, units) in enumerate(pairwise((features, *widths)), 1):
            layers[f"fc{i}"] = nn.Linear(inputs, units)
            layers[f"act{len(convolutions) + i}"] = nn.ReLU()
        layers["out"] = nn.Linear((features, *widths)[-1], outputs)
        return nn.Sequential(layers)

    return blank(make)


class MnistCNN(Architecture):
    """Images of 28 pixels a side shrink to 24, 12, 8 and 4. 582,026 parameters for one channel and 10 classes."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        image_shape("cnn-mnist", input_shape, smallest=16)
        return conv_net(input_shape, (Convolution(32), Convolution(64)), (512,), n_classes)


class Cifar10CNN(Architecture):
    """Images of 32 pixels a side shrink to 28, 24, 12, 8 and 4, which gives 2,048 features."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        image_shape("cnn-cifar10", input_shape, smallest=20)
        convolutions = (Convolution(32, pooled=False), Convolution(64), Convolution(128))
        return conv_net(input_shape, convolutions, (200,), n_classes)


class LfwCNN(Architecture):
    """Only pooling shrinks the images: 62x47, 31x23, 15x11, 7x5 pixels with three convolutions."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels = self.options.channels
        image_shape("cnn-lfw", input_shape, smallest=2 ** len(channels))
        convolutions = [Convolution(c, kernel=3, padding=1) for c in channels]
        return conv_net(input_shape, convolutions, self.options.widths, n_classes)
