"""Multi-Krum (Blanchard et al. 2017): the mean of the m uploads with the smallest Krum scores."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.multi_krum import Options
from fedarena.defenses.aggregators.geometry import distances
from fedarena.defenses.aggregators.krum import ranking


class MultiKrum(Aggregator):
    """Scores are computed once, as in the paper (Bulyan's selection recomputes them). `used`: 1/m for the m."""

    options: Options

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 3, "multi-krum", n, f, "2f + 3 uploads or more")
        if (m := self.options.m) is not None:
            require(m <= n - f, "multi-krum", n, f, f"m + f uploads or more, option m is {m}")

    def averages(self, n: int, f: int) -> bool:
        return (self.options.m or n - f) == n

    def picks(self, n: int, f: int) -> bool:
        return self.takes_mean_of(n, f) == 1

    def takes_mean_of(self, n: int, f: int) -> int:
        return self.options.m or n - f

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        m = self.options.m or len(x) - call.f
        best = ranking(distances(x), call.f)[:m]
        used = x.new_zeros(len(x))
        used[best.tolist()] = 1 / m
        return Aggregate(used @ x, used)
