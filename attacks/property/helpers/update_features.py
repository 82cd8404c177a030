"""What of an update a forest is shown.

    slopes    of each weight with a bias how large the layer's inputs were, in units of what own batches give; of each
              other tensor its length, in the same units
    margins   of each weight the mean magnitude by output, and over the bias's; by input, and each input's share; of
              each bias the magnitudes
    plain     its entries as they are
    code      as in the published code of Melis et al. (2019): magnitudes without biases and without convolutions of
              more than 5,000 kernels; of each other kernel the largest, of each dense layer of more than 5,000 weights
              the largest by input; all of it brought to length 1

Few samples teach a forest more by few features, each of which averages over many entries, than by all entries, some of
which tell one sample from another. A gradient of a dense layer is ∂L/∂W = Σ_j δ_j x_jᵀ and that of its bias Σ_j δ_j, so
that every output's ratio is a mean of the inputs x_j. All outputs together give one by least squares,

    x̂ = Σ_i b_i W_i / Σ_i b_i²        W_i the gradient of output i's weights, b_i that of its bias

and its slope on the mean m of own batches' x̂ is ⟨x̂, m⟩/⟨m, m⟩: one number, signs and all, which a map of inputs that
is the identity in the mean, such as a sketch and its expansion, leaves standing where entries and magnitudes are noise.
By output the ratio of magnitudes says how large the layer's inputs were, whatever the errors δ_j, and the shares by
input which inputs were large: a forest, which compares one feature at a time, makes no ratios. The code standardises
each feature over the samples, which no forest sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.first_layer import ratio
from fedarena.core.tensors import flatten

LARGE = 5000
"""Kernels of a convolution, or weights of a dense layer, beyond which the code shows less of it."""

LARGEST = 1e30
"""Ratios beyond are cut off: single precision ends soon after."""


Reader = Callable[[Mapping[str, Tensor]], Tensor]
"""An update's features."""


def reader(kind: str, own: Sequence[Mapping[str, Tensor]]) -> Reader:
    """Of updates of a round, of which `own` are the attacker's."""
    return Slopes(own) if kind == "slopes" else partial(features, kind=kind)


def features(update: Mapping[str, Tensor], kind: str) -> Tensor:
    """One vector; empty where `code` leaves nothing, as of an update of biases alone.

    Args:
        update: tensors in the shapes of a network's parameters, weights [out, in, ...].
        kind: `margins`, `plain` or `code`; for slopes see `Slopes`.
    """
    if kind == "plain":
        return flatten(update)
    if kind == "margins":
        return torch.cat([part for name, t in update.items() for part in margins(update, name, t.abs())])
    shown = {name: pooled(t.abs()) for name, t in update.items() if t.dim() > 1 and not _too_many(t)}
    if not shown:
        return next(iter(update.values())).new_zeros(0)
    return F.normalize(flatten(shown), dim=0)


class Slopes:
    """Reads updates in units of own ones of the same round."""

    def __init__(self, own: Sequence[Mapping[str, Tensor]]) -> None:
        shown = [_shown(update) for update in own]
        self.usual = {name: torch.stack([x[name] for x in shown]).mean(0) for name in shown[0]}

    def __call__(self, update: Mapping[str, Tensor]) -> Tensor:
        """[tensors]: ⟨x̂, m⟩/⟨m, m⟩ of each, 0 where own batches show nothing."""
        seen = _shown(update)
        tiny = torch.finfo(torch.float64).tiny
        slopes = [(seen[name] @ m) / (m @ m).clamp(min=tiny) for name, m in self.usual.items()]
        return torch.stack(slopes).float()


def _shown(update: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """x̂ [in] of each weight with a bias, the length [1] of each other tensor."""
    features, used = {}, set()
    for name, t in update.items():
        bias = name.removesuffix("weight") + "bias"
        if t.dim() > 1 and bias in update:
            kernels = t.flatten(2).mean(2) if t.dim() > 2 else t
            features[name] = ratio(torch.cat([kernels, update[bias].unsqueeze(1)], 1).double()).nan_to_num(0.0)
            used |= {name, bias}
    return features | {n: torch.linalg.vector_norm(t.double()).reshape(1) for n, t in update.items() if n not in used}


def margins(update: Mapping[str, Tensor], name: str, magnitudes: Tensor) -> list[Tensor]:
    """Of one tensor: a vector as it is; of a weight [out, in, ...] means by output and by input, and ratios."""
    if magnitudes.dim() < 2:
        return [magnitudes]
    kernels = magnitudes.flatten(2).mean(2) if magnitudes.dim() > 2 else magnitudes
    tiny, by_output, by_input = torch.finfo(magnitudes.dtype).tiny, kernels.mean(1), kernels.mean(0)
    margins = [by_output, by_input, by_input / by_input.mean().clamp(min=tiny)]
    bias = update.get(name.removesuffix("weight") + "bias")
    return margins if bias is None else [*margins, (by_output / bias.abs().clamp(min=tiny)).clamp(max=LARGEST)]


def pooled(weight: Tensor) -> Tensor:
    """The largest entry of each kernel [out, in]; of a large dense layer that of each input [in]."""
    if weight.dim() > 2:
        return weight.flatten(2).amax(2)
    return weight.amax(0) if weight.numel() > LARGE else weight


def _too_many(weight: Tensor) -> bool:
    return weight.dim() > 2 and weight.shape[0] * weight.shape[1] > LARGE
