"""Fully connected network: flatten, dense layers of the given widths with an activation, dense output."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise

from torch import nn

from fedarena.models.architecture import Architecture, blank
from fedarena.models.bottleneck import before_output
from fedarena.models.cards.mlp import Options

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
}


class MLP(Architecture):
    """A plain chain, so that `fedarena.problem.client_steps.stacked` can train it for many clients at once.

    With a bottleneck it is none.
    """

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        sizes = (math.prod(input_shape), *o.widths)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
            for i, (d_in, d_out) in enumerate(pairwise(sizes), start=1):
                layers[f"fc{i}"] = nn.Linear(d_in, d_out, bias=o.bias)
                layers[f"act{i}"] = ACTIVATIONS[o.activation]()
            layers |= before_output(sizes[-1], o.bottleneck, o.beta, o.bias)
            layers["out"] = nn.Linear(sizes[-1], n_classes, bias=o.bias)
            return nn.Sequential(layers)

        return blank(make)
