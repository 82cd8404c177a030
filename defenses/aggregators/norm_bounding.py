"""Norm bounding (Sun et al. 2019): (1/n) Σ_i x_i min(1, M/‖x_i‖)."""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.norm_bounding import Options
from fedarena.defenses.aggregators.lengths import clipping, lengths, median


class NormBounding(Aggregator):
    """`used`: min(1, M/‖x_i‖)/n; `votes`: 1/n."""

    options: Options

    def check(self, n: int, f: int) -> None:
        if self.options.bound is None:
            require(n >= 2 * f + 1, "norm-bounding", n, f, "2f + 1 uploads or more for a median of norms; or a bound")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        norms = lengths(x)
        bound = median(norms) if self.options.bound is None else self.options.bound
        used = (clipping(norms, bound) / len(x)).to(x)
        return Aggregate(used @ x, used, votes=torch.full_like(used, 1 / len(x)))
