"""Adaptive robust clipping, ARC (Allouah et al. 2025), a step before another rule.

k = ⌊2 (f/n) (n − f)⌋;  the k longest rows are clipped to the norm of the (k + 1)-th longest
"""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, require
from fedarena.defenses.aggregators.lengths import clipped, clipping, lengths


class ARC(Wrapper):
    """`used`: the inner rule's weight of each row times its clipping factor; `votes`: the inner rule's weight."""

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "arc", n, f, "2f + 1 uploads or more")
        super().check(n, f)

    def averages(self, n: int, f: int) -> bool:
        return f == 0 and self.inner.averages(n, f)

    def takes_mean_of(self, n: int, f: int) -> int:
        return self.inner.takes_mean_of(n, f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        norms, n = lengths(x), len(x)
        k = 2 * call.f * (n - call.f) // n  # fewer than n: 2f(n − f) ≤ n²/2
        bound = norms.sort(descending=True).values[k]
        return clipped(x, clipping(norms, bound), self.inner, call)
