"""What reconstructions are held against, for tests of attacks and of the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.goals.metrics.identification import Decoys, Truth
from fedarena.goals.metrics.reconstruction import Victims


@dataclass(frozen=True)
class StoredSamples:
    """Training and held-out samples with their labels, as a problem has them."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    scale: float = 1.0


def victims(truths: Sequence[Truth], others: Tensor | None = None, threshold: float | None = None) -> Victims:
    """The victims, each among the same `others` in [0, 1] (by default 9 of noise), with the threshold that is usual
    for small pictures (SSIM 0.9), or for rows of a table (MSE 0.001)."""
    shape = truths[0][0].shape[1:]
    decoys = torch.rand(9, *shape, generator=Rng(99).torch()) if others is None else others
    count = sum(len(x) for x, _ in truths)
    usual = 1e-3 if len(shape) == 1 else 0.9
    return Victims(
        truths=tuple(truths),
        decoys=Decoys((decoys,) * count, (len(decoys),) * count, 1.0),
        threshold=usual if threshold is None else threshold,
    )
