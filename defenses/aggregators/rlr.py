"""Robust learning rate, RLR (Ozdayi, Kantarcioglu & Gel 2021), around another rule.

y = the inner rule's vector
y_j where |Σ_i sign(x_ij)| ≥ θ, and −y_j elsewhere
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, require
from fedarena.defenses.aggregators.cards.rlr import Options


class RLR(Wrapper):
    """`used` is None: a row has a weight of either sign in every coordinate. `votes`: the inner rule's weights."""

    options: Options

    def check(self, n: int, f: int) -> None:
        if (theta := self.options.theta) is not None:
            require(theta <= n, "rlr", n, f, f"theta uploads or more, option theta is {theta}")
        super().check(n, f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        done = self.inside(x, call)
        theta = -(-2 * len(x) // 5) if self.options.theta is None else self.options.theta
        agree = x.sign().sum(dim=0).abs() >= theta
        return replace(done, vector=torch.where(agree, done.vector, -done.vector), used=None, votes=done.weight)
