"""The change of a whole network's canonical form if the clients hold a candidate batch.

A client of PBPFL knows C(W_t) and C(W_{t+1}) (`fedarena.defenses.pbpfl.client_readings`), where W = S∘C with S_ij =
s_i/s_j and unknown s > 0, the lengths of `fedarena.models.scaling.positive_scaling.scales`. With g = ∂L/∂C, which it
can calculate for a candidate, and a_i = s_{i,t+1}/s_{i,t}, the server's step W − η ∂L/∂W turns row i into

    C(W_{t+1})_i = (p_i − λ_i q_i)/a_i,    p_ij = a_j C_ij,    q_ij = a_j s_j² g_ij,    λ_i = η/s_i²

In a hidden layer a_i = ‖p_i − λ_i q_i‖; in the output layer λ = η and a = 1; of the input and of biases s_j = a_j = 1.
From the input to the output, λ_i follows from how far p_i has to move,

    λ_i = ‖p_i⊥‖/‖q_i⊥‖,    ⊥: the part orthogonal to C(W_{t+1})_i

which is right for the true batch, up to `FAINT`. So the batch is the only unknown of the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.contracts.simulators import WithOwn
from fedarena.core.tensors import Tensors
from fedarena.defenses.pbpfl.canonical_rows import orthogonal, rows_of
from fedarena.models.scaling.plan import ScaledLayer, ScalingPlan, spread

FAINT = 1e-4
"""This share of the mean over a layer's rows is added to ‖p_i⊥‖² and ‖q_i⊥‖²: a unit that no sample activates shows no
λ, and gets that of the layer. If an addition ties units of several layers, a unit that is inactive in the first layer
has that λ in the others, too, even if it is active there."""

STILL = 1e-5
"""A layer that moves by less than this share of its length counts less: rounding, 1e-7 of it, is a part of the move."""


@dataclass(frozen=True)
class EveryLayer:
    """Simulator: C(W_t) − C(W_{t+1}) when the others hold a candidate batch, each layer divided by its size.

    Attributes:
        mean: the clients' gradient at C(W_t).
        plan: the network. step: η. after: C(W_{t+1}).
        sizes: the length of each layer's change. Without the division, layers with short units would dominate.
    """

    mean: WithOwn
    plan: ScalingPlan
    step: float
    after: Tensors
    sizes: Mapping[str, float]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        moved = change(self.plan, self.mean.others.params, self.mean(x, y), self.step, self.after)
        return sized(moved, self.sizes)


def change(plan: ScalingPlan, c: Tensors, gradient: Tensors, step: float, after: Tensors) -> Tensors:
    """C(W_t) − C(W_{t+1}).

    Args:
        c: C(W_t). gradient: ∂L/∂C there. step: η. after: C(W_{t+1}) as seen, from which the λ are computed.
    """
    squares, growths = ([torch.empty(0)] * len(plan.sizes) for _ in range(2))  # s² and a of every group
    change: Tensors = {}
    for layer in plan.layers:
        weight = gradient[f"{layer.name}.weight"]
        grown, scaled = (columns(layer, of, weight) for of in (growths, squares))
        was, seen = (rows_of(tensors, layer.name) for tensors in (c, after))
        p, q = was * grown, rows_of(gradient, layer.name) * grown * scaled
        if layer is plan.layers[-1]:
            moved = p - step * q
        else:
            parts = []
            for run, pr, qr, sr in zip(layer.rows, *(split(layer, rows) for rows in (p, q, seen)), strict=True):
                assert run.group is not None
                if not len(squares[run.group]):  # of several layers that write to the same units, the first decides
                    ratio = ratios(pr, qr, sr)
                    squares[run.group], growths[run.group] = step / ratio, norms(pr - ratio[:, None] * qr)
                ratio = step / squares[run.group]
                parts.append((pr - ratio[:, None] * qr) / growths[run.group][:, None])
            moved = torch.cat([part.reshape(-1, p.shape[1]) for part in parts])
        change |= named(was - moved, layer, weight.shape)
    return change


def ratios(p: Tensor, q: Tensor, seen: Tensor) -> Tensor:
    """λ [rows]; see the module's docstring and `FAINT`."""
    squares = (orthogonal(t, seen).square().sum(1) for t in (p, q))
    away, moves = (t + FAINT * t.mean() + torch.finfo(t.dtype).eps ** 2 for t in squares)
    return (away / moves).sqrt()


def norms(rows: Tensor) -> Tensor:
    """Lengths [rows]; 1 for a dead unit's, as `fedarena.models.scaling.positive_scaling.scales` has it."""
    squares = rows.square().sum(1)
    return squares.where(squares > 0, 1.0).sqrt()


def sized(tensors: Tensors, sizes: Mapping[str, float]) -> Tensors:
    """Every parameter divided by its layer's size."""
    return {name: t / sizes[name.rpartition(".")[0]] for name, t in tensors.items()}


def sizes_of(plan: ScalingPlan, moved: Tensors, c: Tensors) -> dict[str, float]:
    """The length of every layer's change, but at least `STILL` of the layer's own."""
    return {
        x.name: max(float(rows_of(moved, x.name).norm()), STILL * float(rows_of(c, x.name).norm())) or 1.0
        for x in plan.layers
    }


def columns(layer: ScaledLayer, of: Sequence[Tensor], weight: Tensor) -> Tensor:
    """The factor of each entry of a row of `rows_of`, [d]; 1 for the bias."""
    each = spread(layer.columns, of, weight).repeat_interleave(weight[0, 0].numel())
    return torch.cat([each, each.new_ones(1)]) if layer.bias else each


def split(layer: ScaledLayer, rows: Tensor) -> Sequence[Tensor]:
    """Rows by runs, [channels, spatial·d]: entries with one factor form one row."""
    parts: tuple[Tensor, ...] = rows.split([run.channels * run.spatial for run in layer.rows])
    return [part.reshape(run.channels, -1) for run, part in zip(layer.rows, parts, strict=True)]


def named(rows: Tensor, layer: ScaledLayer, shape: torch.Size) -> Tensors:
    """Undoes `rows_of`; `shape` is the weight's."""
    if not layer.bias:
        return {f"{layer.name}.weight": rows.reshape(shape)}
    return {f"{layer.name}.weight": rows[:, :-1].reshape(shape), f"{layer.name}.bias": rows[:, -1]}
