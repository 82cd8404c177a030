"""The features of an update that a forest gets.

    slopes    for each weight with a bias, how large the layer's inputs were, relative to own batches; for each other
              tensor its length, relative to own batches
    margins   for each weight the mean magnitudes by output, and their ratio to the bias's; the mean magnitudes by
              input, and each input's share; for each bias the magnitudes
    plain     the entries as they are
    code      as in the published code of Melis et al. (2019): magnitudes without biases and without convolutions of
              more than 5,000 kernels; the largest magnitude of each other kernel; for each dense layer of more than
              5,000 weights the largest by input; all of it scaled to length 1

With few samples, a forest learns more from few features, each a mean over many entries, than from all entries, some of
which distinguish single samples. The gradient of a dense layer is ∂L/∂W = Σ_j δ_j x_jᵀ and that of its bias Σ_j δ_j, so
that every output's ratio is a mean of the inputs x_j. All outputs together give one by least squares,

    x̂ = Σ_i b_i W_i / Σ_i b_i²        W_i the gradient of output i's weights, b_i that of its bias

and its slope on the mean m of own batches' x̂ is ⟨x̂, m⟩/⟨m, m⟩: one number, with its sign. A map of inputs that is the
identity in the mean, such as a sketch and its expansion, preserves it, while entries and magnitudes become noise.
The ratios of magnitudes by output show how large the layer's inputs were, for any errors δ_j. The shares by input show
which inputs were large. They are given as features because a forest compares one feature at a time and computes no
ratios. The code standardises each feature over the samples, which has no effect on a forest.
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
"""The number of kernels of a convolution, or of weights of a dense layer, above which `code` has fewer features."""

LARGEST = 1e30
"""The largest ratio; larger ones are cut off, because single precision ends soon after."""


Reader = Callable[[Mapping[str, Tensor]], Tensor]
"""An update's features."""


def reader(kind: str, own: Sequence[Mapping[str, Tensor]]) -> Reader:
    """The function that computes features of a round's updates; `own` are those of the attacker's batches."""
    return Slopes(own) if kind == "slopes" else partial(features, kind=kind)


def features(update: Mapping[str, Tensor], kind: str) -> Tensor:
    """The features as one vector; empty if `code` leaves nothing, as for an update of biases alone.

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
    """Computes slopes of updates, relative to own updates of the same round."""

    def __init__(self, own: Sequence[Mapping[str, Tensor]]) -> None:
        shown = [_shown(update) for update in own]
        self.usual = {name: torch.stack([x[name] for x in shown]).mean(0) for name in shown[0]}

    def __call__(self, update: Mapping[str, Tensor]) -> Tensor:
        """⟨x̂, m⟩/⟨m, m⟩ of each tensor [tensors], 0 if own batches show nothing."""
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
    """The margins of a tensor: of a vector, itself; of a weight [out, in, ...], means by output and input, ratios."""
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
