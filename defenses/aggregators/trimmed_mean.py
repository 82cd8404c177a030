"""The trimmed mean of every coordinate (Yin et al. 2018, Definition 2): without its f largest and f smallest values."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.coordinates import Values, by_coordinate


class TrimmedMean(Aggregator):
    """`used` is None: every coordinate trims its own values. Computed on the CPU."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "trimmed-mean", n, f, "2f + 1 uploads or more")

    def averages(self, n: int, f: int) -> bool:
        return f == 0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        def trimmed_mean(ascending: Values) -> Values:
            mean: Values = ascending[:, call.f : len(x) - call.f].mean(axis=1)
            return mean

        return Aggregate(by_coordinate(x, trimmed_mean), None)
