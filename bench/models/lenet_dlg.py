"""The sigmoid LeNet of Deep Leakage from Gradients (Zhu et al. 2019): three 5x5 convolutions of 12 channels, padding 2,
strides 2, 2 and 1, each followed by a sigmoid; dense output. Twice differentiable everywhere, which L-BFGS needs.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape, width_after

CHANNELS = 12


class DlgLeNet(Architecture):
    """28 → 14 → 7 → 7 pixels a side: 588 features on MNIST, 768 on 32x32 images."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        channels, _, _ = image_shape("lenet-dlg", input_shape, smallest=1)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            for i, stride in enumerate((2, 2, 1), start=1):
                layers[f"conv{i}"] = nn.Conv2d(channels if i == 1 else CHANNELS, CHANNELS, 5, stride, padding=2)
                layers[f"act{i}"] = nn.Sigmoid()
            layers["flatten"] = nn.Flatten()
            layers["out"] = nn.Linear(width_after(nn.Sequential(layers), input_shape), n_classes)
            return nn.Sequential(layers)

        return blank(make)
