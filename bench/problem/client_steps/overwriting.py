"""Activations that overwrite their input, where nobody else holds it.

A backward pass may need what went into an activation; a forward pass does not, and with one tensor fewer alive at a
time it takes less memory and touches less of it.
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
    """id of an activation in a model → the same one in place, which may stand for it in forward passes.

    Only those that follow in an `nn.Sequential` right upon a layer that makes a new tensor: the chain hands that tensor
    to nobody else. Judged by exact types; a module that occurs twice is left as it is.
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
