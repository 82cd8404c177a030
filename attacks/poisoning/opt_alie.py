"""Opt-ALIE: ALIE whose strength is searched against the server's own rule in every round (ByzFL; Allouah et al. 2023).

    every colluder sends μ + τ·σ,   τ maximises ‖R(uploads) − μ‖

μ and σ are mean and standard deviation of the n honest uploads, σ with divisor n − 1 as in ByzFL. R is the rule with
all that is put before it.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.opt_alie import Options
from fedarena.attacks.poisoning.helpers.expanding_search import largest_of
from fedarena.attacks.poisoning.helpers.known_rule import AgainstKnownRule, Distance


class OptALIE(AgainstKnownRule):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.opt_alie.Options`."""

    options: Options

    def line(self, honest: Tensor) -> tuple[Tensor, Tensor]:
        return honest.mean(0), honest.std(0, correction=min(1, len(honest) - 1))

    def search(self, distance: Distance) -> float:
        return largest_of(distance, self.options.evaluations, self.options.delta, self.options.ratio)
