"""Fully connected network: flatten, dense layers of the given widths with an activation, dense output."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise

from torch import nn

from fedarena.models.architecture import Architecture, blank
from fedarena.models.cards.mlp import Options

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
}


class MLP(Architecture):
    """A plain chain, so that `fedarena.problem.client_steps.stacked` can train it for many clients at once."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        sizes = (math.prod(input_shape), *self.options.widths)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
            for i, (d_in, d_out) in enumerate(pairwise(sizes), start=1):
                layers[f"fc{i}"] = nn.Linear(d_in, d_out, bias=self.options.bias)
                layers[f"act{i}"] = ACTIVATIONS[self.options.activation]()
            layers["out"] = nn.Linear(sizes[-1], n_classes, bias=self.options.bias)
            return nn.Sequential(layers)

        return blank(make)
