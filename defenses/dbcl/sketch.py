"""CountSketch: a random d×s matrix S with at most one ±1 in each row, never built explicitly.

    X S      adds up the signed columns of X that share a bucket      `apply`
    Y Sᵀ     gives every coordinate its bucket's signed value         `expand`

Sᵀ S = diag(bucket sizes), and E[S Sᵀ] = I if no coordinate is dropped. Two distributions of the buckets:

    countsketch  every coordinate falls into a uniform bucket (Charikar et al. 2004; DBCL's Section 2)
    balanced     a random permutation cut into s buckets of exactly q = ⌊d/s⌋, so Sᵀ S = q·I (the DBCL
                 authors' code); the d − q·s coordinates left over are dropped for the round, so that
                 E[S Sᵀ] = (q·s/d)·I; with s > d/2 this is a sample of s coordinates
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

DISTRIBUTIONS = ("countsketch", "balanced")


@dataclass(frozen=True)
class Sketch:
    """One S.

    Attributes:
        bucket: [d], the column of each row's entry (int64).
        sign: [d], the entry: ±1, or 0 for a dropped coordinate.
        size: s.
    """

    bucket: Tensor
    sign: Tensor
    size: int

    def apply(self, x: Tensor) -> Tensor:
        """X S: [..., d] → [..., s]."""
        out = x.new_zeros(*x.shape[:-1], self.size)
        return out.index_add(-1, self.bucket, x * self.sign.to(x))

    def expand(self, y: Tensor) -> Tensor:
        """Y Sᵀ: [..., s] → [..., d]."""
        return y.index_select(-1, self.bucket) * self.sign.to(y)

    adjoint = expand

    def to(self, device: torch.device) -> Sketch:
        """The same S on another device."""
        if self.bucket.device == device:
            return self
        return Sketch(self.bucket.to(device), self.sign.to(device), self.size)

    def counts(self) -> Tensor:
        """diag(Sᵀ S): how many coordinates each bucket holds, [s]."""
        return self.sign.new_zeros(self.size).index_add(0, self.bucket, self.sign.square())

    def dense(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """S itself, [d, s]; for tests and small problems."""
        return self.expand(torch.eye(self.size, dtype=dtype)).T.contiguous()


@lru_cache(maxsize=4096)
def draw(seed: int, layer: int, d: int, s: int, distribution: str) -> Sketch:
    """The S of one layer, from the round's 4-byte seed. Both server and clients call this function.

    Args:
        seed: the broadcast seed ψ. layer: index of the layer (each has a sketch of its own).
        d, s: shape of S. distribution: one of `DISTRIBUTIONS`.
    """
    generator = torch.Generator().manual_seed((seed << 16) + layer)
    sign = torch.randint(0, 2, (d,), generator=generator).mul_(2).sub_(1).float()
    if distribution == "countsketch":
        return Sketch(torch.randint(0, s, (d,), generator=generator), sign, s)
    filled = d // s * s
    order = torch.randperm(d, generator=generator)
    bucket = torch.zeros(d, dtype=torch.int64)
    bucket[order[:filled]] = torch.arange(filled) % s
    sign[order[filled:]] = 0
    return Sketch(bucket, sign, s)
