"""Opt-IPM: IPM whose strength is searched against the server's own rule in every round (ByzFL; Allouah et al. 2023).

    every colluder sends −τ·μ,   τ maximises ‖R(uploads) − μ‖

μ is the mean of the honest uploads, R is the rule with all that is put before it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.opt_ipm import Options
from fedarena.attacks.poisoning.helpers.expanding_search import largest_of
from fedarena.attacks.poisoning.helpers.known_rule import AgainstKnownRule, Distance


class OptIPM(AgainstKnownRule):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.opt_ipm.Options`."""

    options: Options

    def line(self, honest: Tensor) -> tuple[Tensor, Tensor]:
        mean = honest.mean(0)
        return torch.zeros_like(mean), -mean

    def search(self, distance: Distance) -> float:
        return largest_of(distance, self.options.evaluations, self.options.delta, self.options.ratio)
