"""The two-stage DP paper's MLP: inputs - 32 - classes, ELU. 25,450 parameters on 28x28 inputs and 10 classes."""

from __future__ import annotations

import math
from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank

WIDTH = 32


class TwoStageMLP(Architecture):
    """One hidden layer of 32 units."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        d = math.prod(input_shape)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
            layers["fc1"], layers["act1"], layers["out"] = nn.Linear(d, WIDTH), nn.ELU(), nn.Linear(WIDTH, n_classes)
            return nn.Sequential(layers)

        return blank(make)
