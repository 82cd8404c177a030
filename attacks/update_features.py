"""What of an update a classifier is shown.

    plain   its entries as they are
    code    as in the published code of Melis et al. (2019): |entries|; biases left out, and convolutions of more than
            5,000 kernels; each other kernel by its largest entry, each dense layer of more than 5,000 weights by the
            largest weight of every input; all of it brought to length 1

The code standardises each feature over the samples afterwards. A forest splits by order and sees nothing of that.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from fedarena.tensors import flatten

LARGE = 5000
"""Kernels of a convolution, or weights of a dense layer, beyond which the code shows less of it."""


def features(update: Mapping[str, Tensor], kind: str) -> Tensor:
    """One vector; empty where `code` leaves nothing, as of an update of biases alone.

    Args:
        update: tensors in the shapes of a network's parameters, weights [out, in, ...].
        kind: `plain` or `code`.
    """
    if kind == "plain":
        return flatten(update)
    shown = {name: pooled(t.abs()) for name, t in update.items() if t.dim() > 1 and not _too_many(t)}
    if not shown:
        return next(iter(update.values())).new_zeros(0)
    return F.normalize(flatten(shown), dim=0)


def pooled(weight: Tensor) -> Tensor:
    """The largest entry of each kernel [out, in]; of a large dense layer that of each input [in]."""
    if weight.dim() > 2:
        return weight.flatten(2).amax(2)
    return weight.amax(0) if weight.numel() > LARGE else weight


def _too_many(weight: Tensor) -> bool:
    return weight.dim() > 2 and weight.shape[0] * weight.shape[1] > LARGE
