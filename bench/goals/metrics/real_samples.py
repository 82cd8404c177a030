"""Real samples that guesses are compared with: training and held-out ones, as a problem stores them."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

COPY = 1e-5
"""Two inputs a and b are copies where ‖a − b‖² is at most this share of ‖a‖² + ‖b‖², or of 10: distances are computed
in single precision."""


class Pool(Protocol):
    """Training samples as stored; `fedarena.problem.problem.Problem` has them."""

    @property
    def x(self) -> Tensor:
        """Inputs [N, *input_shape]."""

    @property
    def y(self) -> Tensor:
        """Labels [N]."""

    @property
    def scale(self) -> float:
        """The stored value that means 1.0."""


class Samples(Pool, Protocol):
    """Training and held-out samples."""

    @property
    def x_test(self) -> Tensor:
        """Held-out inputs."""

    @property
    def y_test(self) -> Tensor:
        """Their labels."""


def nearest_others(originals: Tensor, pool: Pool) -> tuple[Tensor, Tensor]:
    """For each original [n, *input_shape] in [0, 1] the training sample with the least squared distance that is no copy
    of it, in [0, 1], and that distance [n]; infinite where all are copies."""
    a = originals.float().flatten(1)
    least = torch.full((len(a),), torch.inf, device=a.device)
    index = torch.zeros(len(a), dtype=torch.int64, device=a.device)
    at = 0
    for part in torch.split(pool.x, 4096):
        b = part.float().flatten(1) / pool.scale
        lengths = a.square().sum(1)[:, None] + b.square().sum(1)[None]
        distances = lengths - 2 * a @ b.T
        closest = distances.masked_fill(distances <= COPY * lengths.clamp_min(10), torch.inf).min(1)
        nearer = closest.values < least
        least = torch.where(nearer, closest.values, least)
        index = torch.where(nearer, closest.indices + at, index)
        at += len(part)
    return pool.x[index].double() / pool.scale, least
