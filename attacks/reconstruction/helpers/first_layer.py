"""What the first dense layer shows of its input: with a bias, each row of its gradient is a multiple of one vector.

For one sample with input x the first layer W x + b has ∂L/∂W_i = δ_i xᵀ and ∂L/∂b_i = δ_i, so that
x = ∂L/∂W_i / ∂L/∂b_i for every unit i with δ_i ≠ 0. A protocol turns it into a multiple of another vector that is
affine in x,

    rows [Γ_i, δ_i] = δ_i [A x + c, 1]

with A = I and c = 0 for plain gradients, A = Sᵀ where weights are sketched, and c ≠ 0 where a network shifts its
inputs. A party that can play the protocol finds A and c by playing it on single pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.kept_entries import without_gaps
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.view import View
from fedarena.core.tensors import Tensors

EXACT = 1e-3
"""Relative error up to which a play counts as affine: the error of float32 after several steps and products."""

PLAYS = 64
"""Plays that are run as one batch."""

ALIKE = 1e-8
"""1 − cosine up to which two rows count as multiples of the same vector."""

POWERS = 16
"""Steps of power iteration, at most: then a decomposition is left."""

SETTLED = 1e-12
"""Change of a unit vector up to which power iteration has settled."""

EQUAL = 1e-4
"""Relative difference up to which multiples of the same vector count as equal."""


@dataclass(frozen=True)
class Affine:
    """How the ratio of rows and bias depends on one sample: A x + c.

    Attributes:
        a: A [s, d] in double precision; None: the identity. c: [s].
    """

    a: Tensor | None
    c: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """[..., d] → [..., s]."""
        return (x if self.a is None else x @ self.a.T) + self.c


@dataclass(frozen=True)
class FirstLayer:
    """The names of its gradient's parts in an observation's target."""

    weight: str
    bias: str

    def rows(self, tensors: Tensors) -> Tensor:
        """[Γ, δ], [..., units, s + 1], in double precision."""
        return torch.cat([tensors[self.weight], tensors[self.bias].unsqueeze(-1)], -1).double()

    def filled(self, tensors: Tensors, kept: Tensors | None) -> Tensor:
        """`rows`, of which a protocol left entries out (`kept` is 0), if one sample is behind them.

        A row whose bias was left out is set to 0. The others are multiples of one vector, whose entry j is
        Σ_i δ_i Γ_ij/Σ_i δ_i² over the rows that have it, and fills it in the others. What no row has stays 0.
        """
        rows = self.rows(tensors)
        if kept is None:
            return rows
        mask = self.rows(kept)
        b = rows[:, -1:]
        weight = (b.square() * mask[:, :-1]).sum(0)
        vector = (b * rows[:, :-1]).sum(0) / weight.clamp_min(torch.finfo(rows.dtype).tiny)
        return b * torch.cat([vector, vector.new_ones(1)])


def first_layer(target: Tensors) -> FirstLayer | str:
    """The first layer among what was seen, or why it cannot be read."""
    name = next((n for n in target if n.endswith(".weight")), None)
    if name is None:
        return "what was seen is no gradient of layers, of which the first could be read"
    bias = name.removesuffix("weight") + "bias"
    if target[name].dim() < 2:
        return "what was seen of the first layer are numbers of its gradient, and not its rows"
    if target[name].dim() > 2:
        return "the first layer is convolutional: its gradient sums over positions, and shows no input by itself"
    if bias not in target:
        return "the first layer has no bias, by whose gradient its rows could be divided"
    return FirstLayer(name, bias)


def ratio(rows: Tensor) -> Tensor:
    """A x + c [..., s] from exact rows [..., units, s + 1], by least squares: Σ_i δ_i Γ_i / Σ_i δ_i²."""
    b = rows[..., -1]
    return torch.einsum("...u,...us->...s", b, rows[..., :-1]) / b.square().sum(-1, keepdim=True)


def strongest(rows: Tensor) -> tuple[Tensor, float]:
    """A x + c [s] from noisy rows [units, s + 1], and the variance of its entries.

    The likeliest single vector under equal noise in all entries: the right singular vector of the largest singular
    value, scaled so that the bias's entry is 1. The variance is the noise's, by what the other singular values hold,
    over Σ_i δ_i².
    """
    direction, size, rest = _dominant(rows) or _decomposed(rows)
    units, columns = rows.shape
    noise = rest / max(1, (units - 1) * (columns - 1))
    strength = (size * float(direction[-1])) ** 2
    return direction[:-1] / direction[-1], noise / max(strength, torch.finfo(torch.float64).tiny)


def _decomposed(rows: Tensor) -> tuple[Tensor, float, float]:
    """The right singular vector of the largest singular value, this value, and the sum of the squares of the others."""
    _, sizes, right = torch.linalg.svd(rows, full_matrices=False)
    return right[0], float(sizes[0]), float(sizes[1:].square().sum())


def _dominant(rows: Tensor) -> tuple[Tensor, float, float] | None:
    """`_decomposed` by power iteration, v ← RᵀRv/‖RᵀRv‖, which takes few steps where little noise is on the rows.

    None where it does not settle, or where another singular value may be larger: the squares of all others add up to
    ‖R − R v vᵀ‖², and none is larger if that is less than ‖R v‖².
    """
    v = F.normalize(rows[rows.square().sum(1).argmax()], dim=0)
    for _ in range(POWERS):
        before, v = v, F.normalize((rows @ v) @ rows, dim=0)
        if float((v - before).norm()) <= SETTLED:
            along = rows @ v
            size, rest = float(along.norm()), float((rows - torch.outer(along, v)).square().sum())
            return (v, size, rest) if rest < size**2 else None
    return None


def play(view: View, seen: Observation, layer: FirstLayer, x: Tensor) -> Tensor:
    """Rows [units, s + 1] that would have been seen of copies of one sample [d], labelled 0."""
    like = seen.target[layer.weight]
    images = x.to(like).reshape(view.input_shape).expand(seen.images, *view.input_shape)
    label = F.one_hot(torch.tensor(0), view.n_classes).to(like) if view.n_classes else like.new_zeros(())
    return layer.rows(without_gaps(seen.simulate)[0](images, label.expand(seen.images, *label.shape)))


def likely(rows: Tensor, n: int) -> Iterator[Tensor]:
    """What the n rows [units, d + 1] with the largest biases would show of samples [d], if A were the identity.

    For some unit of a layer with large thresholds no random sample may be above them. These were, if they are samples.
    """
    for row in rows[rows[:, -1].abs().argsort(descending=True)[:n]]:
        yield (row[:-1] / row[-1]).nan_to_num(0.5).clamp(0, 1)


def affine(view: View, seen: Observation, layer: FirstLayer, probes: Iterable[Tensor]) -> Affine | str:
    """A and c by playing the protocol, or why there are none.

    Args:
        probes: samples [d]; with the first that leaves a trace the result is checked.
    """
    for probe in probes:
        rows = play(view, seen, layer, probe)
        seen_of_probe, probe = ratio(rows), probe.double()
        if bool(torch.isfinite(seen_of_probe).all()):
            break
    else:
        return "no sample played through the protocol leaves a trace in the first layer's bias"
    fitted = rows[:, -1:] * torch.cat([seen_of_probe, seen_of_probe.new_ones(1)])
    if _off(fitted, rows) > EXACT:
        if isinstance(seen.simulate, PlainGradient):
            return (
                "the first layer is given several parts of a sample, such as tokens or positions, and its gradient "
                "shows no single one of them"
            )
        return (
            "one sample played through the protocol shows more than one vector in the first layer: what is seen of it "
            "is not its gradient alone: the momentum of earlier rounds is in it, or the layer is not dense, or it is a "
            "canonical form, in which a part along each unit's weights is gone"
        )
    if seen_of_probe.shape == probe.shape and _off(seen_of_probe, probe) <= EXACT:
        return Affine(None, torch.zeros_like(probe))
    with torch.no_grad():
        start, of_start = torch.zeros_like(probe), ratio(play(view, seen, layer, torch.zeros_like(probe)))
        if not bool(torch.isfinite(of_start).all()):  # no unit is active for a dark image, and some are for the probe
            start, of_start = probe, seen_of_probe
        many = vmap(lambda x: ratio(play(view, seen, layer, x)), chunk_size=PLAYS)
        matrix = (many(start + torch.eye(len(probe)).to(probe)) - of_start).T
        shown = Affine(matrix, of_start - matrix @ start)
    if not _off(shown(probe), seen_of_probe) <= EXACT:
        return "what the first layer shows is not affine in a sample, by playing the protocol"
    return shown


def apart(rows: Tensor, n: int) -> tuple[list[Tensor], Tensor]:
    """Groups of rows [units, s + 1] that are multiples of one vector each, and the rows that agree with no other.

    A ReLU unit that is active for one sample of a batch alone has a row that is a multiple of that sample's; two units
    that mix samples agree by accident only, or because they have the same weights in the next layer. Then their rows
    are equal, which shows nothing, and one of them stands among the rows that agree with no other.

    Returns:
        At most n groups, the largest first, of two rows or more; the remaining rows that are not 0.
    """
    rows = rows[rows[:, -1].abs() > 1e-6 * rows[:, -1].abs().max()]
    groups: list[Tensor] = []
    equal: list[Tensor] = []
    while len(groups) < n and len(rows):
        unit = F.normalize(rows, dim=1)
        alike = (unit @ unit.T).abs() > 1 - ALIKE
        best = int(alike.sum(1).argmax())
        if int(alike[best].sum()) < 2:
            break
        group, rows = rows[alike[best]], rows[~alike[best]]
        if bool(((group[:, -1] - group[0, -1]).abs() <= EQUAL * group[0, -1].abs()).all()):
            equal.append(group[:1])
        else:
            groups.append(group)
    return groups, torch.cat([*equal, rows])


def _off(a: Tensor, b: Tensor) -> float:
    """‖a − b‖/‖b‖."""
    return float((a - b).norm() / b.norm().clamp_min(torch.finfo(b.dtype).tiny))
