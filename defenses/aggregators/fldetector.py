"""FLDetector (Zhang, Cao, Jia & Gong 2022), before another rule: whose uploads contradict their past?

p_i = g_i + B (w − w_i)     g_i: the client's last upload, w_i: the model that it belongs to; B: an L-BFGS Hessian from
                            the last N steps of the model and the changes of the aggregate along them
d_i = ‖x_i − p_i‖ / Σ_j ‖x_j − p_j‖;   score of a client = the mean of its last N d_i
Where the gap statistic finds more than one group of scores, the upper one of two groups is left out.

A step of the model counts as minus the aggregate: a constant learning rate cancels in B (w − w_i).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, require
from fedarena.core.errors import UserError
from fedarena.defenses.aggregators.cards.fldetector import Options
from fedarena.defenses.aggregators.consistency import PREFIX, Past
from fedarena.defenses.aggregators.two_groups import has_groups, upper_group


class FLDetector(Wrapper):
    """`used`: the inner rule's weights; 0 for whoever is left out. The inner rule expects so many fewer corrupted."""

    options: Options

    @property
    def by_sender(self) -> bool:
        return True

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "fldetector", n, f, "2f + 1 uploads or more")
        super().check(n, f)

    def takes_mean_of(self, n: int, f: int) -> int:
        return self.inner.takes_mean_of(n, f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        senders = call.clients(len(x))
        past = Past.of(call.memory, x, max(senders) + 1, self.options.window)
        past = past.scored(x, senders)
        kept = self._consistent(past.scores[list(senders)], call)
        rest = replace(
            call,
            weights=call.weights[kept.to(call.weights.device)],
            f=_corrupted(len(x), call.f, kept),
            memory={name: t for name, t in call.memory.items() if not name.startswith(PREFIX)},
            rng=call.rng.child("inner"),
            senders=tuple(senders[i] for i in kept.tolist()),
        )
        done = self.inside(x[kept.to(x.device)], rest)
        memory = {**done.memory, **past.moved(x, senders, done.vector).memory()}
        return replace(done.through(torch.nn.functional.one_hot(kept, len(x))), memory=memory)

    def _consistent(self, scores: Tensor, call: Call) -> Tensor:
        """The numbers of the rows that stay: all, unless the mean scores fall into groups.

        Args:
            scores: [n, window] of the participants, NaN where there is none yet. Whoever has not been scored for a
                whole window stays.
        """
        n, every = len(scores), torch.arange(len(scores))
        judged = torch.nonzero(~scores.isnan().any(1)).flatten()
        if not len(judged):
            return every
        values = scores[judged].mean(1).numpy()
        generator = call.rng.child("gap").torch()
        drawn = torch.rand(self.options.references, len(values), generator=generator, dtype=torch.float64)
        if not has_groups(values, drawn.numpy()):
            return every
        stays = torch.ones(n, dtype=torch.bool)
        stays[judged[torch.from_numpy(upper_group(values))]] = False
        kept = torch.nonzero(stays).flatten()
        try:
            self.inner.check(len(kept), _corrupted(n, call.f, kept))
        except UserError:  # too few are left for the inner rule
            return every
        return kept


def _corrupted(n: int, f: int, kept: Tensor) -> int:
    """How many of the kept are assumed to be corrupted: those who are left out count as corrupted."""
    return max(0, f - (n - len(kept)))
