"""The random d×s matrix S of one layer and round, and the four distributions it may be drawn from.

    X S      the sketch                        `apply`
    Y Sᵀ     back to d coordinates             `expand`
    Y S†     the same by least squares         `pseudo_inverse`

    countsketch  every coordinate falls into a uniform bucket and gets a random sign (Charikar et al. 2004; DBCL's
                 Section 2)
    balanced     a random permutation cut into s buckets of exactly q = ⌊d/s⌋, so Sᵀ S = q·I (the DBCL
                 authors' code); the d − q·s coordinates left over are dropped for the round, so that
                 E[S Sᵀ] = (q·s/d)·I; with s > d/2 this is a sample of s coordinates
    uniform      s coordinates drawn without replacement, times √(d/s) (DBCL's Section 2): the layer then computes
                 X S Sᵀ Wᵀ, dropout of its inputs with one mask for all samples, which keeps exactly s
    gaussian     entries N(0, 1/s), independent

E[S Sᵀ] = I, unless coordinates are dropped. With ‖·‖ Frobenius's norm, E‖W S Sᵀ − W‖²/‖W‖² is (d − 1)/s for
countsketch, q − 1 for balanced (if s divides d), d/s − 1 for uniform and (d + 1)/s for gaussian.

Every S factors as Q R, where Q has orthogonal columns: R = c·I where rows of S have one entry ±c at most, and an upper
triangle for gaussian. Pseudo-inverses and local training (`fedarena.defenses.dbcl.local_training`) need the factors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Sketch(ABC):
    """One S = Q R, [d, s]."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """d."""

    @property
    @abstractmethod
    def size(self) -> int:
        """s."""

    @abstractmethod
    def apply(self, x: Tensor) -> Tensor:
        """X S: [..., d] → [..., s]."""

    @abstractmethod
    def expand(self, y: Tensor) -> Tensor:
        """Y Sᵀ: [..., s] → [..., d]."""

    @abstractmethod
    def to(self, device: torch.device) -> Sketch:
        """The same S on another device."""

    @abstractmethod
    def counts(self) -> Tensor:
        """diag(Qᵀ Q), [s]."""

    @abstractmethod
    def times_r(self, y: Tensor, transposed: bool = False, inverse: bool = False) -> Tensor:
        """Y R, Y Rᵀ, Y R⁻¹ or Y R⁻ᵀ: [..., s] → [..., s]."""

    @abstractmethod
    def squared_norm(self) -> float:
        """‖S‖²."""

    def adjoint(self, g: Tensor) -> Tensor:
        """`expand`, under the name that a map on a layer's input gives it."""
        return self.expand(g)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """Y S†: [..., s] → [..., d]. A column of S without entries adds nothing."""
        inner = self.times_r(y, inverse=True) / self.counts().clamp(min=1).to(y)
        return self.expand(self.times_r(inner, transposed=True, inverse=True))

    def dense(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """S itself, [d, s]; for tests and small problems."""
        return self.expand(torch.eye(self.size, dtype=dtype)).T.contiguous()


@dataclass(frozen=True)
class BucketSketch(Sketch):
    """An S with at most one entry in each row, ±c; never built explicitly. R = c·I.

    Attributes:
        bucket: [d], the column of each row's entry (int64).
        sign: [d], ±1, or 0 for a dropped coordinate: the entries of Q.
        columns: s.
        scale: c.
    """

    bucket: Tensor
    sign: Tensor
    columns: int
    scale: float = 1.0

    @property
    def coordinates(self) -> int:
        return self.bucket.numel()

    @property
    def size(self) -> int:
        return self.columns

    def apply(self, x: Tensor) -> Tensor:
        out = x.new_zeros(*x.shape[:-1], self.columns)
        return self.times_r(out.index_add(-1, self.bucket, x * self.sign.to(x)))

    def expand(self, y: Tensor) -> Tensor:
        return self.times_r(y).index_select(-1, self.bucket) * self.sign.to(y)

    def to(self, device: torch.device) -> Sketch:
        if self.bucket.device == device:
            return self
        return BucketSketch(self.bucket.to(device), self.sign.to(device), self.columns, self.scale)

    def counts(self) -> Tensor:
        """How many coordinates each bucket holds, [s]."""
        return self.sign.new_zeros(self.columns).index_add(0, self.bucket, self.sign.square())

    def times_r(self, y: Tensor, transposed: bool = False, inverse: bool = False) -> Tensor:
        if self.scale == 1:
            return y
        return y / self.scale if inverse else y * self.scale

    def squared_norm(self) -> float:
        return self.scale**2 * float(self.counts().double().sum())


@dataclass(frozen=True)
class GaussianSketch(Sketch):
    """An S of independent normal entries. Q is orthonormal, and R triangular.

    Attributes:
        drawn: seed, layer, d and s: S is drawn from these.
        matrix: S, [d, s].
    """

    drawn: tuple[int, int, int, int]
    matrix: Tensor

    @property
    def coordinates(self) -> int:
        return self.matrix.shape[0]

    @property
    def size(self) -> int:
        return self.matrix.shape[1]

    def apply(self, x: Tensor) -> Tensor:
        return x @ self.matrix.to(x)

    def expand(self, y: Tensor) -> Tensor:
        return y @ self.matrix.to(y).T

    def to(self, device: torch.device) -> Sketch:
        return self if self.matrix.device == device else GaussianSketch(self.drawn, self.matrix.to(device))

    def counts(self) -> Tensor:
        return self.matrix.new_ones(self.size)

    def times_r(self, y: Tensor, transposed: bool = False, inverse: bool = False) -> Tensor:
        r = torch.from_numpy(_triangle(*self.drawn)).to(y)
        r = r.T if transposed else r
        return torch.linalg.solve_triangular(r, y, upper=not transposed, left=False) if inverse else y @ r

    def squared_norm(self) -> float:
        return float(self.matrix.double().square().sum())


def draw(seed: int, layer: int, d: int, s: int, distribution: str) -> Sketch:
    """The S of one layer, from the round's 4-byte seed. Both server and clients call this function.

    Args:
        seed: the broadcast seed ψ. layer: index of the layer (each has a sketch of its own).
        d, s: shape of S. distribution: one of `DISTRIBUTIONS`.
    """
    return DISTRIBUTIONS[distribution](seed, layer, d, s)


def _generator(seed: int, layer: int) -> torch.Generator:
    return torch.Generator().manual_seed((seed << 16) + layer)


def _signs(d: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (d,), generator=generator).mul_(2).sub_(1).float()


@lru_cache(maxsize=4096)
def _countsketch(seed: int, layer: int, d: int, s: int) -> Sketch:
    generator = _generator(seed, layer)
    sign = _signs(d, generator)
    return BucketSketch(torch.randint(0, s, (d,), generator=generator), sign, s)


@lru_cache(maxsize=4096)
def _balanced(seed: int, layer: int, d: int, s: int) -> Sketch:
    generator, filled = _generator(seed, layer), d // s * s
    sign, order = _signs(d, generator), torch.randperm(d, generator=generator)
    bucket = torch.zeros(d, dtype=torch.int64)
    bucket[order[:filled]] = torch.arange(filled) % s
    sign[order[filled:]] = 0
    return BucketSketch(bucket, sign, s)


@lru_cache(maxsize=4096)
def _uniform(seed: int, layer: int, d: int, s: int) -> Sketch:
    kept = torch.randperm(d, generator=_generator(seed, layer))[:s]
    bucket, sign = torch.zeros(d, dtype=torch.int64), torch.zeros(d)
    bucket[kept], sign[kept] = torch.arange(s), 1.0
    return BucketSketch(bucket, sign, s, (d / s) ** 0.5)


def _gaussian(seed: int, layer: int, d: int, s: int) -> Sketch:
    """A copy of the cached entries, so that a client's memory counts them."""
    return GaussianSketch((seed, layer, d, s), torch.from_numpy(_normals(seed, layer, d, s)).clone())


@lru_cache(maxsize=32)
def _normals(seed: int, layer: int, d: int, s: int) -> NDArray[Any]:
    """S by numpy, whose draws work within `torch.func.vmap`; few are cached, since each has d·s entries."""
    entries = np.random.default_rng((seed << 16) + layer).standard_normal((d, s), dtype=np.float32)
    return entries / np.float32(s**0.5)


@lru_cache(maxsize=32)
def _triangle(seed: int, layer: int, d: int, s: int) -> NDArray[Any]:
    """R of S = Q R, in double precision."""
    entries: NDArray[Any] = _normals(seed, layer, d, s).astype(np.float64)
    return np.linalg.qr(entries).R


DISTRIBUTIONS: dict[str, Callable[[int, int, int, int], Sketch]] = {
    "countsketch": _countsketch,
    "balanced": _balanced,
    "uniform": _uniform,
    "gaussian": _gaussian,
}
