"""Output layers at which the gradient below them is that of a single sample, or nearly so.

The rows of all classes but t are set to 0, and the row of t is w. Below the output layer, a sample x with features φ(x)
and class y then adds to the gradient

    (p_t(x) − [y = t]) · wᵀ ∂φ/∂x…,      p_t = softmax(z_t, 0, …, 0)_t,   z_t = wᵀφ(x) + b

so that its share is r = p_t where y ≠ t and r = 1 − p_t where y = t. Two cuts make most shares vanish:

    class     b = −1000: p_t = 0. All samples of class t have the share 1, and all others 0.
    feature   w = s·u and b = −s·θ, where u separates class t from the others, by ridge regression on the attacker's own
              samples. Shares fall off as e^(−s·|uᵀφ − θ|) on the right side of θ, and are 1 on the wrong side. With a
              large s the sample that is nearest to θ or beyond it stands alone.

The server plays both on draws from its own samples, and takes the cut at which one sample stands alone most often. Its
own samples are scored by the regression that leaves them out, in closed form. A secure sum takes no value beyond its
limit and rounds the others. So a cut is ruled out at which three samples with a share of 1 would exceed the limit, and
what rounding hides does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

NEVER = -1000.0
"""The output of class t for all samples under a class cut; the others' is 0 (Wen et al.: biases of 1000)."""
RIDGE = 1e-2
"""Weight of the ridge, as a share of the mean squared length of standardised features."""
SHARPNESS = (4.0, 16.0, 64.0, 256.0)
"""s, where the two sides of the regression are −1 and 1."""
THRESHOLDS = 41
"""How many θ are tried, from −1.5 to 1.5."""
DRAWS = 400
"""Batches that are drawn for each cut."""
ALONE = 0.95
"""The part of all shares from which a sample counts as alone."""
DIGITS = 1000.0
"""How many roundings the largest entry has to exceed."""
WRONG = 3
"""How many samples on the wrong side of a threshold have to fit below the limit together."""


@dataclass(frozen=True)
class Cut:
    """The row of a class in the output layer; the other rows are 0.

    Attributes:
        target: t. row: w [features]. bias: b. alone: in which part of the draws one sample stands alone.
    """

    target: int
    row: Tensor
    bias: float
    alone: float


@dataclass(frozen=True)
class Direction:
    """u and its constant for one class, fitted to ±1, and the scores [m] of samples that were left out of the fit."""

    u: Tensor
    constant: float
    scores: Tensor


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on the same features for any sides.

    Attributes:
        mean, spread: of the features [d]. z: the standardised ones and a 1 [m, d + 1]. gram: z zᵀ. inverse: that of the
            Gram matrix and the ridge, [m, m].
    """

    mean: Tensor
    spread: Tensor
    z: Tensor
    gram: Tensor
    inverse: Tensor

    @classmethod
    def on(cls, features: Tensor) -> Ridge:
        """On features [m, d]."""
        mean, spread = features.mean(0), features.std(0).clamp_min(1e-6)
        z = F.pad((features - mean) / spread, (0, 1), value=1.0)
        gram = z @ z.T
        return cls(
            mean, spread, z, gram, torch.linalg.inv(gram + RIDGE * gram.diagonal().mean() * torch.eye(len(z)).to(z))
        )

    def direction(self, side: Tensor) -> Direction:
        """The direction fitted to sides [m]; scores are y − (y − ŷ)/(1 − H_ii)."""
        dual = self.inverse @ side
        hat = (self.gram * self.inverse).sum(1)  # the diagonal of a product of symmetric matrices
        scores = side - (side - self.gram @ dual) / (1 - hat).clamp_min(1e-6)
        weights = self.z.T @ dual
        u = weights[:-1] / self.spread
        return Direction(u, float(weights[-1] - u @ self.mean), scores)


def shares(z: Tensor, member: Tensor, n_classes: int) -> Tensor:
    """r of samples [m] from their outputs z_t, in single precision as clients compute it."""
    outputs = F.pad(z.float()[:, None], (0, n_classes - 1))
    return (outputs.softmax(1)[:, 0] - member.float()).abs()


@dataclass(frozen=True)
class Wire:
    """How large a gradient may be.

    Attributes:
        size: row w → the largest entry of ∂(wᵀφ)/∂W of a sample. limit: the largest value that can be sent.
        rounding: the standard deviation of what rounding adds.
    """

    size: Callable[[Tensor], float] = lambda row: 1.0
    limit: float = math.inf
    rounding: float = 0.0

    def sent(self, size: float, n: int) -> bool:
        """Whether the gradient can surely be sent, if that of a share of 1 of n samples has this size."""
        return WRONG * size <= n * self.limit

    def read(self, largest: Tensor) -> Tensor:
        """Whether gradients with these largest entries [draws] can be read."""
        return largest > max(1e-30, DIGITS * self.rounding)


def alone(share: Tensor, draws: Tensor, size: float = 1.0, wire: Wire | None = None) -> float:
    """In which part of the draws [draws, n] one sample has nearly all of the shares [m], and it can be read.

    Args:
        size: of the gradient of a share of 1.
    """
    wire, n = wire or Wire(), draws.shape[1]
    if not wire.sent(size, n):
        return 0.0
    drawn = share[draws].double()
    total, most = drawn.sum(1), drawn.max(1).values
    return float((wire.read(total * size / n) & (most > ALONE * total)).double().mean())


def cuts(features: Tensor, y: Tensor, rows: Tensor, draws: Tensor, variant: str, wire: Wire) -> Iterator[Cut]:
    """The cuts of a variant, or of both, for each class.

    Args:
        features: of the attacker's own samples [m, d], double precision. y: their classes [m].
        rows: of the honest output layer [classes, d], which class cuts keep.
        draws: indices of samples [draws, n].
    """
    n_classes = len(rows)
    ridge = None if variant == "class" else Ridge.on(features)
    for t in y.unique().tolist():
        member = y == t
        if variant != "feature":
            yield Cut(t, rows[t], NEVER, alone(member.double(), draws, wire.size(rows[t]), wire))
        if ridge is not None and bool((~member).any()):
            way = ridge.direction(member.to(features) * 2 - 1)
            size = wire.size(way.u)
            for sharp in SHARPNESS:
                for theta in torch.linspace(-1.5, 1.5, THRESHOLDS).tolist():
                    share = shares(sharp * (way.scores - theta), member, n_classes)
                    often = alone(share, draws, sharp * size, wire)
                    yield Cut(t, sharp * way.u, sharp * (way.constant - theta), often)


def best_cut(
    features: Tensor,
    y: Tensor,
    rows: Tensor,
    n: int,
    variant: str,
    generator: torch.Generator,
    wire: Wire | None = None,
) -> Cut:
    """The cut at which one of n samples stands alone most often; of equal ones the first."""
    draws = torch.randint(len(y), (DRAWS, n), generator=generator).to(y.device)
    return max(cuts(features.double(), y, rows, draws, variant, wire or Wire()), key=lambda cut: cut.alone)
