"""The two-stage DP paper's MLP: inputs - 32 - classes, ELU or ReLU. 25,450 parameters on 28x28 inputs, 10 classes."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
from torch import nn

from fedarena.core.tensors import Tensors
from fedarena.models.architecture import Architecture, blank
from fedarena.models.cards.mlp_two_stage import Options
from fedarena.models.mlp import ACTIVATIONS
from fedarena.models.preprocess import head

WIDTH = 32


class TwoStage(Architecture):
    """What the paper's models share: their options, and weights that may come from a seed of their own."""

    options: Options

    def init(self, module: nn.Module, generator: torch.Generator) -> Tensors:
        """As inherited; with `weights_seed` from that seed, as `torch.manual_seed` leaves PyTorch's own generator."""
        seed = self.options.weights_seed
        return super().init(module, generator if seed is None else torch.Generator().manual_seed(seed))


class TwoStageMLP(TwoStage):
    """One hidden layer of 32 units."""

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("mlp-two-stage", input_shape, o.mean, o.std, o.size, o.blur)
        d = math.prod(shape)

        def make() -> nn.Sequential:
            layers: OrderedDict[str, nn.Module] = OrderedDict(**front, flatten=nn.Flatten())
            layers["fc1"], layers["act1"] = nn.Linear(d, WIDTH), ACTIVATIONS[o.activation]()
            layers["out"] = nn.Linear(WIDTH, n_classes)
            return nn.Sequential(layers)

        return blank(make)
