"""The unweighted mean: (1/n) Σ_i x_i."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call


class Mean(Aggregator):
    """The mean, as the last part of a chain of wrappers. One corrupted upload moves it anywhere. `used`: 1/n."""

    unanimous = True

    def averages(self, n: int, f: int) -> bool:
        return True

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        share = x.new_full((len(x),), 1 / len(x))
        return Aggregate(share @ x, share)
