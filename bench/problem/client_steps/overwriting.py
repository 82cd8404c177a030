"""Activations that overwrite their input, where no other module holds it.

A backward pass may need the input of an activation; a forward pass does not. With one tensor fewer it takes less
memory.
"""

from __future__ import annotations

import copy
from collections import Counter
from itertools import pairwise

from torch import nn

ACTIVATIONS = (nn.ReLU, nn.Hardswish, nn.SELU, nn.ELU)
FRESH = (nn.Linear, nn.Conv2d, nn.GroupNorm, nn.BatchNorm2d)
"""Layers whose output is a new tensor."""


def replacements(model: nn.Module) -> dict[int, nn.Module]:
    """id of an activation in a model → the same activation in place, which can replace it in forward passes.

    An activation is replaced only if it directly follows a layer that makes a new tensor, within one `nn.Sequential`:
    no other module gets that tensor. Types must match exactly, and a module that occurs twice is left as it is.
    """
    places = Counter(id(child) for module in model.modules() for child in module._modules.values())
    return {
        id(layer): _in_place(layer)
        for chain in model.modules()
        if type(chain) is nn.Sequential
        for before, layer in pairwise(chain)
        if type(before) in FRESH and type(layer) in ACTIVATIONS and places[id(layer)] == 1
    }


def _in_place(layer: nn.Module) -> nn.Module:
    same = copy.copy(layer)
    same.inplace = True  # type: ignore[assignment]
    return same
