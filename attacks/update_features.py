"""What of an update a forest is shown.

    margins   of each weight the mean magnitude by output and by input; of each bias the magnitudes
    plain     its entries as they are
    code      as in the published code of Melis et al. (2019): magnitudes without biases and without convolutions of
              more than 5,000 kernels; of each other kernel the largest, of each dense layer of more than 5,000 weights
              the largest by input; all of it brought to length 1

Few samples teach a forest more by few features that average over many entries than by all entries, of which some
tell the very samples apart. The code standardises each feature over the samples, which no forest sees.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.tensors import flatten

LARGE = 5000
"""Kernels of a convolution, or weights of a dense layer, beyond which the code shows less of it."""


def features(update: Mapping[str, Tensor], kind: str) -> Tensor:
    """One vector; empty where `code` leaves nothing, as of an update of biases alone.

    Args:
        update: tensors in the shapes of a network's parameters, weights [out, in, ...].
        kind: `margins`, `plain` or `code`.
    """
    if kind == "plain":
        return flatten(update)
    if kind == "margins":
        return torch.cat([margins(t.abs()) for t in update.values()])
    shown = {name: pooled(t.abs()) for name, t in update.items() if t.dim() > 1 and not _too_many(t)}
    if not shown:
        return next(iter(update.values())).new_zeros(0)
    return F.normalize(flatten(shown), dim=0)


def margins(magnitudes: Tensor) -> Tensor:
    """Means by output and by input of a weight [out, in, ...], one after the other; a vector as it is."""
    if magnitudes.dim() < 2:
        return magnitudes
    kernels = magnitudes.flatten(2).mean(2) if magnitudes.dim() > 2 else magnitudes
    return torch.cat([kernels.mean(1), kernels.mean(0)])


def pooled(weight: Tensor) -> Tensor:
    """The largest entry of each kernel [out, in]; of a large dense layer that of each input [in]."""
    if weight.dim() > 2:
        return weight.flatten(2).amax(2)
    return weight.amax(0) if weight.numel() > LARGE else weight


def _too_many(weight: Tensor) -> bool:
    return weight.dim() > 2 and weight.shape[0] * weight.shape[1] > LARGE
