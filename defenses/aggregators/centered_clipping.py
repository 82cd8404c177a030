"""Centered clipping (Karimireddy, He & Jaggi 2021, "Learning from History").

    v ← v + (1/n) Σ_i (x_i − v) λ_i,  λ_i = min(1, τ/‖x_i − v‖)

Each round starts from the result of the last one, the first round from 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.centered_clipping import Options
from fedarena.defenses.aggregators.lengths import clipping, lengths, median

CENTER = "center"


class CenteredClipping(Aggregator):
    """`used`: weights of the uploads in the vector; what they lack to 1 is the weight of the last v. `votes`: 1/n."""

    options: Options

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "centered-clipping", n, f, "2f + 1 uploads or more")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        v = call.memory[CENTER].to(x) if CENTER in call.memory else torch.zeros_like(x[0])
        used = x.new_zeros(len(x))
        for _ in range(self.options.iterations):
            away = x - v
            norms = lengths(away)
            tau = median(norms) if self.options.tau is None else self.options.tau
            share = (clipping(norms, tau) / len(x)).to(x)
            v = v + share @ away
            used = used * (1 - share.sum()) + share
        return Aggregate(v, used, {CENTER: v}, votes=torch.full_like(used, 1 / len(x)))
