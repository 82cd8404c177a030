"""SignGuard-tailored: uploads of an honest length and with an honest count of signs that go the wrong way.

SignGuard (Xu et al. 2022) looks at an upload's norm and at its shares of positive, zero and negative values. Both stay
the same in any order of the values. With g a colluder's own honest upload and μ the mean of the uploads that it knows:

    reversed   the values of g in the order in which ⟨sent, μ⟩ is smallest: the smallest where μ is largest
    random     values of size U(0, 1) with the signs of g, in random order, at the length of g

The first is the smallest inner product of all orders (rearrangement inequality).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.cards.signguard_tailored import Options
from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped


class SignGuardTailored(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.signguard_tailored.Options`."""

    options: Options
    knowledge_levels = ("own", "omniscient")

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        own = rows(view.own)
        if self.options.order == "reversed":
            sent = against(own, honest_rows(self.knowledge, view).mean(0))
        else:
            sent = noise_with_signs(own, rng.torch())
        return shaped(sent, row(view.own, 0)), memory


def against(g: Tensor, mean: Tensor) -> Tensor:
    """[n, d]: the values of each row of g in the order that is opposite to that of the mean [d]."""
    place = mean.argsort(descending=True, stable=True)
    sent = torch.empty_like(g)
    sent[:, place] = g.sort(dim=1).values
    return sent


def noise_with_signs(g: Tensor, generator: torch.Generator) -> Tensor:
    """[n, d]: U(0, 1) with the signs of each row of g, in random order, at the row's length."""
    signs = torch.stack([s[torch.randperm(len(s), generator=generator).to(s.device)] for s in g.sign()])
    noise = torch.rand(g.shape, generator=generator).to(g) * signs
    sent: Tensor = normalize(noise, dim=1) * g.norm(dim=1, keepdim=True)
    return sent
