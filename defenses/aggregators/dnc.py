"""Divide and conquer, DnC (Shejwalkar & Houmansadr 2021).

A few times:

    x̃ = b coordinates of the rows, drawn at random;  z_i = x̃_i − mean(x̃)
    v the top right singular vector of z;  s_i = ⟨z_i, v⟩²
    good: all but the ⌈c·f⌉ rows with the largest s_i

The result is the mean of the rows that were good every time. Ties of s_i are broken by what the rows hold.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.dnc import Options
from fedarena.defenses.aggregators.geometry import by_content

EQUAL = 1e-9
"""Scores that differ by no more than this count as equal; all scores together are 1."""


class DnC(Aggregator):
    """`used`: 1/(their number) for the rows that were good every time."""

    options: Options

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "dnc", n, f, "2f + 1 uploads or more")
        require(self._dropped(f) < n, "dnc", n, f, f"more than ⌈c·f⌉ uploads, option c is {self.options.c:g}")

    def averages(self, n: int, f: int) -> bool:
        return self._dropped(f) == 0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        n, d = x.shape
        times_good = torch.zeros(n, dtype=torch.int64)
        for i in range(self.options.iterations):
            drawn = torch.randperm(d, generator=call.rng.child("coordinates", i).torch())[: self.options.coordinates]
            times_good[inliers(x[:, drawn.to(x.device)], n - self._dropped(call.f))] += 1
        # If no row is good every time, the rows that were good most often count.
        good = times_good == times_good.max()
        used = (good / good.sum()).to(x)
        return Aggregate(used @ x, used)

    def _dropped(self, f: int) -> int:
        return math.ceil(self.options.c * f)


def inliers(x: Tensor, count: int) -> Tensor:
    """[n, b] → [count]: the rows with the smallest outlier scores."""
    scores = outlier_scores(x)
    order = scores.argsort(stable=True)
    ascending = scores[order]
    if count < len(x) and ascending[count] - ascending[count - 1] <= EQUAL:
        # In an order that depends on the rows alone, so that rounding does not depend on the order of uploads.
        own = torch.from_numpy(by_content(x))
        rounded = (outlier_scores(x[own.to(x.device)]) / EQUAL).round()
        order = own[rounded.argsort(stable=True)]
    return order[:count]


def outlier_scores(x: Tensor) -> Tensor:
    """[n, b] → [n] on the CPU: ⟨z_i, v⟩² as a share of the whole.

    z = U S Vᵀ, hence ⟨z_i, v⟩ = S_1 U_i1, and U_1 is the top eigenvector of z zᵀ [n, n]. In float64, since the
    largest row decides on the scale of all.
    """
    z = x.double()
    z = z - z.mean(dim=0)
    top: Tensor = torch.linalg.eigh((z @ z.T).cpu()).eigenvectors[:, -1]
    return top.square()
