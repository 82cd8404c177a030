"""FoundationFL (Fang et al. 2025), a step before another rule: copies of one upload are added to the uploads.

max_j, min_j = largest and smallest value of coordinate j
s_i = min(‖x_i − max‖, ‖x_i − min‖);   i* = argmax_i s_i
the inner rule on x_1, …, x_n and m copies of x_{i*},  m = ⌊n/2⌋

Ties are broken by what the rows hold, not by their positions.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, refuse_by_sender, require
from fedarena.core.errors import UserError
from fedarena.defenses.aggregators.cards.foundationfl import Options
from fedarena.defenses.aggregators.geometry import by_content
from fedarena.defenses.aggregators.lengths import lengths


class FoundationFL(Wrapper):
    """The inner rule gets the same f among n + m rows. `used`: its weights, those of the copies at the copied row."""

    options: Options

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "foundationfl", n, f, "2f + 1 uploads or more")
        refuse_by_sender("foundationfl", self.inner)
        try:
            super().check(n + self._copies(n), f)
        except UserError as error:  # its message describes the rows of the inner rule
            raise UserError(f"aggregator foundationfl: {n} uploads and {self._copies(n)} copies: {error}") from None

    def takes_mean_of(self, n: int, f: int) -> int:
        return self.inner.takes_mean_of(n + self._copies(n), f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        n, chosen = len(x), farthest_from_the_extremes(x)
        copies = self._copies(n)
        of = torch.cat([torch.arange(n), torch.full((copies,), chosen)])
        with_copies = replace(call, weights=call.weights[of.to(call.weights.device)], senders=())
        done = self.inside(torch.cat([x, x[chosen].expand(copies, -1)]), with_copies)
        return done.through(torch.nn.functional.one_hot(of, n))

    def _copies(self, n: int) -> int:
        return n // 2 if self.options.copies is None else self.options.copies


def farthest_from_the_extremes(x: Tensor) -> int:
    """The row i* of x [n, d]."""
    high, low = x.amax(0), x.amin(0)
    scores = torch.minimum(torch.linalg.vector_norm(x - high, dim=1), torch.linalg.vector_norm(x - low, dim=1))
    if not scores.isfinite().all():  # the squares overflow
        scores = torch.minimum(lengths(x - high), lengths(x - low))
    best = torch.nonzero(scores >= scores.max()).flatten().tolist()
    if len(best) == 1:
        return int(best[0])
    candidates = x[best]
    return int(best[by_content(candidates)[-1]])
