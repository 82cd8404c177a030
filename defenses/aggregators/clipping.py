"""Static clipping, a step before another rule: x_i min(1, c/‖x_i‖) for a constant c."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper
from fedarena.defenses.aggregators.cards.clipping import Options
from fedarena.defenses.aggregators.lengths import clipped, clipping, lengths


class Clipping(Wrapper):
    """`used`: the inner rule's weight of each row times min(1, c/‖x_i‖); `votes`: the inner rule's weight."""

    options: Options

    def takes_mean_of(self, n: int, f: int) -> int:
        return self.inner.takes_mean_of(n, f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        return clipped(x, clipping(lengths(x), self.options.c), self.inner, call)
