"""PoisonedFL (Xie, Fang & Gong, CVPR 2025): fake clients that know no data push the model one way, round after round.

With D_t what the server stepped against since the last broadcast, s signs drawn once, and v_t the fake upload:

    v_t = c·‖D_t‖ · unit(|D_t − v_{t−1}·‖D_t‖/‖v_{t−1}‖|) ⊙ s

The subtracted term is what the attack itself has added, so that each value is as long as the honest part of the step.
Every `window` rounds the attacker tests whether the model moves its way: does the movement agree with s in more
coordinates than 99 % of binomial draws (d, ½)? If not, it sends less: c ← 0.7·c, where that is at least 0.5.

The server subtracts uploads, so that the paper's update is −v_t.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.cards.poisoned_fl import Options
from fedarena.attacks.poisoning.helpers.plain_broadcast import direction_since, needs_plain_broadcast, recalled, stored
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, shaped
from fedarena.core.threat import NotApplicable

BEFORE, TESTED = "before.", "tested."
"""Prefixes in the memory: the last broadcast, and the one of the last test."""
CONFIDENCE = 0.99
"""The share of binomial draws that the agreement must exceed."""
LESS, LEAST = 0.7, 0.5
"""The factor on c after a failed test, and the smallest c."""


class PoisonedFL(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.poisoned_fl.Options`.

    Memory: signs s [d], the last upload [d], scale c, the number of rounds seen since the last test, two broadcasts.
    """

    options: Options
    knowledge_levels = ("none",)
    follows = False

    def applies(self) -> NotApplicable | None:
        return needs_plain_broadcast(self.knowledge)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        if not memory:
            memory = self._start(view, rng)
        before = recalled(memory, BEFORE)
        if not before:
            sent = torch.zeros_like(memory["signs"])
        else:
            memory = self._tested(view, memory)
            direction = direction_since(before, view.down, self.knowledge)
            sent = magnified(direction, memory["last"], memory["signs"], float(memory["scale"]))
        memory = {**memory, "last": sent, **stored(view.down, BEFORE)}
        return shaped(sent.repeat(view.size, 1), view.down), memory

    def _start(self, view: RoundView, rng: Rng) -> Tensors:
        flat = flatten(dict(view.down))
        signs = torch.randint(0, 2, flat.shape, generator=rng.child("signs").torch()).to(flat) * 2 - 1
        scale, since = torch.tensor(self.options.scale, dtype=torch.float64), torch.tensor(0)
        return {"signs": signs, "last": torch.zeros_like(flat), "scale": scale, "since": since} | stored(
            view.down, TESTED
        )

    def _tested(self, view: RoundView, memory: Tensors) -> Tensors:
        """The memory after the test, in every `window`-th round that is seen."""
        since = int(memory["since"]) + 1
        if since < self.options.window:
            return {**memory, "since": torch.tensor(since)}
        moved = flatten(recalled(memory, TESTED)) - flatten(dict(view.down))
        scale = float(memory["scale"])
        if not moves_along(moved, memory["signs"]) and scale * LESS >= LEAST:
            scale *= LESS
        fresh = {"since": torch.tensor(0), "scale": torch.tensor(scale, dtype=torch.float64)}
        return {**memory, **fresh, **stored(view.down, TESTED)}


def magnified(direction: Tensor, last: Tensor, signs: Tensor, scale: float) -> Tensor:
    """v_t [d] from D_t, v_{t−1}, s and c."""
    length = direction.norm()
    own = normalize(last, dim=0) * length
    upload: Tensor = scale * length * normalize((direction - own).abs(), dim=0) * signs
    return upload


def moves_along(moved: Tensor, signs: Tensor) -> bool:
    """Whether the signs of a movement [d] agree with s in more coordinates than chance explains."""
    from scipy.stats import binom  # slow to import, and only needed here

    agree = int((moved.sign() == signs).sum())
    return agree > int(binom.ppf(CONFIDENCE, len(signs), 0.5))
