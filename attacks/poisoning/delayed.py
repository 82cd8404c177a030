"""Delayed: honest behaviour until round τ·T, then another attack (Xiang et al. 2023, "adaptive attack", Table 5: TTBB
= τ).

Until that round an omniscient attacker sends copies of the uploads of random honest clients, as in the paper. An
attacker that knows only its own samples follows the protocol on them.
"""

from __future__ import annotations

import math

import torch

from fedarena.attacks.poisoning.cards.delayed import Options
from fedarena.contracts.poisoning import Around, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch


class Delayed(Around):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.delayed.Options`."""

    options: Options
    knowledge_levels = ("own", "omniscient")
    tunes_begin = True
    tunes = {"start": (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)}  # noqa: RUF012  (a ClassVar of the base)

    def begins_after(self, first: int) -> int:
        return self.inner.begins_after(max(first, math.ceil(self.knowledge.task.schedule.at(self.options.start))))

    def waits(self, round: int) -> bool:
        """Whether the colluders still behave in this round."""
        return round < self.knowledge.task.schedule.at(self.options.start)

    def culminates(self, round: int) -> bool:
        return not self.waits(round) and self.inner.culminates(round)

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return batch if self.waits(round) else self.inner.batch(batch, round, client, rng)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        if not self.waits(view.round):
            return self.inner.craft(view, memory, rng)
        if not view.honest_clients:
            return view.own, memory
        chosen = torch.randint(len(view.honest_clients), (view.size,), generator=rng.torch())
        return {name: t[chosen.to(t.device)] for name, t in view.honest.items()}, memory
