"""Which parameters of a network belong to which hidden unit, and by what its factors multiply each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.models.scaling.graph import Layer
from fedarena.models.scaling.units import FIXED, Units


@dataclass(frozen=True)
class Run:
    """Neighbouring rows or columns of a layer that belong to the channels of one group, in their order.

    Attributes:
        group: number of the group; None where no factor scales (at the network's input and output), so that r = 1.
        channels: the number of channels of the group, all of which are in the run.
        spatial: rows or columns per channel: entry j of the run belongs to channel ⌊j/spatial⌋. More than 1 after a
            flattening (Eq. 14).
    """

    group: int | None
    channels: int
    spatial: int = 1


@dataclass(frozen=True)
class ScaledLayer:
    """One dense or convolutional layer.

    Attributes:
        name: its parameters are f"{name}.weight" [out, in, *kernel] and, with `bias`, f"{name}.bias" [out].
        rows: the groups whose factors the output channels have, in the order of the weight's rows. A layer has one run
            if its channels are tied to no other channels, or to those of whole layers.
        columns: the groups whose factors the input channels have, in the order of the weight's columns.
        bias: whether it has one. A bias is a weight from a unit that outputs 1, so that its R is r of its row.
        kernel: axes of the weight after the second: 0 for dense layers.
        negated: whether it reads units whose sign changed after their last layer or ReLU, as in cat([h, −h]).
    """

    name: str
    rows: tuple[Run, ...]
    columns: tuple[Run, ...]
    bias: bool
    kernel: int
    negated: bool = False


@dataclass(frozen=True)
class ScalingPlan:
    """How factors r > 0 of hidden units act on a network's parameters without changing its function.

    Attributes:
        sizes: number of channels of every group; groups are numbered in the order in which they first appear.
        layers: in the order of execution; the last is the output layer, dense, and r = 1 for all of its rows.
    """

    sizes: tuple[int, ...]
    layers: tuple[ScaledLayer, ...]

    def factors(self, r: Sequence[Tensor]) -> Tensors:
        """R of every parameter, so that R∘W is the same function as W (PBPFL, Eqs. 7, 13, 14).

            R_ij = r_i^(rows) / r_j^(columns),    of a bias R_i = r_i^(rows)

        Args:
            r: positive, [sizes[g]] for every group g.

        Returns:
            For every parameter a tensor that broadcasts to it: [out, in], [out, in, 1, ...] for convolutions, [out]
            for biases. In the type and on the device of `r`; without any group float32 on the CPU.
        """
        scaling: Tensors = {}
        like = r[0] if r else torch.empty(0)
        for layer in self.layers:
            rows, columns = spread(layer.rows, r, like), spread(layer.columns, r, like)
            weight = rows.unsqueeze(1) / columns
            scaling[f"{layer.name}.weight"] = weight.reshape(*weight.shape, *(1,) * layer.kernel)
            if layer.bias:
                scaling[f"{layer.name}.bias"] = rows
        return scaling


def spread(runs: Sequence[Run], r: Sequence[Tensor], like: Tensor) -> Tensor:
    """The factor of every row or column, [Σ channels·spatial]; 1, of the type of `like`, where no group scales it."""
    return torch.cat(
        [
            like.new_ones(run.channels) if run.group is None else r[run.group].repeat_interleave(run.spatial)
            for run in runs
        ]
    )


def from_layers(layers: Sequence[Layer], units: Units) -> ScalingPlan:
    """Group units: a group is a longest run of channels that always appear together, complete and in order."""
    order: dict[int, int] = {FIXED: 0}  # numbers 1, 2, … in the order of appearance
    for layer in layers:
        for unit in units.table[layer.rows].tolist():
            order.setdefault(unit, len(order))

    def numbered(of: Tensor) -> list[tuple[int, int]]:
        """(unit, how often in a row)."""
        return [(order[unit], len(list(same))) for unit, same in groupby(units.table[of].tolist())]

    sequences = [(numbered(x.rows), numbered(x.columns)) for x in layers]
    starts = _starts([s for pair in sequences for s in pair], len(order))
    sizes = [b - a for a, b in pairwise([*starts, len(order)])]
    group_of = {start: group for group, start in enumerate(starts)}

    def runs(sequence: list[tuple[int, int]]) -> tuple[Run, ...]:
        return tuple(
            Run(group_of[unit], sizes[group_of[unit]], times) if unit != FIXED else Run(None, times)
            for unit, times in sequence
            if unit == FIXED or unit in group_of
        )

    return ScalingPlan(
        tuple(sizes),
        tuple(
            ScaledLayer(
                x.name,
                rows=runs(rows),
                columns=runs(columns),
                bias=x.module.bias is not None,
                kernel=x.module.weight.ndim - 2,
                negated=x.negated,
            )
            for x, (rows, columns) in zip(layers, sequences, strict=True)
        ),
    )


def _starts(sequences: Sequence[Sequence[tuple[int, int]]], count: int) -> list[int]:
    """The units, of 1, …, count − 1, with which a group starts.

    Unit u + 1 is in the group of u if, in all sequences, it stands right behind each u, as often as u, and nowhere
    else.
    """
    starts = {1}
    for sequence in sequences:
        for (a, m), (b, n) in pairwise([(FIXED, 1), *sequence, (FIXED, 1)]):
            if b != a + 1 or m != n:
                starts |= {a + 1, b}
    return sorted(s for s in starts if 0 < s < count)
