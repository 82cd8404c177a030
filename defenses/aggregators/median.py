"""The median of every coordinate (Yin et al. 2018, Definition 1); for even n the mean of the two middle values."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.coordinates import by_coordinate, middle


class Median(Aggregator):
    """`used` is None: every coordinate has its own middle. Computed on the CPU."""

    unanimous = True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "median", n, f, "2f + 1 uploads or more")

    def averages(self, n: int, f: int) -> bool:
        return n <= 2

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        return Aggregate(by_coordinate(x, middle), None)
