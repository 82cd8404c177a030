"""How a canonical form moves when the clients hold a candidate batch: all layers, whatever the units' unknown lengths.

A client of PBPFL knows C(W_t) and C(W_{t+1}) (`fedarena.defenses.pbpfl_client`), where W = S∘C with S_ij = s_i/s_j and
unknown s > 0, the lengths of `fedarena.positive_scaling.scales`. With g = ∂L/∂C, which it can calculate of a candidate,
and a_i = s_i,t+1/s_i,t, the server's step W − η ∂L/∂W is

    C(W_{t+1})_i = (p_i − λ_i q_i)/a_i,    p_ij = a_j C_ij,    q_ij = a_j s_j² g_ij,    λ_i = η/s_i²

for a row i of a hidden layer, where a_i = ‖p_i − λ_i q_i‖. Of the output layer λ = η and a = 1. From the input, where
s = a = 1, layer by layer to the output: λ_i is what makes the row as far from C(W_{t+1})_i's line as p_i is,

    λ_i = ‖p_i⊥‖/‖q_i⊥‖,    ⊥: orthogonal to C(W_{t+1})_i

which of the true batch is exact. So no unknown is left but the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.observe import PlainGradient
from fedarena.scaling_plan import ScaledLayer, ScalingPlan, spread
from fedarena.tensors import Tensors, combine

FAINT = 1e-4
"""Part of a layer's mean square that is added to every row's: a unit that no sample activates shows no λ of its own, and
gets the layer's."""


@dataclass(frozen=True)
class EveryLayer:
    """Simulator: C(W_t) − C(W_{t+1}), every layer divided by its size in what was seen.

    Attributes:
        others: the plain gradient of the others' samples at C(W_t).
        own: the party's own gradient there. share: its part N_a/N of the mean.
        plan: the network. step: η. after: C(W_{t+1}). sizes: of each layer's change.
    """

    others: PlainGradient
    own: Tensors
    share: float
    plan: ScalingPlan
    step: float
    after: Tensors
    sizes: dict[str, float]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        gradient = combine(1 - self.share, self.others(x, y), self.share, self.own)
        return sized(stepped(self.plan, self.others.params, gradient, self.step, self.after), self.sizes)


def sized(change: Tensors, sizes: dict[str, float]) -> Tensors:
    """Every layer's change divided by its size."""
    return {name: t / sizes[name.rpartition(".")[0]] for name, t in change.items()}


def sizes_of(plan: ScalingPlan, change: Tensors) -> dict[str, float]:
    """The length of every layer's change, its bias included; 1 where nothing moved."""
    return {layer.name: float(rows_of(change, layer).norm()) or 1.0 for layer in plan.layers}


def stepped(plan: ScalingPlan, c: Tensors, gradient: Tensors, step: float, after: Tensors) -> Tensors:
    """C(W_t) − C(W_{t+1}), as far as `gradient` gives it.

    Args:
        c, after: C(W_t) and C(W_{t+1}) as seen, the latter for the lengths λ alone.
        gradient: ∂L/∂C at C(W_t). step: η.
    """
    squares, growths = ([torch.empty(0)] * len(plan.sizes) for _ in range(2))
    found: Tensors = {}
    for layer in plan.layers:
        weight = gradient[f"{layer.name}.weight"]
        grown, scaled = (columns_of(layer, of, weight) for of in (growths, squares))
        was, seen = rows_of(c, layer), rows_of(after, layer)
        p, q = was * grown, rows_of(gradient, layer) * grown * scaled
        if layer is plan.layers[-1]:
            moved = p - step * q
        else:
            parts, start = [], 0
            for run in layer.rows:
                assert run.group is not None and run.spatial == 1
                rows = slice(start, start + run.channels)
                start += run.channels
                if not len(squares[run.group]):
                    factor = lengths(p[rows], q[rows], seen[rows])
                    squares[run.group] = step / factor
                    growths[run.group] = (p[rows] - factor[:, None] * q[rows]).norm(dim=1)
                factor, growth = step / squares[run.group], growths[run.group]
                parts.append((p[rows] - factor[:, None] * q[rows]) / growth[:, None])
            moved = torch.cat(parts)
        found |= named(was - moved, layer, c)
    return found


def lengths(p: Tensor, q: Tensor, seen: Tensor) -> Tensor:
    """λ [rows]; see the module's docstring and `FAINT`."""
    squares = (orthogonal(t, seen).square().sum(1) for t in (p, q))
    away, moves = (t + FAINT * t.mean() + torch.finfo(t.dtype).eps ** 4 for t in squares)
    return (away / moves).sqrt()


def orthogonal(rows: Tensor, unit: Tensor) -> Tensor:
    """Each row less its part along the row of length 1 in `unit`."""
    return rows - (rows * unit).sum(1, keepdim=True) * unit


def columns_of(layer: ScaledLayer, of: Sequence[Tensor], weight: Tensor) -> Tensor:
    """A factor for each entry of a row of `rows_of`; 1 for the bias.

    Args:
        weight: of the layer.
    """
    each = spread(layer.columns, of, weight).repeat_interleave(weight[0, 0].numel())
    return torch.cat([each, each.new_ones(1)]) if layer.bias else each


def rows_of(tensors: Tensors, layer: ScaledLayer) -> Tensor:
    """The incoming weights of each unit, and its bias as one more: [units, d]."""
    weight, bias = tensors[f"{layer.name}.weight"].flatten(1), tensors.get(f"{layer.name}.bias")
    return weight if bias is None else torch.cat([weight, bias[:, None]], 1)


def named(rows: Tensor, layer: ScaledLayer, like: Tensors) -> Tensors:
    """Undoes `rows_of`."""
    weight = like[f"{layer.name}.weight"]
    if not layer.bias:
        return {f"{layer.name}.weight": rows.reshape(weight.shape)}
    return {f"{layer.name}.weight": rows[:, :-1].reshape(weight.shape), f"{layer.name}.bias": rows[:, -1]}
