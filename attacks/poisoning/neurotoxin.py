"""Neurotoxin: a backdoor in the coordinates that honest clients hardly change (Zhang et al. 2022, Algorithm 1).

    D_t   by `reference`:  honest    the mean of the uploads that the colluders would send by the protocol
                           movement  how the model moved between the last two broadcasts that a colluder was sent; in
                                     the first round as with honest
    S     the share `masked` of the coordinates with the largest |D_t|, over the whole model
    X     the colluder's model, trained from the broadcast in all coordinates outside S alone
    sent  scale·(G − X)/η, which is 0 in S

`fedarena.attacks.poisoning.helpers.local_backdoor` has the training and the server's step η.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.neurotoxin import Options
from fedarena.attacks.poisoning.helpers.local_backdoor import LocalBackdoor
from fedarena.attacks.poisoning.helpers.plain_broadcast import recalled, stored
from fedarena.contracts.poisoning import RoundView
from fedarena.core.tensors import Tensors, combine, flatten, row, rows, shaped

BEFORE = "before."
"""Prefix of the last broadcast in the memory, which holds it where that is the reference."""


class Neurotoxin(LocalBackdoor):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.neurotoxin.Options`."""

    options: Options
    name = "neurotoxin"

    def factor(self, view: RoundView) -> float:
        return self.options.scale

    def mask(self, view: RoundView, memory: Tensors) -> tuple[Mapping[str, Tensor] | None, Tensors]:
        moved = rows(view.own).mean(0)
        if self.options.reference == "movement":
            if before := recalled(memory, BEFORE):
                moved = flatten(combine(1.0, before, -1.0, view.down))
            memory = memory | stored(view.down, BEFORE)
        return shaped(outside_largest(moved, self.options.masked), row(view.own, 0)), memory


def outside_largest(v: Tensor, share: float) -> Tensor:
    """1 for the coordinates of v [d] outside the ⌊share·d⌋ of largest size, and 0 for these."""
    mask = torch.ones_like(v)
    mask[v.abs().topk(int(share * len(v))).indices] = 0
    return mask
