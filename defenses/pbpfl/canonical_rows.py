"""The directions in which rows of layers move in canonical form. They do not depend on the units' unknown lengths.

Row i of a layer that reads the input moves from c_i along −∂L/∂c_i, by a length that depends on the unknown ‖w_i‖. So
the direction of each row's change, orthogonal to c_i, is matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.contracts.simulators import WithOwn
from fedarena.core.tensors import Tensors
from fedarena.models.scaling.plan import ScalingPlan


@dataclass(frozen=True)
class RowDirections:
    """Simulator: the directions of rows of the layers that read the input, if the others hold a candidate batch.

    Attributes:
        mean: the clients' gradient at C(W_t).
        layers: names of the layers. sizes: the length given to each row's direction.
    """

    mean: WithOwn
    layers: tuple[str, ...]
    sizes: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return directions(self.mean(x, y), self.mean.others.params, self.layers, self.sizes)


def directions(change: Tensors, c: Tensors, layers: Sequence[str], sizes: Tensors) -> Tensors:
    """Each row of `change`, its bias included, made orthogonal to the row of `c`, with the length in `sizes`."""
    directions = {}
    for layer in layers:
        along = orthogonal(rows_of(change, layer), rows_of(c, layer))
        length = (along.square().sum(1) + torch.finfo(along.dtype).tiny).sqrt()
        directions[layer] = along * (sizes[layer].to(along) / length)[:, None]
    return directions


def lengths(change: Tensors, c: Tensors, layers: Sequence[str]) -> Tensors:
    """The length of each row's part of `change` orthogonal to the row of `c`, [units] by layer."""
    return {layer: orthogonal(rows_of(change, layer), rows_of(c, layer)).norm(dim=1) for layer in layers}


def orthogonal(rows: Tensor, unit: Tensor) -> Tensor:
    """Each row without its part along the row of length 1 in `unit`."""
    return rows - (rows * unit).sum(1, keepdim=True) * unit


def rows_of(tensors: Tensors, layer: str) -> Tensor:
    """The incoming weights of each unit, and its bias as one more: [units, d]."""
    weight, bias = tensors[f"{layer}.weight"].flatten(1), tensors.get(f"{layer}.bias")
    return weight if bias is None else torch.cat([weight, bias[:, None]], 1)


def reading_the_input(plan: ScalingPlan) -> tuple[str, ...]:
    """The hidden layers that read only the network's input."""
    return tuple(layer.name for layer in plan.layers[:-1] if all(run.group is None for run in layer.columns))
